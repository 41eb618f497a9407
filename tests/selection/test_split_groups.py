"""Groups of a new split: whole, in order on request, and as close to the share as possible."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgen.core.values import Scenario
from edgen.expressions.conversation import Facts
from edgen.expressions.language import NamedTerm
from edgen.selection.split import NewSplit
from edgen.space.splits import choose_first_groups


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from([None, 1, 1.0, 2.5, 3]), st.booleans())),
    st.booleans(),
)
def test_what_hangs_together_stays_together(rows: list[tuple[int, Any, bool]], in_order: bool) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    split = NewSplit("x", NamedTerm("any", lambda facts: facts.conversation), in_order=in_order)
    for scenario, value, _ in rows:
        split.note(Facts(Scenario(scenario, {}, {}), value))
    kept = [place for place, row in enumerate(rows) if row[2]]
    assume(not kept or any(rows[place][1] is not None for place in kept))
    groups = split.list_groups([row[0] for row in rows], kept)
    found = [(*rows[place][:2], group) for place, group in zip(kept, groups, strict=True)]
    for (here, one, first), (there, other, second) in itertools.combinations(found, 2):
        assert first == second or here != there
        if not in_order:
            assert first == second or one != other
    if in_order and found:
        latest: dict[int, float] = {}
        for scenario, value, _ in found:
            latest[scenario] = max(latest.get(scenario, -1), -1 if value is None else value)
        order = sorted(found, key=lambda row: -latest[row[0]])
        assert [row[2] for row in order] == sorted(row[2] for row in found)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 9), max_size=12), st.floats(0, 0.99))
def test_the_first_groups_come_closest_to_the_share(counts: list[int], share: float) -> None:
    side = choose_first_groups([*enumerate(counts)], share)
    sums = [0, *itertools.accumulate(counts[:-1])]
    assert side.count in sums
    assert all(abs(side.count - share * sum(counts)) <= abs(one - share * sum(counts)) + 1e-9 for one in sums)
    tested = [number for number in range(len(counts)) if side.is_test(number)]
    assert tested == [*range(len(tested))]
    assert sum(counts[number] for number in tested) == side.count
