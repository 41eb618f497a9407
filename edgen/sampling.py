"""Scenarios drawn from a preference space: scenario i depends on (seed, i, content of the space) alone.

Nothing is remembered between draws, so indices may be asked for in any order, on any machine, and
a larger N begins with the smaller N's scenarios. Two designs:

* `random`: each dimension is drawn on its own, by weight, with replacement.
* `balanced`: every cell of the product of the five lists comes equally often, to within one, in
  every prefix, in a pseudo-random order. Weights play no part in it: all cells count alike, those
  of weight 0 too.

The product is never built: the order is a keyed permutation of [0, cells), computed a point at a time.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from edgen.model import Scenario
from edgen.space import Entry, Space, content_sha256

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
    """Scenarios of one space, seed and design. `space` must be valid, as from `load_space`."""

    def __init__(self, space: Space, seed: int, design: Literal["balanced", "random"]) -> None:
        key = hashlib.blake2b(f"{design}/{seed}/{content_sha256(space)}".encode(), digest_size=32).digest()
        self._design = _Balanced(space, key) if design == "balanced" else _Random(space, key)
        self._topics = space.topics
        self._others = [tuple(entry.value for entry in entries) for entries in space.dimensions[1:]]

    def scenario(self, index: int) -> Scenario:
        """Scenario `index`, counted from 0. Raises ValueError below 0."""
        if index < 0:
            raise ValueError(f"a scenario's index counts from 0; {index} is below")
        topic_at, *others_at = self._design.positions(index)
        topic = self._topics[topic_at]
        preference, reaction, teacher_preference, teacher_reaction = self._others
        return Scenario(
            index,
            topic.value,
            preference[others_at[0]],
            reaction[others_at[1]],
            teacher_preference[others_at[2]],
            teacher_reaction[others_at[3]],
            topic.subject,
            topic.level,
        )


class _Random:
    """Weighted draws with replacement, from one keyed hash an index, 64 bits a dimension."""

    def __init__(self, space: Space, key: bytes) -> None:
        self._key = key
        self._thresholds = [_thresholds(entries) for entries in space.dimensions]

    def positions(self, index: int) -> list[int]:
        digest = hashlib.blake2b(str(index).encode(), digest_size=40, key=self._key).digest()
        draws = struct.unpack("<5Q", digest)
        return [bisect_right(*pair) for pair in zip(self._thresholds, draws, strict=True)]


class _Balanced:
    """Pass after pass over all cells, each pass in an order of its own."""

    def __init__(self, space: Space, key: bytes) -> None:
        self._key = key
        self._sizes = [len(entries) for entries in space.dimensions]
        self._cells = space.cells
        self._latest = (0, self._order(0))

    def positions(self, index: int) -> list[int]:
        number, rank = divmod(index, self._cells)
        latest, order = self._latest
        if number != latest:
            order = self._order(number)
            self._latest = (number, order)
        rest = order(rank)
        found = []
        for size in self._sizes:
            rest, position = divmod(rest, size)
            found.append(position)
        return found

    def _order(self, number: int) -> Permutation:
        digest = hashlib.blake2b(str(number).encode(), digest_size=8 * ROUNDS, key=self._key).digest()
        return Permutation(self._cells, struct.unpack(f"<{ROUNDS}Q", digest))


def _thresholds(entries: tuple[Entry, ...]) -> list[int]:
    """Upper bounds t, rising to 2**64: a 64-bit draw d falls to the first entry with d < t.

    In exact arithmetic, so that every machine draws the same, sums cannot overflow, and an entry of
    weight 0 is never drawn.
    """
    sums = list(accumulate(Fraction(entry.weight) for entry in entries))
    return [math.floor(partial / sums[-1] * 2**64) for partial in sums]
