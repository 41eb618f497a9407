"""Scenarios drawn from a space: scenario i depends on (seed, i, content of the space) alone.

Nothing is remembered between draws, so indices may be asked for in any order, on any machine, and
a larger N begins with the smaller N's scenarios. Three designs:

* `random`: each dimension is drawn by weight, with replacement, among the values that its conditions allow; what is
  excluded is drawn again.
* `balanced`: every allowed cell comes equally often, to within one, in every prefix, in a pseudo-random order.
  Weights play no part in it: all cells count alike, those of weight 0 too. Where conditions link so much that the
  allowed cells cannot be counted, values are drawn as in `random`, all weighing the same.
* `pairwise`: first a covering array, in which every allowed pair (or triple) of values occurs, then `balanced`.

The product is never built: the order is a keyed permutation of [0, cells), computed a point at a time.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Literal, Protocol

from edgen.core.errors import SpaceError
from edgen.core.values import Scenario
from edgen.space.cells import AllowedCells
from edgen.space.conditions import in_dependency_order, parents
from edgen.space.covering import covering_array
from edgen.space.dump import content_sha256
from edgen.space.model import Dimension, Space

Design = Literal["balanced", "random", "pairwise"]
MAX_DRAWS = 100_000  # of one scenario whose values are excluded
_MOST_KNOWN = 4096  # combinations of values above, for which a dimension's bounds are kept
ROUNDS = 6  # with four, some orders of five cells or fewer come visibly more often than others
_MASK = 2**64 - 1


def mix(value: int) -> int:
    """64 bits well mixed: the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    value &= _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


class Permutation:
    """A bijection of [0, size), chosen by `ROUNDS` keys of 64 bits each.

    A generalised Feistel network over Z_a x Z_b, with a and b near the square root of `size` and
    a*b just above it, and cycle walking for the points in between (Black and Rogaway, "Ciphers with
    arbitrary finite domains", 2002). Each round adds to one half a function of the other, which
    can be taken off again: so it is a bijection whatever `mix` does. For shuffling, not for
    secrets.
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
            if point < self.size:  # fewer than one point in sqrt(size) is walked on
                return point


class Sampler:
    """Scenarios of one space, seed and design. `space` must be valid, as from `load_space`.

    `cells` are those that the space allows; `covering` is how many scenarios the covering array of `pairwise` has.
    """

    def __init__(self, space: Space, seed: int, design: Design, strength: int = 2) -> None:
        name = design if design != "pairwise" else f"{design} {strength}"
        key = hashlib.blake2b(f"{name}/{seed}/{content_sha256(space)}".encode(), digest_size=32).digest()
        self.cells = AllowedCells(space)
        self._design: _Draws
        if design != "random" and self.cells.count is not None:
            self._design = _Balanced(self.cells, self.cells.count, key)
        else:
            self._design = _Random(space, key, weighted=design == "random")
        self._rows = _covering_rows(self.cells, strength, key) if design == "pairwise" else []
        self.covering = len(self._rows)
        self._values = [(dimension.name, dimension.values) for dimension in space.dimensions]
        self._fields = [
            (place, dimension.name, [entry.fields for entry in dimension.entries])
            for place, dimension in enumerate(space.dimensions)
            if dimension.fields
        ]

    def scenario(self, index: int) -> Scenario:
        """Scenario `index`, counted from 0. Raises ValueError below 0."""
        if index < 0:
            raise ValueError(f"a scenario's index counts from 0; {index} is below")
        if index < self.covering:
            return self.scenario_at(index, self._rows[index])
        return self.scenario_at(index, self._design.positions(index - self.covering))

    def scenario_at(self, index: int, positions: Sequence[int]) -> Scenario:
        """The scenario of these entries: the place of each dimension's."""
        values = {name: texts[at] for (name, texts), at in zip(self._values, positions, strict=True)}
        if not self._fields:
            return Scenario(index, values)
        said = ((name, entries[positions[place]]) for place, name, entries in self._fields)
        return Scenario(index, values, {name: fields for name, fields in said if fields})


# The covering arrays of this process, by all that they depend on.
_ARRAYS: dict[bytes, list[tuple[int, ...]]] = {}


def _covering_rows(cells: AllowedCells, strength: int, key: bytes) -> list[tuple[int, ...]]:
    """The covering array, made once: it may take seconds, and every arm and every look at a plan wants it."""
    if key not in _ARRAYS:
        _ARRAYS[key] = covering_array(cells, strength, key)
    return _ARRAYS[key]


class _Draws(Protocol):
    def positions(self, index: int) -> Sequence[int]:
        """The place of each dimension's entry."""


class _Random:
    """Weighted draws with replacement of one dimension after the other, each among the values that its conditions allow,
    64 bits a dimension.

    What is excluded is drawn again, MAX_DRAWS times at most.
    """

    def __init__(self, space: Space, key: bytes, *, weighted: bool) -> None:
        self._key = key
        self._conditional = space.conditional
        places = {dimension.name: place for place, dimension in enumerate(space.dimensions)}
        self._order = [
            _Draw(place, space.dimensions[place], places, weighted=weighted)
            for place in in_dependency_order(space)
        ]
        self._dimensions = space.dimensions
        self._excluded = [
            [(places[name], frozenset(values)) for name, values in combination.items()]
            for combination in space.exclude
        ]

    def positions(self, index: int) -> list[int]:
        if not self._conditional:
            return self._drawn(str(index))
        for attempt in range(MAX_DRAWS):
            found = self._drawn(f"{index}/{attempt}")
            if not any(self._matches(found, combination) for combination in self._excluded):
                return found
        raise SpaceError(
            "exclude", f"{MAX_DRAWS:,} draws in a row were excluded; use `design: balanced`, or exclude less."
        )

    def _drawn(self, name: str) -> list[int]:
        found = [0] * len(self._order)
        draws = _draws(self._key, name, len(self._order))
        for draw, bits in zip(self._order, draws, strict=True):
            found[draw.place] = draw.position(found, self._dimensions, bits)
        return found

    def _matches(self, found: Sequence[int], combination: Iterable[tuple[int, frozenset[str]]]) -> bool:
        return all(
            self._dimensions[place].entries[found[place]].value in values for place, values in combination
        )


class _Draw:
    """How one dimension is drawn, given what is drawn of those that its conditions name."""

    def __init__(
        self, place: int, dimension: Dimension, places: Mapping[str, int], *, weighted: bool
    ) -> None:
        self.place = place
        self._entries = dimension.entries
        self._weights = [entry.weight if weighted else 1.0 for entry in dimension.entries]
        self._above = [places[name] for name in parents(dimension)]
        self._when = [
            [(places[name], frozenset(values)) for name, values in entry.when.items()]
            for entry in dimension.entries
        ]
        self._known: dict[tuple[str, ...], list[int]] = {}

    def position(self, found: Sequence[int], dimensions: Sequence[Dimension], bits: int) -> int:
        key = tuple([dimensions[place].entries[found[place]].value for place in self._above])
        thresholds = self._known.get(key)
        if thresholds is None:
            drawn = dict(zip(self._above, key, strict=True))
            fits = [all(drawn[place] in values for place, values in when) for when in self._when]
            weights = [weight if fit else 0.0 for weight, fit in zip(self._weights, fits, strict=True)]
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            thresholds = self._known[key] = _thresholds(weights)
        return bisect_right(thresholds, bits)


class _Balanced:
    """Pass after pass over all allowed cells, each pass in an order of its own."""

    def __init__(self, cells: AllowedCells, count: int, key: bytes) -> None:
        self._key = key
        self._cells = cells
        self._count = count
        self._latest = (0, self._order(0))

    def positions(self, index: int) -> list[int]:
        number, rank = divmod(index, self._count)
        latest, order = self._latest
        if number != latest:
            order = self._order(number)
            self._latest = (number, order)
        return self._cells.positions(order(rank))

    def _order(self, number: int) -> Permutation:
        digest = hashlib.blake2b(str(number).encode(), digest_size=8 * ROUNDS, key=self._key).digest()
        return Permutation(self._count, struct.unpack(f"<{ROUNDS}Q", digest))


def _draws(key: bytes, name: str, size: int) -> tuple[int, ...]:
    """So many numbers of 64 bits, from one keyed hash."""
    if size <= 8:
        digest = hashlib.blake2b(name.encode(), digest_size=8 * size, key=key).digest()
    else:
        digest = hashlib.shake_256(key + name.encode()).digest(8 * size)
    return struct.unpack(f"<{size}Q", digest)


def _thresholds(weights: Iterable[float]) -> list[int]:
    """Upper bounds t, rising to 2**64: a 64-bit draw d falls to the first entry with d < t.

    In exact arithmetic, so that every machine draws the same, sums cannot overflow, and an entry of
    weight 0 is never drawn.
    """
    sums = list(accumulate(map(Fraction, weights)))
    if not sums[-1]:
        raise SpaceError("when", "the conditions leave no value that could be drawn.")
    return [math.floor(partial / sums[-1] * 2**64) for partial in sums]
