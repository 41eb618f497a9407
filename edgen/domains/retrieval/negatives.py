"""Wrong answers for a context: drawn uniformly without replacement, and never one that is right.

The rules are those of MSDialog's own program (Yang et al., SIGIR 2018): none twice, and no more than ten
thousand draws; its limits on length are what MSDialog's format asks for. Besides, what says nearly the same
as a right answer counts as right.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from edgen.domains.retrieval.candidates import CandidatePool, TextFeatures, look_at
from edgen.plugin.texts import ALIKE, are_alike, hash64

MOST_DRAWS = 10_000


class WrongAnswers:
    """Up to `count` texts for one context, which may be drawn from several groups, one after the other: none
    is right, or nearly so, and no two have the same words. The same `seed`, the same draws. `lengths`: how
    many words each may have."""

    def __init__(
        self,
        candidates: CandidatePool,
        right: Iterable[str],
        count: int,
        seed: str,
        lengths: range | None = None,
    ) -> None:
        self.texts: list[str] = []
        self._candidates, self._count, self._lengths = candidates, count, lengths
        self._right = [(text, look_at(text)) for text in right]
        self._taken = {looks.form for _, looks in self._right}
        self._rng = random.Random(hash64(seed))  # noqa: S311 - a draw that can be made again

    @property
    def enough(self) -> bool:
        """True once there are as many texts as were wanted."""
        return len(self.texts) == self._count

    def draw(self, among: Sequence[int]) -> None:
        """Draw from these numbers until there are enough."""
        if self.enough:
            return
        for number in _iterate_draws(self._rng, among):
            if self._take(self._candidates.texts[number], self._candidates.looks(number)):
                return

    def take(self, texts: Iterable[str]) -> None:
        """Take such of these texts as are wrong, in their order, until there are enough."""
        for text in texts:
            if self.enough or self._take(text, look_at(text)):
                return

    def _take(self, text: str, looks: TextFeatures) -> bool:
        """Take a text if it may be; whether there are enough now."""
        if looks.form in self._taken or (self._lengths is not None and looks.words not in self._lengths):
            return False
        for answer, other in self._right:
            if may_be_alike(looks, other) and are_alike(text, answer):
                return False
        self._taken.add(looks.form)
        self.texts.append(text)
        return self.enough


def _iterate_draws(rng: random.Random, among: Sequence[int]) -> Iterator[int]:
    """Yield one after the other without replacement, MOST_DRAWS at most: a shuffle that is made as far as it
    is read."""
    moved: dict[int, int] = {}
    last = len(among) - 1
    for at in range(min(len(among), MOST_DRAWS)):
        place = rng.randint(at, last)
        yield among[moved.get(place, place)]
        moved[place] = moved.pop(at, at)


def may_be_alike(a: TextFeatures, b: TextFeatures) -> bool:
    """Return False only for texts that are not alike. Of two sets with a Jaccard index of at least j, no more
    than (1 - j) / (1 + j) of their members in all are in one alone, and each bit that differs stands for one
    of those."""
    apart = (a.signature ^ b.signature).bit_count()
    return apart <= (a.shingles + b.shingles) * (1 - ALIKE) / (1 + ALIKE) + 1e-9
