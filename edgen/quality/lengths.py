"""How long conversations are: turns as the files have them, words, words a turn by role."""

from __future__ import annotations

from array import array

import numpy as np

from edgen.model import ROLES
from edgen.quality.model import Sample, Words
from edgen.quality.numbers import counted
from edgen.quality.results import Lengths


class LengthsMeasure:
    def __init__(self) -> None:
        self._turns, self._words = array("q"), array("q")
        self._by_role = {role: array("I") for role in ROLES}

    def add(self, sample: Sample, words: Words) -> None:
        lengths = [len(turn) for turn in words]
        self._turns.append(sample.entries)
        self._words.append(sum(lengths))
        for turn, length in zip(sample.turns, lengths, strict=True):
            self._by_role[turn.role].append(length)

    def result(self) -> Lengths:
        return Lengths(
            turns=counted(np.array(self._turns)),
            words=counted(np.array(self._words)),
            words_per_turn={role: counted(np.array(values)) for role, values in self._by_role.items()},
        )
