"""Self-BLEU: how much texts repeat each other (Zhu, Lu, Zheng, Guo, Zhang, Wang and Yu 2018, SIGIR, arXiv
1802.01886, who call the benchmark Texygen). It is the mean over texts of BLEU-4 (Papineni, Roukos, Ward and
Zhu 2002, ACL) of the text against all others as references, with uniform weights; 1 if all texts are equal.

An n-gram order without a match counts as 0.1 matches (method 1 of Chen and Cherry 2014, WMT), as in nltk. A
text that shares no word with any other has 0. The figure rises with the number of texts, so only samples of
the same size are comparable.
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
MOST_WORDS = 5000  # maximum words of a sampled text: far more than a lesson has
SEED = 20180206
_EPSILON = 0.1


class SelfBleuSample:
    """A uniform sample of at most `size` texts from a stream (algorithm R of Vitter 1985, ACM TOMS 11). The
    seed is fixed: the same texts in the same order give the same sample."""

    def __init__(self, size: int = SAMPLED) -> None:
        self._size = size
        self._random = random.Random(SEED)  # noqa: S311 - not for secrets
        self.seen = 0
        self._kept: list[list[str]] = []

    def add(self, words: Iterable[Sequence[str]]) -> None:
        """Add a text; `words`: its words by turn, of which the first MOST_WORDS count."""
        self.seen += 1
        at = len(self._kept) if len(self._kept) < self._size else self._random.randrange(self.seen)
        if at >= self._size:
            return
        text = list(itertools.islice(itertools.chain.from_iterable(words), MOST_WORDS))
        self._kept[at : at + 1] = [text]

    def result(self) -> tuple[float | None, int]:
        """Return the mean (None with fewer than two texts) and the number of sampled texts."""
        if len(self._kept) < 2:
            return None, len(self._kept)
        return math.fsum(compute_self_bleu(self._kept)) / len(self._kept), len(self._kept)


def compute_self_bleu(texts: Sequence[Sequence[str]]) -> list[float]:
    """Return BLEU-4 of each text against all others, in [0, 1]; 0 for a single text.

    The highest count of an n-gram among a text's references is the highest of all texts, or the second
    highest if the text itself has the highest. Memory: some 60 bytes per word, since one order of n-grams is
    held at a time.
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
    """Return the matches of each text with its references, shape (ORDER, texts). An n-gram matches at most as
    often as it occurs in one reference."""
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
    """Return a text's penalty for being shorter than the reference nearest in length; of two, the shorter
    one. `lengths`: the sorted lengths of all texts, this one included."""
    place = bisect.bisect_left(lengths, length)
    others = (*lengths[max(place - 1, 0) : place], *lengths[place + 1 : place + 2])
    nearest = min(others, key=lambda other: (abs(other - length), other))
    return 1.0 if length > nearest else math.exp(1 - nearest / length)
