"""Choice of the matches between a scenario's candidates: a seeded design in which all candidates take equal
part.

The order of the candidates depends only on (seed, scenario, name). The order of matches is a fixed list of
places. In every prefix of the list, two candidates' counts of matches differ by at most 1. From K - 1 matches
on, all candidates are connected. A larger `wanted` only adds matches. For even K the list has the rounds of a
round-robin (circle method): each candidate plays once per round, and two successive rounds form one ring
through all. For odd K it has Walecki's rings, each through all (Alspach 2008, Bull. Inst. Combin. Appl. 52),
with every other match of a ring first.

Side a of a pair is the candidate that comes first. Both orders are judged, so this does not influence a
judge. It keeps a pair the same in every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

PER_CANDIDATE = 2  # default number of matches for each candidate; each match has two candidates


def draw_matches(names: Sequence[T], wanted: int | None, seed: int, scenario: int) -> list[tuple[T, T]]:
    """Return the pairs (a, b) to judge, with a before b in `names`; repeated names count once.

    None stands for two matches per candidate. A number above K(K - 1) / 2 stands for all pairs.
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
    others = count - 1  # the last place is the centre, the others are a circle around it
    if count % 2:
        for turn in range(others // 2):
            yield from _iterate_ring([others, *((turn + step) % others for step in _iterate_zigzag(others))])
    else:
        for turn in range(others):
            yield turn, others
            for step in range(1, count // 2):
                yield (turn - step) % others, (turn + step) % others


def _iterate_zigzag(count: int) -> Iterator[int]:
    """Yield 0, 1, -1, 2, -2, ...: `count` places in a zigzag."""
    for k in range(count):
        yield (k + 1) // 2 if k % 2 else -(k // 2)


def _iterate_ring(places: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the edges of a ring of odd length: every other edge first, then the rest in reverse order. The
    closing edge is last, since the others already connect all places."""
    last = len(places) - 1
    for k in (*range(0, last, 2), *range(last - 1, 0, -2), last):
        yield places[k], places[(k + 1) % len(places)]
