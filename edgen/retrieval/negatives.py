"""Wrong answers for a context: drawn uniformly without replacement, and never one that is right.

The rules are those of MSDialog's own program (Yang et al., SIGIR 2018): no text of fewer than three or more than four
hundred words, none twice, and no more than ten thousand draws. Besides, what says nearly the same as a right answer
counts as right.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from edgen.core.digest import hash64
from edgen.reading.detect import words
from edgen.retrieval.candidates import Candidates

FEWEST_WORDS, MOST_WORDS = 3, 400
MOST_DRAWS = 10_000
ALIKE = 0.8  # the Jaccard index of word 3-grams at which texts are nearly the same, as in `edgen stats`
_SHINGLE = 3

Shingles = frozenset[tuple[str, ...]]


def draw_negatives(
    candidates: Candidates, among: Sequence[int], right: Iterable[str], count: int, seed: str
) -> list[str] | None:
    """So many texts of those with the numbers `among`, none of which is right; None where there are not so many. The
    same `seed`, the same draws."""
    rng = random.Random(hash64(seed))  # noqa: S311 - a draw that can be made again
    answers = [_shingles(words(text)) for text in right]
    drawn: list[str] = []
    taken: set[tuple[str, ...]] = set()
    for number in _draws(rng, among):
        text = candidates.texts[number]
        said = words(text)
        if not FEWEST_WORDS <= len(said) <= MOST_WORDS or (known := tuple(said)) in taken:
            continue
        shingles = _shingles(said)
        if any(_similarity(shingles, answer) >= ALIKE for answer in answers):
            continue
        taken.add(known)
        drawn.append(text)
        if len(drawn) == count:
            return drawn
    return None


def _draws(rng: random.Random, among: Sequence[int]) -> Iterator[int]:
    """One after the other without replacement, MOST_DRAWS at most: a shuffle that is made as far as it is read."""
    moved: dict[int, int] = {}
    last = len(among) - 1
    for at in range(min(len(among), MOST_DRAWS)):
        place = rng.randint(at, last)
        yield among[moved.get(place, place)]
        moved[place] = moved.pop(at, at)


def are_alike(a: str, b: str) -> bool:
    """Whether two texts say the same, or nearly."""
    return _similarity(_shingles(words(a)), _shingles(words(b))) >= ALIKE


def _shingles(said: Sequence[str]) -> Shingles:
    if len(said) < _SHINGLE:
        return frozenset({tuple(said)})
    return frozenset(zip(said, said[1:], said[2:], strict=False))


def _similarity(a: Shingles, b: Shingles) -> float:
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)
