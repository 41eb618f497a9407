"""The number of distinct numbers in a stream: counted exactly up to MOST, estimated from a sample beyond.

Numbers are kept in one table. Once it exceeds MOST, only numbers whose hash ends in a zero bit are kept, then
only those with two zero bits, and so on: adaptive sampling (Wegman; Flajolet 1990, Computing 43). The
estimate is the kept number times the power of two; its relative standard error is 1.2 / sqrt(MOST), 0.08%.
The hash is fixed, so the same stream gives the same figure.
"""

from __future__ import annotations

import math

import numpy as np

from edgen.evaluation.texts.corpus import Codes, drop_repeats

MOST = 1 << 21
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class DistinctCounter:
    """A counter of distinct numbers, which takes some at a time. Memory: at most sixteen bytes for each of
    `most`."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._table = np.array([], dtype=np.uint64)  # sorted
        self._halved = 0

    def add(self, codes: Codes) -> None:
        """Count numbers, which may repeat."""
        if self._halved:
            codes = codes[self._are_in_sample(codes)]
        # the stable sort merges two sorted parts fast
        self._table = drop_repeats(
            np.sort(np.concatenate([self._table, drop_repeats(np.sort(codes))]), kind="stable")
        )
        while len(self._table) > self._most:
            self._halved += 1
            self._table = self._table[self._are_in_sample(self._table)]

    @property
    def count(self) -> int:
        """The number of distinct numbers; exact while `error` is 0."""
        return len(self._table) << self._halved

    @property
    def error(self) -> float:
        """The relative standard error of `count`."""
        return 1.2 / math.sqrt(self._most) if self._halved else 0.0

    def _are_in_sample(self, codes: Codes) -> np.typing.NDArray[np.bool_]:
        """Return whether each number is in the sample."""
        mixed = codes.astype(np.uint64) * _ODD
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(29)
        chosen: np.typing.NDArray[np.bool_] = mixed & np.uint64((1 << self._halved) - 1) == 0
        return chosen
