"""How long conversations are: turns as the files have them, words, words a turn by role."""

from __future__ import annotations

from collections import Counter

from edgen.model import ROLES
from edgen.quality.model import Sample, Words
from edgen.quality.numbers import tallied
from edgen.quality.results import Lengths


class LengthsMeasure:
    """Keeps how often each length came."""

    def __init__(self) -> None:
        self._turns: Counter[int] = Counter()
        self._words: Counter[int] = Counter()
        self._by_role: dict[str, Counter[int]] = {role: Counter() for role in ROLES}

    def add(self, sample: Sample, words: Words) -> None:
        lengths = [len(turn) for turn in words]
        self._turns[sample.entries] += 1
        self._words[sum(lengths)] += 1
        for turn, length in zip(sample.turns, lengths, strict=True):
            self._by_role[turn.role][length] += 1

    def result(self) -> Lengths:
        return Lengths(
            turns=tallied(self._turns),
            words=tallied(self._words),
            words_per_turn={role: tallied(counts) for role, counts in self._by_role.items()},
        )
