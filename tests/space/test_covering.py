"""Covering arrays: they contain every allowed pair or triple in few rows, the same on every machine."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from edgen.core.errors import SpaceError
from edgen.space import Space
from edgen.space.cells import AllowedCells
from edgen.space.covering import build_covering_array
from edgen.space.covering_constructions import construct_rows
from edgen.space.sampling import Sampler
from tests.dose import dose
from tests.space.spaces import Cell, allowed_cells, conditional_spaces, plain_space

pytestmark = pytest.mark.integration

KEY = bytes(32)
# Rows of the best array known; `bench/covering.py` names the source of each figure.
BEST = {
    (2, (3,) * 4): 9, (2, (3,) * 13): 15, (2, (5,) * 6): 25, (2, (4,) * 20): 28, (2, (10,) * 10): 117,
    (2, (2,) * 40): 9, (3, (4,) * 6): 64, (3, (2,) * 10): 12, (3, (3,) * 6): 33,
}  # fmt: skip


def tuples(rows: set[Cell], dimensions: tuple[int, ...]) -> set[Cell]:
    return {tuple(row[one] for one in dimensions) for row in rows}


@settings(max_examples=dose(6, 15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditional_spaces(), st.sampled_from([2, 3]))
def test_every_allowed_tuple_is_covered_by_allowed_cells(space: Space, strength: int) -> None:
    allowed = allowed_cells(space)
    assume(allowed)
    rows = {*build_covering_array(AllowedCells(space), strength, KEY)}
    assert rows <= allowed
    for chosen in itertools.combinations(range(len(space.dimensions)), min(strength, len(space.dimensions))):
        assert tuples(rows, chosen) == tuples(allowed, chosen)


@pytest.mark.parametrize(("strength", "sizes"), BEST)
def test_arrays_have_at_most_a_third_more_rows_than_the_best_known(
    strength: int, sizes: tuple[int, ...]
) -> None:
    rows = build_covering_array(AllowedCells(plain_space(*sizes)), strength, KEY)
    assert len(rows) <= 1.3 * BEST[strength, sizes]
    for chosen in itertools.combinations(range(len(sizes)), strength):
        places = itertools.product(*[range(sizes[one]) for one in chosen])
        assert tuples({*rows}, chosen) == {*places}


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 8, 9, 16, 25])
def test_constructions_over_a_field_are_orthogonal(size: int) -> None:
    rows = construct_rows((size,) * min(size + 1, 10), 2)
    assert len(rows) <= size**2
    for one, other in itertools.combinations(range(len(rows[0])), 2):
        assert len({(row[one], row[other]) for row in rows}) == size**2


def test_mixed_sizes_need_hardly_more_than_the_two_largest() -> None:
    rows = build_covering_array(AllowedCells(plain_space(78, 4, 6, 4, 5)), 2, KEY)
    assert 78 * 6 <= len(rows) <= 78 * 6 * 1.1


def test_the_design_begins_with_the_array_and_goes_on_balanced() -> None:
    space = plain_space(4, 3, 3)
    sampler = Sampler(space, 5, "pairwise")
    drawn = [sampler.scenario(index) for index in range(sampler.covering + 36)]
    assert 12 <= sampler.covering <= 15
    begun = {(one["d0"], one["d1"]) for one in drawn[: sampler.covering]}
    assert len(begun) == 12
    assert len({tuple(one.values.values()) for one in drawn[sampler.covering :]}) == 36
    assert drawn == [Sampler(space, 5, "pairwise").scenario(index) for index in range(len(drawn))]
    assert Sampler(space, 5, "pairwise", 3).covering == 36
    assert drawn != [Sampler(space, 6, "pairwise").scenario(index) for index in range(len(drawn))]


def test_too_many_tuples_are_refused() -> None:
    with pytest.raises(SpaceError, match="would have to cover 1,600,000,000 combinations"):
        Sampler(plain_space(40_000, 40_000), 0, "pairwise")


def test_an_array_is_made_once_a_process() -> None:
    space = plain_space(5, 4, 3, 3)
    one, again, other = (Sampler(space, seed, "pairwise") for seed in (1, 1, 2))
    assert one._rows is again._rows
    assert one._rows is not other._rows
