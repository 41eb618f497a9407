"""The designs of scenarios besides the usual one: drawn at random, and balanced over the allowed cells.

The product of the dimensions is never built: a balanced order is a keyed permutation of [0, cells).
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from edgen.core.errors import SpaceError
from edgen.space.cells import AllowedCells
from edgen.space.conditions import list_parents, order_by_dependency
from edgen.space.model import Dimension, Space
from edgen.space.permutation import Permutation, derive_permutation

MAX_DRAWS = 100_000  # draws of a scenario until no exclusion matches
_MOST_KNOWN = 4096  # combinations of earlier values for which a dimension's thresholds are kept


class RandomDraws:
    """Weighted draws with replacement. Each dimension is drawn among the values that its conditions allow,
    with 64 bits.

    A scenario with an excluded combination is drawn again, at most MAX_DRAWS times.
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


class BalancedDraws:
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


def _hash_draws(key: bytes, name: str, size: int) -> tuple[int, ...]:
    """Return `size` numbers of 64 bits from one keyed hash."""
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
