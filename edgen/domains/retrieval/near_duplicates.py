"""A search for all texts that are equal or nearly equal to a given text, by prefixes.

Two sets with a Jaccard index of at least j share one of the first n - ceil(j n) + 1 members of each, where n
is its size, for any order of all members. If rare members come first, few other sets share one (Chaudhuri,
Ganti and Kaushik, ICDE 2006; Bayardo, Ma and Srikant, WWW 2007).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from edgen.domains.retrieval.candidates import CandidatePool, compute_features
from edgen.domains.retrieval.negatives import may_be_near_duplicates
from edgen.plugin.texts import ALIKE, are_alike, shingles_of, words

_COUNTERS = 1 << 20  # word 3-grams share these counters; collisions affect only the order
_HASH = (1 << 32) - 1


class NearDuplicateIndex:
    """An index of some of the candidates. Memory: eight bytes for each member of a prefix."""

    def __init__(self, candidates: CandidatePool, numbers: Iterable[int]) -> None:
        self._candidates = candidates
        self._counts = array("I", bytes(4 * _COUNTERS))
        indexed = array("I", numbers)
        for number in indexed:
            for gram in _iterate_hashes(candidates.texts[number]):
                self._counts[gram % _COUNTERS] += 1
        self._postings = array(
            "Q",
            sorted(
                gram << 32 | number
                for number in indexed
                for gram in self._list_prefix(candidates.texts[number])
            ),
        )

    def find_near_duplicates(self, text: str) -> list[int]:
        """Return the numbers of the indexed texts that are equal or nearly equal to a text, in order."""
        features, found = compute_features(text), set[int]()
        for gram in self._list_prefix(text):
            for at in range(bisect_left(self._postings, gram << 32), len(self._postings)):
                if self._postings[at] >> 32 != gram:
                    break
                found.add(self._postings[at] & _HASH)
        return sorted(
            number
            for number in found
            if may_be_near_duplicates(features, self._candidates.get_features(number))
            and are_alike(text, self._candidates.texts[number])
        )

    def _list_prefix(self, text: str) -> list[int]:
        grams = sorted(_iterate_hashes(text), key=lambda gram: (self._counts[gram % _COUNTERS], gram))
        return grams[: len(grams) - math.ceil(ALIKE * len(grams) - 1e-9) + 1]


def _iterate_hashes(text: str) -> Iterator[int]:
    return (hash(gram) & _HASH for gram in shingles_of(words(text)))
