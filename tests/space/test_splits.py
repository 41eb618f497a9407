"""Splits: whole groups, as close to the share as they allow, the same on every machine."""

from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import Scenario
from edgen.space.splits import WINDOW, HeldOutGroups, choose_common_side, choose_test_side, hash_group
from tests.dose import dose
from tests.scenarios import scenario_of

SCENARIO = scenario_of(
    137,
    "Rust",
    "reading",
    "and sulks",
    "lectures",
    "and sighs",
)
# blake2b is the same everywhere; a change here moves conversations between the sides of old runs.
GOLDEN = {
    "scenario": 1_463_458_919_136_152_721,
    "topic": 554_142_856_701_123_260,
    "persona": 8_801_250_867_878_423_929,
}
shares = st.integers(0, 999).map(lambda thousandth: thousandth / 1000)


def ascending(counts: list[int], step: int = 7) -> list[tuple[int, int]]:
    return [(step * i, count) for i, count in enumerate(counts)]


def held(side: HeldOutGroups, groups: list[tuple[int, int]]) -> int:
    return sum(count for group, count in groups if side.is_test(group))


@given(st.lists(st.integers(1, 12), min_size=1, max_size=9), shares)
@settings(max_examples=dose(30, 300), deadline=None)
def test_few_groups_are_split_as_closely_as_can_be(counts: list[int], share: float) -> None:
    groups, total = ascending(counts), sum(counts)
    side = choose_test_side(groups, share)
    target = Fraction(repr(share)) * total
    possible = {
        sum(chosen) for n in range(len(counts) + 1) for chosen in itertools.combinations(counts, n)
    } - {total}
    best = min(possible, key=lambda s: (abs(s - target), -s)) if share else 0
    assert held(side, groups) == side.count == best


@given(
    st.integers(WINDOW + 1, 1500).flatmap(
        lambda n: st.lists(st.integers(1, 9), min_size=n, max_size=n)
    ),
    shares,
)  # fmt: skip
@settings(max_examples=12, deadline=None)
def test_many_groups_too(counts: list[int], share: float) -> None:
    groups, total = ascending(counts), sum(counts)
    side = choose_test_side(iter(groups), share)
    assert held(side, groups) == side.count < total
    # Near 0 and 1 the last groups are nearly all on one side, so that they correct in one direction only.
    near = max(counts) if min(share, 1 - share) * WINDOW < 2 else 1
    assert abs(side.count - share * total) <= near or side.count >= total - max(counts)


def test_single_conversations_are_split_to_the_nearest_whole() -> None:
    groups = ascending([1] * 10_000)
    for share in (0.15, 0.5, 0.0001, 0.99999):
        assert choose_test_side(groups, share).count == min(round(share * 10_000), 9_999)


@pytest.mark.parametrize(
    ("counts", "share", "count"),
    [
        ([], 0.15, 0),
        ([5], 0.15, 0),
        ([5], 0.9, 0),  # never all groups
        ([1, 1], 0.0, 0),
        ([1, 1], 0.25, 1),  # equally close: the larger
        ([1, 1, 1], 0.15, 0),  # one group is closest to 0.45
        ([1, 99], 0.999, 99),
        ([2, 2, 3], 0.43, 3),
        ([10, 10, 10], 0.15, 0),
    ],
)
def test_corner_cases(counts: list[int], share: float, count: int) -> None:
    assert choose_test_side(ascending(counts), share).count == count


def test_groups_that_hold_nothing_change_nothing() -> None:
    groups = [(1, 3), (2, 0), (3, 2), (4, 4)]
    assert choose_test_side(groups, 0.2) == choose_test_side([g for g in groups if g[1]], 0.2)


def test_unordered_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="ascend"):
        choose_test_side([(2, 1), (1, 1)], 0.5)


def test_what_several_data_sets_hold_of_a_group_adds_up() -> None:
    parts = [(1, 2), (3, 1), (9, 4)], [(1, 1), (2, 5), (9, 1)]
    assert choose_common_side(map(iter, parts), 0.3) == choose_test_side(
        [(1, 3), (2, 5), (3, 1), (9, 5)], 0.3
    )


@pytest.mark.parametrize("position", [0, 700, 1499])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_one_group_may_hold_half_of_all(position: int, share: float) -> None:
    counts = [1] * 1500
    counts[position] = 1500
    groups, total = ascending(counts), sum(counts)
    side = choose_test_side(groups, share)
    assert held(side, groups) == side.count == round(share * total)


@given(
    st.lists(st.sampled_from([1, 2, 3, 40, 900]), min_size=WINDOW + 1, max_size=600),
    st.lists(st.integers(100, 20_000), max_size=4),
    st.randoms(use_true_random=False),
    shares,
)
@settings(max_examples=25, deadline=None)
def test_many_uneven_groups_come_close(
    light: list[int], heavy: list[int], random: Random, share: float
) -> None:
    counts = light + heavy
    random.shuffle(counts)
    groups, total = ascending(counts), sum(counts)
    side = choose_test_side(iter(groups), share)
    assert held(side, groups) == side.count < total
    target = Fraction(repr(share)) * total
    reached = 1
    for count in counts:
        reached |= reached << count
    low = (reached & ((1 << int(target) + 1) - 1)).bit_length() - 1
    above = (reached & ~(1 << total)) >> int(target) + 1
    high = int(target) + (above & -above).bit_length() if above else low
    best = min(abs(low - target), abs(high - target))
    assert abs(side.count - target) - best <= total / 200


def test_uneven_groups_are_not_sorted_by_size_into_the_sides() -> None:
    groups = [(i, 1 + i * 7919 % 5) for i in range(20_000)]
    side = choose_test_side(groups, 0.2)
    for size in range(1, 6):
        tests = [side.is_test(group) for group, count in groups if count == size]
        assert 0.15 < sum(tests) / len(tests) < 0.25


def test_a_group_costs_a_few_bytes() -> None:
    def peak(number: int) -> int:
        tracemalloc.start()
        side = choose_test_side(((i * 3, 1 + i % 5) for i in range(number)), 0.15)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert side.count == round(number * 3 * 0.15)
        return used

    assert peak(40_000) - peak(10_000) < 30_000 * 20


def test_a_group_is_what_it_is_called_after() -> None:
    def hashes(index: int = SCENARIO.index, subject: str = "", **changes: str) -> dict[str, int]:
        scenario = Scenario(index, SCENARIO.values | changes, {"topic": {"subject": subject}})
        return {by: hash_group(by, 7, scenario) for by in ("scenario", "topic", "persona")}

    base = hashes()
    assert all(0 <= value < 2**63 for value in base.values())
    assert len(set(base.values())) == 3
    changed = {
        field: {by for by, value in hashes(**{field: new}).items() if value != base[by]}  # type: ignore[arg-type]
        for field, new in {
            "index": 138,
            "topic": "Iron",
            "student_preference": "x",
            "student_reaction": "x",
            "teacher_preference": "x",
            "teacher_reaction": "x",
            "subject": "x",
        }.items()
    }
    assert changed == {
        "index": {"scenario"},
        "topic": {"topic"},
        "student_preference": {"persona"},
        "student_reaction": {"persona"},
        "teacher_preference": {"persona"},
        "teacher_reaction": {"persona"},
        "subject": set(),
    }


def test_only_scenarios_depend_on_the_seed() -> None:
    assert hash_group("scenario", 1, SCENARIO) != hash_group("scenario", 2, SCENARIO)
    assert hash_group("topic", 1, SCENARIO) == hash_group("topic", 2, SCENARIO)
    assert hash_group("persona", 1, SCENARIO) == hash_group("persona", 2, SCENARIO)


def test_hashes_are_the_same_everywhere() -> None:
    assert {by: hash_group(by, 7, SCENARIO) for by in ("scenario", "topic", "persona")} == GOLDEN
