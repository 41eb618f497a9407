"""Which of a scenario's candidates meet: a seeded design in which all have their share of matches.

The candidates get places in an order that hangs on (seed, scenario, number) alone; who meets next is a fixed
list of places. Of any beginning of it, the numbers of matches of two candidates differ by at most 1; from
K - 1 matches on all are linked; and a larger `wanted` only adds to a smaller one.

Where K is even, the list is the rounds of a round-robin: everybody plays once a round, and two rounds that
follow each other make one ring through all (the circle method). Where K is odd, it is Walecki's rings, each
through all (Alspach 2008, Bull. Inst. Combin. Appl. 52), every other match of a ring first.

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
    places = sorted(set(numbers), key=lambda number: _place(seed, scenario, number))
    count = len(places)
    if wanted is None:
        wanted = PER_CANDIDATE * count
    chosen: list[tuple[int, int]] = []
    for i, j in _edges(count):
        if len(chosen) >= wanted:
            break
        one, other = places[i], places[j]
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
    """All pairs of `count` places, in the order in which they are to meet."""
    others = count - 1  # the last place stands in the middle, the others around it
    if count % 2:
        for turn in range(others // 2):
            yield from _ring([others, *((turn + step) % others for step in _zigzag(others))])
    else:
        for turn in range(others):
            yield turn, others
            for step in range(1, count // 2):
                yield (turn - step) % others, (turn + step) % others


def _zigzag(count: int) -> Iterator[int]:
    """0, 1, -1, 2, -2, ...: `count` steps from a place to one side and the other."""
    for k in range(count):
        yield (k + 1) // 2 if k % 2 else -(k // 2)


def _ring(places: list[int]) -> Iterator[tuple[int, int]]:
    """The edges of a ring of odd length: every other one, then the one to the place left over and those
    between; last the one that closes it, for without it all are linked already."""
    last = len(places) - 1
    for k in (*range(0, last, 2), *range(last - 1, 0, -2), last):
        yield places[k], places[(k + 1) % len(places)]
