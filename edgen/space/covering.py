"""Covering arrays: few cells in which every allowed pair (or triple) of values occurs.

Cells are made one at a time, each the best of several candidates that grow greedily from the values in most
uncovered tuples (AETG: Cohen, Dalal, Fredman and Patton, IEEE Transactions on Software Engineering 23, 1997).
If nothing is ruled out, cells of a known construction (`covering_constructions`) are tried first, and the
smaller array is used. The same space, strength and key give the same array on every machine.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from edgen.core.errors import SpaceError
from edgen.space.cells import AllowedCells
from edgen.space.covering_constructions import construct_rows, list_affine_maps

MAX_TUPLES = 1_000_000  # tuples to be covered
_EFFORT = 4_000  # approximate total of candidate cells
_MOST_CANDIDATES = 40  # candidates per cell
_MOST_DEVELOPED = 200  # cells of the smallest possible array: above, none is developed
_RESTARTS = 5  # arrays, of which the smallest is used
_DEVELOPED = ((1, 60), (10, 20))  # candidates per cell, and the number of arrays developed with them

Row = tuple[int, ...]  # the place of each dimension's entry
_Part = tuple[int, ...]  # dimensions, then their places: one value fewer than a tuple


def build_covering_array(cells: AllowedCells, strength: int, key: bytes) -> list[Row]:
    """Return cells that cover every allowed combination of values of any `strength` dimensions.

    Raises SpaceError if there are too many, or if the space's conditions are too many to follow.
    """
    sizes = [len(dimension.entries) for dimension in cells.dimensions]
    strength = min(strength, len(sizes))
    tuples = sum(math.prod(chosen) for chosen in combinations(sizes, strength))
    if tuples > MAX_TUPLES:
        raise SpaceError(
            "design",
            f"`pairwise` with strength {strength} would have to cover {tuples:,} combinations of values; at "
            f"most {MAX_TUPLES:,} are covered. Use `design: balanced`, or fewer values.",
        )
    if cells.count is None:
        raise SpaceError("design", "`pairwise` cannot follow so many conditions; use `design: random`.")
    if strength == 1 or cells.count == 1:
        return [tuple(cells.positions(rank)) for rank in range(cells.count)]
    least = math.prod(sorted(sizes)[-strength:])
    candidates = min(_MOST_CANDIDATES, max(1, _EFFORT // least))
    restarts = min(_RESTARTS, max(1, _EFFORT // (candidates * least)))
    rng = random.Random(key)  # noqa: S311 - reproducible, not secret
    start = _list_uncovered(cells, sizes, strength)
    known = [] if cells.linked else construct_rows(sizes, strength)
    found = [_Builder(start.copy(), cells, rng, candidates).build_array(known)] if known else []
    if not found or len(found[0]) > 1.15 * least:
        if (
            strength == 3
            and not cells.linked
            and len({*sizes}) == 1
            and least <= _MOST_DEVELOPED
            and (maps := list_affine_maps(sizes[0]))
        ):
            for many, times in _DEVELOPED:
                found += [_Builder(start.copy(), cells, rng, many).develop_array(maps) for _ in range(times)]
        found += [_Builder(start.copy(), cells, rng, candidates).build_array(()) for _ in range(restarts)]
    return min(found, key=len)


@dataclass(slots=True)
class _Uncovered:
    """The tuples that no cell covers yet.

    `lanes[part][dimension]` has 16 bits per place: 1 if no cell covers the part with this place of this
    dimension. So one addition counts for all places at once. `left[part]` is the number of a part's uncovered
    tuples.
    """

    sizes: Sequence[int]
    strength: int
    lanes: dict[_Part, list[int]]
    left: dict[_Part, int]

    def copy(self) -> _Uncovered:
        """Return an independent copy."""
        lanes = {part: lanes.copy() for part, lanes in self.lanes.items()}
        return _Uncovered(self.sizes, self.strength, lanes, self.left.copy())

    def cover(self, row: Row) -> bool:
        """Mark a cell's tuples as covered; return whether any was uncovered."""
        new = False
        for part in self.iterate_parts(row):
            lanes = self.lanes[part]
            for other, place in enumerate(row):
                bit = 1 << (16 * place)
                if lanes[other] & bit:
                    lanes[other] ^= bit
                    self.left[part] -= 1
                    new = True
        return new

    def iterate_parts(self, row: Row) -> Iterator[_Part]:
        """Yield the parts of a cell: all its combinations of `strength` - 1 values."""
        for dimensions in combinations(range(len(row)), self.strength - 1):
            yield *dimensions, *[row[one] for one in dimensions]


def _list_uncovered(cells: AllowedCells, sizes: Sequence[int], strength: int) -> _Uncovered:
    """Return all tuples of allowed cells."""
    lanes = {}
    for dimensions in combinations(range(len(sizes)), strength - 1):
        for places in product(*[range(sizes[one]) for one in dimensions]):
            fixed = dict(zip(dimensions, places, strict=True))
            lanes[*dimensions, *places] = [
                _mark_possible_places(cells, fixed, other, size) for other, size in enumerate(sizes)
            ]
    left = {part: sum(lane.bit_count() for lane in own) for part, own in lanes.items()}
    return _Uncovered(sizes, strength, lanes, left)


def _mark_possible_places(cells: AllowedCells, fixed: dict[int, int], other: int, size: int) -> int:
    """Return 16 bits for each place of dimension `other`: 1 if the place is possible with the fixed ones."""
    if other in fixed:
        return 0
    return sum(1 << (16 * place) for place in range(size) if cells.is_possible({**fixed, other: place}))


class _Builder:
    """A builder of one array."""

    def __init__(
        self, uncovered: _Uncovered, cells: AllowedCells, rng: random.Random, candidates: int
    ) -> None:
        self._uncovered = uncovered
        self._cells = cells
        self._rng = rng
        self._candidates = candidates

    def build_array(self, known: Sequence[Sequence[int | None]]) -> list[Row]:
        """Return an array that begins with the rows of a known construction. None in a row is any place."""
        rows = []
        for partial in sorted(known, key=lambda row: sum(place is None for place in row)):
            grown, _ = self._grow_cell({one: place for one, place in enumerate(partial) if place is not None})
            if self._uncovered.cover(grown):
                rows.append(grown)
        while (row := self._choose_next_row()) is not None:
            self._uncovered.cover(row)
            rows.append(row)
        return rows

    def develop_array(self, maps: Sequence[Sequence[int]]) -> list[Row]:
        """Return an array that contains, with every cell, its images under the maps, place by place. A cell's
        images cover the images of its tuples (Chateauneuf and Kreher, Journal of Combinatorial Designs 10,
        2002)."""
        rows: list[Row] = []
        new: Row | None = (0,) * len(self._uncovered.sizes)
        while new is not None:
            for row in dict.fromkeys(tuple([image[place] for place in new]) for image in maps):
                self._uncovered.cover(row)
                rows.append(row)
            new = self._choose_next_row()
        return rows

    def _choose_next_row(self) -> Row | None:
        """Return the best of several cells that contain one of the parts with most uncovered tuples; None if
        no tuple is uncovered."""
        most = max(self._uncovered.left.values())
        if not most:
            return None
        parts = [one for one, left in self._uncovered.left.items() if left == most]
        known = self._uncovered.strength - 1
        rows = []
        for _ in range(self._candidates):
            start = parts[int(self._rng.random() * len(parts))]
            rows.append(self._grow_cell(dict(zip(start[:known], start[known:], strict=True))))
        return max(rows, key=lambda grown: grown[1])[0]

    def _grow_cell(self, chosen: dict[int, int]) -> tuple[Row, int]:
        """Complete a cell that has the chosen places. Return it, and the number of tuples that it newly
        covers.

        The other dimensions are filled in random order, each with the place that covers most with the
        previous ones.
        """
        sizes, lanes = self._uncovered.sizes, self._uncovered.lanes
        chosen = dict(chosen)
        waiting = [one for one in range(len(sizes)) if one not in chosen]
        waiting.sort(key=lambda _: self._rng.random())
        scores = dict.fromkeys(waiting, 0)
        for dimensions in combinations(sorted(chosen), self._uncovered.strength - 1):
            own = lanes[*dimensions, *[chosen[one] for one in dimensions]]
            for other in waiting:
                scores[other] += own[other]
        gain = 0
        while waiting:
            dimension = waiting.pop()
            chosen[dimension] = place = self._choose_place(chosen, dimension, scores[dimension])
            gain += scores[dimension] >> (16 * place) & 0xFFFF
            before = [one for one in chosen if one != dimension]
            for rest in combinations(before, self._uncovered.strength - 2):
                dimensions = tuple(sorted((*rest, dimension)))
                own = lanes[*dimensions, *[chosen[one] for one in dimensions]]
                for other in waiting:
                    scores[other] += own[other]
        return tuple([chosen[one] for one in range(len(sizes))]), gain

    def _choose_place(self, chosen: dict[int, int], dimension: int, score: int) -> int:
        """Return one of the possible places with the highest score, at random."""
        size = self._uncovered.sizes[dimension]
        scores = struct.unpack(f"<{size}H", score.to_bytes(2 * size, "little"))
        highest = max(scores)
        best = [place for place, one in enumerate(scores) if one == highest]
        place = best[int(self._rng.random() * len(best))]
        if not self._cells.linked or self._cells.is_possible({**chosen, dimension: place}):
            return place
        order = sorted(range(size), key=lambda one: (-scores[one], self._rng.random()))
        return next(one for one in order if self._cells.is_possible({**chosen, dimension: one}))
