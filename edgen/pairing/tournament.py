"""Which of a scenario's candidates meet: a seeded circulant design.

The candidates are put on a ring in an order that hangs on (seed, scenario, number) alone; neighbours at
distance 1 meet first, then those at distance 2, and so on. So every candidate has nearly the same number of
matches, the graph of matches is connected from K - 1 matches on, and a larger `wanted` only adds to a
smaller one (cyclic designs: David 1963, J. Austral. Math. Soc. 3).

Side a of a pair is the candidate with the lower number. Both orders are judged, so it is of no
consequence to a judge; that it is fixed keeps a pair the same pair in every run.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence

PER_CANDIDATE = 2  # matches a candidate, where no number is wanted; each has two candidates


def matches(numbers: Sequence[int], wanted: int | None, seed: int, scenario: int) -> list[tuple[int, int]]:
    """The pairs (a, b), a < b, to be judged, sorted by their slot; a number given twice counts once.

    None wants two matches a candidate. More than the K(K - 1) / 2 that there are is all of them.
    """
    ring = sorted(set(numbers), key=lambda number: _place(seed, scenario, number))
    count = len(ring)
    if wanted is None:
        wanted = PER_CANDIDATE * count
    chosen: list[tuple[int, int]] = []
    for i, j in _edges(count):
        if len(chosen) >= wanted:
            break
        one, other = ring[i], ring[j]
        chosen.append((min(one, other), max(one, other)))
    return sorted(chosen, key=lambda pair: slot(*pair))


def slot(a: int, b: int) -> int:
    """The place of the pair a < b in a list of all pairs that stays as it is when candidates are added."""
    if not 0 <= a < b:
        raise ValueError(f"a pair is two different numbers from 0 on, the lower first, not {a} and {b}")
    return b * (b - 1) // 2 + a


def sides(number: int) -> tuple[int, int]:
    """The pair a < b that `slot` gives this number."""
    b = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - b * (b - 1) // 2, b


def _place(seed: int, scenario: int, number: int) -> bytes:
    return hashlib.blake2b(f"tournament {seed} {scenario} {number}".encode(), digest_size=16).digest()


def _edges(count: int) -> Iterator[tuple[int, int]]:
    """All pairs of places on a ring, near ones first, so that any beginning gives all places their share."""
    for distance in range(1, count // 2 + 1):
        if 2 * distance == count:
            yield from ((i, i + distance) for i in range(distance))
        else:
            yield from _distance(count, distance)


def _distance(count: int, distance: int) -> Iterator[tuple[int, int]]:
    """The pairs at one distance. They form rings; each is gone round twice, every other pair at a time."""
    rings = math.gcd(count, distance)
    length = count // rings

    def pair(ring: int, step: int) -> tuple[int, int]:
        return (ring + step * distance) % count, (ring + (step + 1) * distance) % count

    odd = length % 2
    for step in range(0, length - odd, 2):
        yield from (pair(ring, step) for ring in range(rings))
    if odd:  # the place that was left over
        yield from (pair(ring, length - 1) for ring in range(rings))
    for step in range(1, length, 2):
        yield from (pair(ring, step) for ring in range(rings))
