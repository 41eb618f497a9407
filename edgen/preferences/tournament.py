"""Choice of the matches between a scenario's candidates: a seeded design in which all have their share.

The order of the candidates depends on (seed, scenario, name) alone; the order of matches is a fixed list of
places. In any beginning of it, the counts of matches of two candidates differ by at most 1; from K - 1
matches on all are linked; and a larger `wanted` only adds to a smaller one. If K is even, the list is the
rounds of a round-robin: each candidate plays once a round, and two successive rounds make one ring through
all (the circle method). If K is odd, it is Walecki's rings, each through all (Alspach 2008, Bull. Inst.
Combin. Appl. 52), every other match of a ring first.

Side a of a pair is the candidate that comes first. Both orders are judged, so this does not influence a
judge; it keeps a pair the same in every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

PER_CANDIDATE = 2  # matches a candidate, where no number is wanted; each has two candidates


def draw_matches(names: Sequence[T], wanted: int | None, seed: int, scenario: int) -> list[tuple[T, T]]:
    """Return the pairs (a, b) to judge, a before b in `names`; a repeated name counts once.

    None stands for two matches per candidate. A number above K(K - 1) / 2 stands for all.
    """
    order = {name: position for position, name in enumerate(dict.fromkeys(names))}
    places = sorted(order, key=lambda name: _hash_place(seed, scenario, name))
    count = len(places)
    if wanted is None:
        wanted = PER_CANDIDATE * count
    chosen: list[tuple[T, T]] = []
    for i, j in _iterate_edges(count):
        if len(chosen) >= wanted:
            break
        a, b = sorted((places[i], places[j]), key=order.__getitem__)
        chosen.append((a, b))
    return sorted(chosen, key=lambda pair: (order[pair[1]], order[pair[0]]))


def _hash_place(seed: int, scenario: int, name: object) -> bytes:
    return hashlib.blake2b(f"tournament {seed} {scenario} {name}".encode(), digest_size=16).digest()


def _iterate_edges(count: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of `count` places, in the order of the matches."""
    others = count - 1  # the last place stands in the middle, the others around it
    if count % 2:
        for turn in range(others // 2):
            yield from _iterate_ring([others, *((turn + step) % others for step in _iterate_zigzag(others))])
    else:
        for turn in range(others):
            yield turn, others
            for step in range(1, count // 2):
                yield (turn - step) % others, (turn + step) % others


def _iterate_zigzag(count: int) -> Iterator[int]:
    """0, 1, -1, 2, -2, ...: `count` steps from a place to one side and the other."""
    for k in range(count):
        yield (k + 1) // 2 if k % 2 else -(k // 2)


def _iterate_ring(places: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the edges of a ring of odd length: every other one, then the one to the remaining place and those
    between; last the closing one, since all are linked without it."""
    last = len(places) - 1
    for k in (*range(0, last, 2), *range(last - 1, 0, -2), last):
        yield places[k], places[(k + 1) % len(places)]
