"""Wrong answers for a context: drawn uniformly without replacement, and never a right one.

The rules are those of MSDialog's own program (Yang et al., SIGIR 2018): no text twice, at most ten thousand
draws, and limits on length for MSDialog's format. In addition, a text that is nearly equal to a right answer
counts as right.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from edgen.domains.retrieval.candidates import CandidatePool, TextFeatures, compute_features
from edgen.plugin.texts import ALIKE, are_alike, hash64

MOST_DRAWS = 10_000


class WrongAnswers:
    """Up to `count` wrong answers for one context, drawn from one or several groups in turn. None is equal or
    nearly equal to a right answer, and no two have the same words. The draws depend only on `seed`.
    `lengths`: the allowed numbers of words."""

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
        self._right = [(text, compute_features(text)) for text in right]
        self._taken = {features.form for _, features in self._right}
        self._rng = random.Random(hash64(seed))  # noqa: S311 - a draw that can be made again

    @property
    def enough(self) -> bool:
        """True once there are `count` texts."""
        return len(self.texts) == self._count

    def draw(self, numbers: Sequence[int]) -> None:
        """Draw from these candidates until there are enough."""
        if self.enough:
            return
        for number in _iterate_draws(self._rng, numbers):
            if self._take(self._candidates.texts[number], self._candidates.get_features(number)):
                return

    def take(self, texts: Iterable[str]) -> None:
        """Take the wrong ones of these texts, in order, until there are enough."""
        for text in texts:
            if self.enough or self._take(text, compute_features(text)):
                return

    def _take(self, text: str, features: TextFeatures) -> bool:
        """Take a text if it is wrong and new; return whether there are enough now."""
        if features.form in self._taken or (
            self._lengths is not None and features.words not in self._lengths
        ):
            return False
        for answer, other in self._right:
            if may_be_near_duplicates(features, other) and are_alike(text, answer):
                return False
        self._taken.add(features.form)
        self.texts.append(text)
        return self.enough


def _iterate_draws(rng: random.Random, among: Sequence[int]) -> Iterator[int]:
    """Yield candidates in random order without replacement, at most MOST_DRAWS: a shuffle that does only the
    steps that are needed."""
    moved: dict[int, int] = {}
    last = len(among) - 1
    for at in range(min(len(among), MOST_DRAWS)):
        place = rng.randint(at, last)
        yield among[moved.get(place, place)]
        moved[place] = moved.pop(at, at)


def may_be_near_duplicates(a: TextFeatures, b: TextFeatures) -> bool:
    """Return False only for texts that are not alike.

    If two sets have a Jaccard index of at least j, at most (1 - j) / (1 + j) of all their members are in only
    one of them, and each different bit stands for one of these.
    """
    apart = (a.signature ^ b.signature).bit_count()
    return apart <= (a.shingles + b.shingles) * (1 - ALIKE) / (1 + ALIKE) + 1e-9
