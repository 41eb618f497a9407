"""The words of all conversations as numbers, in the order in which they were told: what diversity and
near-duplicates are counted on. Four bytes a word; a word's number is its place among the words by first use.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from edgen.quality.model import Words

Ids = NDArray[np.uint32]
Codes = NDArray[np.uint64]

# What stands for a sequence that runs over the end of a text.
NONE = np.iinfo(np.uint64).max


class _Numbers(dict[str, int]):
    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class Corpus:
    """Texts, each a sequence of words. `types` counts the different words."""

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self._ids = array("I")
        self._ends = array("q")

    def add(self, words: Words) -> None:
        """A text: the words of its turns, one after the other."""
        number = self._numbers.__getitem__
        for turn in words:
            self._ids.extend(map(number, turn))
        self._ends.append(len(self._ids))

    @property
    def types(self) -> int:
        return len(self._numbers)

    @property
    def ids(self) -> Ids:
        """The numbers of all words (tokens). A view: nothing may be added while it is used."""
        return np.frombuffer(self._ids, dtype=np.uint32)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Where each text ends in `ids`."""
        return np.frombuffer(self._ends, dtype=np.int64)


def ngrams(ids: Ids, ends: NDArray[np.int64], n: int, types: int) -> Codes:
    """A number for the `n` words that begin at each place (n from 1 to 3), NONE where a text ends before.

    Equal numbers are equal words, up to 2.6 million different words; beyond, numbers wrap around at 64 bits
    and two n-grams share one about as rarely as hashes do.
    """
    codes = ids.astype(np.uint64)
    base = np.uint64(max(types, 1))
    for k in range(1, n):
        codes *= base
        codes[:-k] += ids[k:]
    for k in range(1, n):
        last = ends - k
        codes[last[last >= 0]] = NONE
    return codes
