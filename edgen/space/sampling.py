"""Scenarios drawn from a space: scenario i depends only on (seed, i, content of the space).

No state is kept between draws, so indices may come in any order, on any machine, and a larger N begins with
the smaller N's scenarios. Four designs:

* `even`: every value of every dimension is equally frequent, to within one, in every prefix (`even_design`).
* `random`: each dimension is drawn by weight, with replacement, among the values that its conditions allow;
  excluded combinations are drawn again.
* `balanced`: every allowed cell is equally frequent, to within one, in every prefix, in a pseudo-random
  order. It ignores weights: all cells count alike, also those of weight 0. If there are too many links to
  count the allowed cells, values are drawn as in `random`, with equal weights.
* `pairwise`: first a covering array, in which every allowed pair (or triple) of values occurs, then
  `balanced`.

The product is never built: the order is a keyed permutation of [0, cells), computed a point at a time.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Literal, Protocol

from edgen.core.errors import SpaceError
from edgen.core.values import Scenario
from edgen.space.cells import AllowedCells
from edgen.space.conditions import list_parents, order_by_dependency
from edgen.space.covering import build_covering_array
from edgen.space.even_design import EvenDraws, mix
from edgen.space.linked_draws import list_linked_draws
from edgen.space.model import Dimension, Space
from edgen.space.parse import digest_content

Design = Literal["even", "balanced", "random", "pairwise"]
MAX_DRAWS = 100_000  # draws of one scenario with excluded values
_MOST_KNOWN = 4096  # combinations of earlier values for which a dimension's bounds are kept
ROUNDS = 6  # with four, some orders of five or fewer points are visibly more frequent than others


class Sampler:
    """The scenarios of one space, seed and design. `space` must be valid, as from `load_space`.

    `covering` is the number of scenarios in the covering array of `pairwise`.
    """

    def __init__(self, space: Space, seed: int, design: Design, strength: int = 2) -> None:
        name = design if design != "pairwise" else f"{design} {strength}"
        key = hashlib.blake2b(f"{name}/{seed}/{digest_content(space)}".encode(), digest_size=32).digest()
        self._space = space
        self._design: _Draws
        if design == "even" and not space.conditional:
            self._design = EvenDraws(space, key)
        elif design == "random" or self.cells.count is None:
            self._design = _Random(space, key, weighted=design in ("random", "even"))
        elif design == "even":
            self._design = EvenDraws(space, key, list_linked_draws(space, self.cells, key))
        else:
            self._design = _Balanced(self.cells, self.cells.count, key)
        self._rows = _make_covering_rows(self.cells, strength, key) if design == "pairwise" else []
        self.covering = len(self._rows)
        self._values = [(dimension.name, dimension.values) for dimension in space.dimensions]
        self._fields = [
            (place, dimension.name, [entry.fields for entry in dimension.entries])
            for place, dimension in enumerate(space.dimensions)
            if dimension.fields
        ]

    @cached_property
    def cells(self) -> AllowedCells:
        """The allowed cells."""
        return AllowedCells(self._space)

    def scenario(self, index: int) -> Scenario:
        """Return scenario `index`, counted from 0. Raises ValueError below 0."""
        if index < 0:
            raise ValueError(f"a scenario's index counts from 0; {index} is below")
        if index < self.covering:
            return self.make_scenario(index, self._rows[index])
        return self.make_scenario(index, self._design.list_positions(index - self.covering))

    def make_scenario(self, index: int, positions: Sequence[int]) -> Scenario:
        """Return the scenario of these entries: the place of each dimension's."""
        values = {name: texts[at] for (name, texts), at in zip(self._values, positions, strict=True)}
        if not self._fields:
            return Scenario(index, values)
        said = ((name, entries[positions[place]]) for place, name, entries in self._fields)
        return Scenario(index, values, {name: fields for name, fields in said if fields})


# The covering arrays of this process, by everything that determines them.
_ARRAYS: dict[bytes, list[tuple[int, ...]]] = {}


def _make_covering_rows(cells: AllowedCells, strength: int, key: bytes) -> list[tuple[int, ...]]:
    """Return the covering array, made once: it may take seconds, and every arm and plan uses it."""
    if key not in _ARRAYS:
        _ARRAYS[key] = build_covering_array(cells, strength, key)
    return _ARRAYS[key]


class _Draws(Protocol):
    def list_positions(self, index: int) -> Sequence[int]:
        """Return the place of each dimension's entry."""


class _Random:
    """Weighted draws with replacement, dimension by dimension, each among the values that its conditions
    allow, 64 bits per dimension.

    Excluded combinations are drawn again, at most MAX_DRAWS times.
    """

    def __init__(self, space: Space, key: bytes, *, weighted: bool) -> None:
        self._key = key
        self._conditional = space.conditional
        places = {dimension.name: place for place, dimension in enumerate(space.dimensions)}
        self._order = [
            _Draw(place, space.dimensions[place], places, weighted=weighted)
            for place in order_by_dependency(space)
        ]
        self._dimensions = space.dimensions
        self._excluded = [
            [(places[name], frozenset(values)) for name, values in combination.items()]
            for combination in space.exclude
        ]

    def list_positions(self, index: int) -> list[int]:
        if not self._conditional:
            return self._draw_places(str(index))
        for attempt in range(MAX_DRAWS):
            found = self._draw_places(f"{index}/{attempt}")
            if not any(self._is_match(found, combination) for combination in self._excluded):
                return found
        raise SpaceError(
            "exclude", f"{MAX_DRAWS:,} draws in a row were excluded; use `design: balanced`, or exclude less."
        )

    def _draw_places(self, name: str) -> list[int]:
        found = [0] * len(self._order)
        draws = _hash_draws(self._key, name, len(self._order))
        for draw, bits in zip(self._order, draws, strict=True):
            found[draw.place] = draw.choose_position(found, self._dimensions, bits)
        return found

    def _is_match(self, found: Sequence[int], combination: Iterable[tuple[int, frozenset[str]]]) -> bool:
        return all(
            self._dimensions[place].entries[found[place]].value in values for place, values in combination
        )


class _Draw:
    """The draw of one dimension, given the drawn values in its conditions."""

    def __init__(
        self, place: int, dimension: Dimension, places: Mapping[str, int], *, weighted: bool
    ) -> None:
        self.place = place
        self._entries = dimension.entries
        self._weights = [entry.weight if weighted else 1.0 for entry in dimension.entries]
        self._above = [places[name] for name in list_parents(dimension)]
        self._when = [
            [(places[name], frozenset(values)) for name, values in entry.when.items()]
            for entry in dimension.entries
        ]
        self._known: dict[tuple[str, ...], list[int]] = {}

    def choose_position(self, found: Sequence[int], dimensions: Sequence[Dimension], bits: int) -> int:
        key = tuple([dimensions[place].entries[found[place]].value for place in self._above])
        thresholds = self._known.get(key)
        if thresholds is None:
            drawn = dict(zip(self._above, key, strict=True))
            fits = [all(drawn[place] in values for place, values in when) for when in self._when]
            weights = [weight if fit else 0.0 for weight, fit in zip(self._weights, fits, strict=True)]
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            thresholds = self._known[key] = _compute_thresholds(weights)
        return bisect_right(thresholds, bits)


class _Balanced:
    """Passes over all allowed cells, each in its own order."""

    def __init__(self, cells: AllowedCells, count: int, key: bytes) -> None:
        self._key = key
        self._cells = cells
        self._count = count
        self._latest = (0, self._make_order(0))

    def list_positions(self, index: int) -> list[int]:
        number, rank = divmod(index, self._count)
        latest, order = self._latest
        if number != latest:
            order = self._make_order(number)
            self._latest = (number, order)
        return self._cells.positions(order(rank))

    def _make_order(self, number: int) -> Permutation:
        return derive_permutation(self._count, str(number), self._key)


class Permutation:
    """A bijection of [0, size), determined by `ROUNDS` keys of 64 bits each.

    A generalised Feistel network over Z_a x Z_b, with a and b near the square root of `size` and a*b just
    above it, and cycle walking for the points in between (Black and Rogaway, "Ciphers with arbitrary finite
    domains", 2002). Each round adds to one half a function of the other, which can be subtracted again, so it
    is a bijection for any `mix`. For shuffling, not for secrets.
    """

    def __init__(self, size: int, keys: Sequence[int]) -> None:
        self.size = size
        self.a = math.isqrt(size - 1) + 1
        self.b = -(-size // self.a)
        self.rounds = tuple(zip(keys[::2], keys[1::2], strict=True))

    def __call__(self, point: int) -> int:
        a, b = self.a, self.b
        while True:
            left, right = divmod(point, b)
            for key, next_key in self.rounds:
                left = (left + mix(right + key)) % a
                right = (right + mix(left + next_key)) % b
            point = left * b + right
            if point < self.size:  # fewer than one point in sqrt(size) needs another round
                return point


def derive_permutation(size: int, name: str, key: bytes) -> Permutation:
    """Return the permutation of [0, size) determined by a name and a key of at most 64 bytes."""
    digest = hashlib.blake2b(name.encode(), digest_size=8 * ROUNDS, key=key).digest()
    return Permutation(size, struct.unpack(f"<{ROUNDS}Q", digest))


def _hash_draws(key: bytes, name: str, size: int) -> tuple[int, ...]:
    """Return this many numbers of 64 bits, from one keyed hash."""
    if size <= 8:
        digest = hashlib.blake2b(name.encode(), digest_size=8 * size, key=key).digest()
    else:
        digest = hashlib.shake_256(key + name.encode()).digest(8 * size)
    return struct.unpack(f"<{size}Q", digest)


def _compute_thresholds(weights: Iterable[float]) -> list[int]:
    """Return upper bounds t, rising to 2**64: a 64-bit draw d selects the first entry with d < t.

    Exact arithmetic gives equal draws on every machine, avoids overflow, and never draws an entry of weight
    0.
    """
    sums = list(accumulate(map(Fraction, weights)))
    if not sums[-1]:
        raise SpaceError("when", "the conditions leave no value that could be drawn.")
    return [math.floor(partial / sums[-1] * 2**64) for partial in sums]
