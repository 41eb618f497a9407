"""The allowed cells of a space: counted, ranked and drawn, against brute force."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from edgen.space import Dimension, Entry, Space
from edgen.space.cells import AllowedCells
from edgen.space.conditions import find_condition_problems, order_by_dependency
from edgen.space.sampling import Sampler
from tests.space.spaces import allowed_cells, conditional_spaces, plain_space
from tests.timing import takes_under

pytestmark = pytest.mark.unit

RELAXED = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def is_sound(space: Space) -> bool:
    return not find_condition_problems(space, {name: name for name in space.names})


@RELAXED
@given(conditional_spaces())
def test_ranks_are_a_bijection_onto_the_allowed_cells(space: Space) -> None:
    cells, allowed = AllowedCells(space), allowed_cells(space)
    assert cells.count == len(allowed)
    assert {tuple(cells.positions(rank)) for rank in range(len(allowed))} == allowed


@RELAXED
@given(conditional_spaces())
def test_what_can_occur_is_known(space: Space) -> None:
    cells, allowed = AllowedCells(space), allowed_cells(space)
    assume(allowed)
    counts = [Counter(cell[place] for cell in allowed) for place in range(len(space.dimensions))]
    assert cells.counts_by_entry() == [
        [counts[place][at] for at in range(len(one.entries))] for place, one in enumerate(space.dimensions)
    ]
    for place in range(len(space.dimensions)):
        for at in range(len(space.dimensions[place].entries)):
            assert cells.is_possible({place: at}) is (at in counts[place])
            if at in counts[place]:
                example = tuple(cells.example({place: at}))
                assert example in allowed
                assert example[place] == at


@RELAXED
@given(conditional_spaces(), st.integers(0, 2**32))
def test_every_prefix_of_a_balanced_design_is_balanced(space: Space, seed: int) -> None:
    allowed = allowed_cells(space)
    assume(allowed)
    sampler, drawn = Sampler(space, seed, "balanced"), Counter[tuple[str, ...]]()
    for index in range(min(3 * len(allowed), 200)):
        drawn[tuple(sampler.scenario(index).values.values())] += 1
        fewest = 0 if len(drawn) < len(allowed) else min(drawn.values())
        assert max(drawn.values()) - fewest <= 1


@RELAXED
@given(conditional_spaces(), st.integers(0, 2**32))
@pytest.mark.integration
def test_random_draws_obey_conditions_and_exclusions(space: Space, seed: int) -> None:
    assume(is_sound(space))
    allowed = {
        tuple(one.values[at] for one, at in zip(space.dimensions, cell, strict=True))
        for cell in allowed_cells(space)
    }
    sampler = Sampler(space, seed, "random")
    assert {tuple(sampler.scenario(index).values.values()) for index in range(50)} <= allowed
    assert sampler.scenario(7) == Sampler(space, seed, "random").scenario(7)


def test_weights_count_among_the_values_that_conditions_allow() -> None:
    entries = (Entry("x", 1.0, {}, {"a": ("0.0",)}), Entry("y", 3.0), Entry("z", 6.0))
    space = plain_space(2)
    space = Space(
        name="made",
        dimensions=(Dimension("b", entries), Dimension("a", space.dimensions[0].entries)),
        roles=(),
        exclude=({"a": ("0.1",), "b": ("z",)},),
    )
    sampler = Sampler(space, 3, "random")
    drawn = Counter(tuple(sampler.scenario(index).values.values()) for index in range(20_000))
    first = sum(count for (_, a), count in drawn.items() if a == "0.0")
    assert drawn["x", "0.0"] / first == pytest.approx(0.1, abs=0.02)
    assert drawn["z", "0.0"] / first == pytest.approx(0.6, abs=0.02)
    assert drawn["z", "0.1"] == drawn["x", "0.1"] == 0


def test_an_enormous_space_is_counted_and_ranked_without_building_it() -> None:
    """Thirty dimensions in a chain of conditions: 10^30 cells, none of them ever listed."""
    dimensions = [Dimension("d0", tuple(Entry(f"0.{j}") for j in range(10)))]
    for i in range(1, 30):
        when = {f"d{i - 1}": tuple(f"{i - 1}.{j}" for j in range(1, 10))}
        entries = tuple(Entry(f"{i}.{j}", 1.0, {}, when if j == 0 else {}) for j in range(10))
        dimensions.append(Dimension(f"d{i}", entries))
    space = Space(name="made", dimensions=tuple(dimensions), roles=())
    cells = AllowedCells(space)
    zero, other = 1, 9  # cells that end in the first value, and in another
    for _ in range(29):
        zero, other = other, 9 * (zero + other)
    assert cells.count == zero + other > 10**29
    drawn = []

    def draw() -> None:
        sampler = Sampler(space, 1, "balanced")
        drawn[:] = [sampler.scenario(index) for index in range(200)]

    assert takes_under(1, lambda: AllowedCells(space), tries=3)
    assert takes_under(1, draw, tries=3)
    scenarios = drawn
    assert len({tuple(one.values.values()) for one in scenarios}) == 200
    for one in scenarios:
        places = [int(value.rpartition(".")[2]) for value in one.values.values()]
        assert all(a or b for a, b in itertools.pairwise(places))


def test_what_cannot_be_counted_is_drawn_and_not_refused() -> None:
    """Every two of twenty dimensions are linked: the tree would need 10^20 states."""
    base = plain_space(*[10] * 20)
    exclude = tuple({f"d{i}": (f"{i}.0",), f"d{j}": (f"{j}.0",)} for i in range(20) for j in range(i))
    space = Space(name="made", dimensions=base.dimensions, roles=(), exclude=exclude)
    assert AllowedCells(space).count is None
    sampler = Sampler(space, 0, "balanced")
    for index in range(50):
        assert sum(value.endswith(".0") for value in sampler.scenario(index).values.values()) <= 1


def test_dimensions_are_drawn_behind_those_that_their_conditions_name() -> None:
    dimensions = (
        Dimension("c", (Entry("1", 1.0, {}, {"b": ("1",)}), Entry("2"))),
        Dimension("b", (Entry("1", 1.0, {}, {"a": ("1",)}), Entry("2"))),
        Dimension("a", (Entry("1"), Entry("2"))),
    )
    assert order_by_dependency(Space(name="made", dimensions=dimensions, roles=())) == [2, 1, 0]
