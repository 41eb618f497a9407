"""Self-BLEU: how much texts repeat each other (Zhu, Lu, Zheng, Guo, Zhang, Wang and Yu 2018, SIGIR, arXiv
1802.01886, who call the benchmark Texygen). The mean over texts of BLEU-4 (Papineni, Roukos, Ward and Zhu
2002, ACL) of the text against all others as references, with uniform weights; 1 where all say the same.

An n-gram order without a match counts 0.1 of one (method 1 of Chen and Cherry 2014, WMT), as nltk does, and
a text that shares no word with any other has 0. The figure rises with the number of texts, so that only
samples of one size can be compared.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

ORDER = 4
SAMPLED = 200
MOST_WORDS = 5000  # of a sampled text: far more than a lesson holds, little enough for 200 of them
SEED = 20180206
_EPSILON = 0.1


class SelfBleuSample:
    """A sample of at most 200 texts, each equally likely, drawn while they pass by (algorithm R of Vitter
    1985, ACM TOMS 11). The seed is fixed: the same texts in the same order give the same sample."""

    def __init__(self, size: int = SAMPLED) -> None:
        self._size = size
        self._random = random.Random(SEED)  # noqa: S311 - a sample, no secret
        self.seen = 0
        self._kept: list[list[str]] = []

    def add(self, words: Iterable[Sequence[str]]) -> None:
        """Add a text: the words of its turns, one after the other, the first MOST_WORDS of them."""
        self.seen += 1
        at = len(self._kept) if len(self._kept) < self._size else self._random.randrange(self.seen)
        if at >= self._size:
            return
        text = list(itertools.islice(itertools.chain.from_iterable(words), MOST_WORDS))
        self._kept[at : at + 1] = [text]

    def result(self) -> tuple[float | None, int]:
        """Return the mean, None with fewer than two texts, and the number of texts."""
        if len(self._kept) < 2:
            return None, len(self._kept)
        return math.fsum(compute_self_bleu(self._kept)) / len(self._kept), len(self._kept)


def compute_self_bleu(texts: Sequence[Sequence[str]]) -> list[float]:
    """BLEU-4 of each text against all the others, in [0, 1]; 0 for a text that has no other.

    What the references of a text hold most of an n-gram is the most that any text holds, or the second most
    where the text itself holds the most. One order of n-grams is held at a time, as numbers: some 60 bytes a
    word.
    """
    counted = Counter(map(len, texts))
    lengths = sorted(counted)
    hits = _count_matches(texts)
    found = []
    for i, text in enumerate(texts):
        if len(texts) < 2 or not hits[0, i]:
            found.append(0.0)
            continue
        totals = (max(len(text) - n, 1) for n in range(ORDER))
        logs = (
            math.log((matched or _EPSILON) / total) for matched, total in zip(hits[:, i], totals, strict=True)
        )
        alone = counted[len(text)] == 1
        brevity = _compute_brevity_penalty(len(text), lengths) if alone else 1.0
        found.append(brevity * math.exp(math.fsum(logs) / ORDER))
    return found


def _count_matches(texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """(ORDER, texts): the n-grams of each text that its references hold too, each at most as often as one of
    them does."""
    numbers: dict[str, int] = {}
    ids = np.array(
        [numbers.setdefault(word, len(numbers)) for text in texts for word in text], dtype=np.int64
    )
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    owner, end = np.repeat(np.arange(len(texts)), sizes), np.repeat(np.cumsum(sizes), sizes)
    hits = np.zeros((ORDER, len(texts)))
    codes, start = ids, np.arange(len(ids))
    for n in range(ORDER):
        if n:
            whole = start + n < end[start]
            start = start[whole]
            # an n-gram is the one before it and a word: both below 2**31, so that the pair fits into 63 bits
            codes = np.unique(codes[whole] * len(numbers) + ids[start + n], return_inverse=True)[1]
        if not len(start):
            break
        keys, counts = np.unique(codes * len(texts) + owner[start], return_counts=True)
        gram, who = np.divmod(keys, len(texts))
        most, second = _find_two_largest(gram, counts)
        # who holds the most is matched by the second most, which is as many where two hold the most
        clipped = np.minimum(counts, np.where(counts == most[gram], second[gram], most[gram]))
        hits[n] = np.bincount(who, weights=clipped, minlength=len(texts))
    return hits


def _find_two_largest(
    gram: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return by n-gram (numbered from 0, without gaps) its largest and second largest count in one text."""
    order = np.lexsort((counts, gram))
    gram, counts = gram[order], counts[order]
    last = np.flatnonzero(np.append(gram[1:] != gram[:-1], True))
    before = np.maximum(last - 1, 0)
    return counts[last], np.where((last > 0) & (gram[before] == gram[last]), counts[before], 0)


def _compute_brevity_penalty(length: int, lengths: Sequence[int]) -> float:
    """Return the penalty of a text for being shorter than the reference nearest in length, of two the shorter
    one. `lengths`: those of all texts, in order, of which one is the text's own."""
    place = bisect.bisect_left(lengths, length)
    others = (*lengths[max(place - 1, 0) : place], *lengths[place + 1 : place + 2])
    nearest = min(others, key=lambda other: (abs(other - length), other))
    return 1.0 if length > nearest else math.exp(1 - nearest / length)
