"""Number of different numbers in a stream: counted while they are few, estimated from a sample beyond.

Numbers are kept in one table. Once it would hold more than MOST, only those whose hash ends in a zero bit
stay and are added, then those with two, and so on: adaptive sampling (Wegman; Flajolet 1990, Computing 43).
The number kept times the power of two is the estimate; its standard error is 1.2 / sqrt(MOST), 0.08% of it.
The hash is fixed, so that the same stream gives the same figure.
"""

from __future__ import annotations

import math

import numpy as np

from edgen.evaluation.texts.corpus import Codes, drop_repeats

MOST = 1 << 21
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class DistinctCounter:
    """Takes numbers, some at a time; in memory are at most twice eight bytes for each of `most`, and a few
    more."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._table = np.array([], dtype=np.uint64)  # sorted
        self._halved = 0

    def add(self, codes: Codes) -> None:
        """Count these, among which may be equal ones."""
        if self._halved:
            codes = codes[self._are_in_sample(codes)]
        # the stable sort merges what is sorted already
        self._table = drop_repeats(
            np.sort(np.concatenate([self._table, drop_repeats(np.sort(codes))]), kind="stable")
        )
        while len(self._table) > self._most:
            self._halved += 1
            self._table = self._table[self._are_in_sample(self._table)]

    @property
    def count(self) -> int:
        """The number of different ones: exact while `error` is 0."""
        return len(self._table) << self._halved

    @property
    def error(self) -> float:
        """The standard error of `count`, as a share of it."""
        return 1.2 / math.sqrt(self._most) if self._halved else 0.0

    def _are_in_sample(self, codes: Codes) -> np.typing.NDArray[np.bool_]:
        """Return which of them are in the sample."""
        mixed = codes.astype(np.uint64) * _ODD
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(29)
        chosen: np.typing.NDArray[np.bool_] = mixed & np.uint64((1 << self._halved) - 1) == 0
        return chosen
