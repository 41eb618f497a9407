"""Who has how much of the talk: the teacher's share of words and of turns, and who begins.

A conversation without a word says nothing of the share of words, one without a turn nothing at all.
"""

from __future__ import annotations

from array import array
from collections import Counter

import numpy as np

from edgen.model import ROLES
from edgen.quality.model import Sample, Words
from edgen.quality.numbers import shares
from edgen.quality.results import Balance


class BalanceMeasure:
    def __init__(self) -> None:
        self._words, self._turns = array("d"), array("d")
        self._begins: Counter[str] = Counter()

    def add(self, sample: Sample, words: Words) -> None:
        if not sample.turns:
            return
        teacher = [turn.role == "Teacher" for turn in sample.turns]
        lengths = [len(turn) for turn in words]
        if total := sum(lengths):
            self._words.append(sum(n for n, own in zip(lengths, teacher, strict=True) if own) / total)
        self._turns.append(sum(teacher) / len(teacher))
        self._begins[sample.turns[0].role] += 1

    def result(self) -> Balance:
        return Balance(
            teacher_words=shares(np.array(self._words)),
            teacher_turns=shares(np.array(self._turns)),
            begins={role: self._begins[role] for role in ROLES},
        )
