"""Self-BLEU: how much texts repeat each other (Zhu, Lu, Zheng, Guo, Zhang, Wang and Yu 2018, SIGIR, arXiv
1802.01886, who call the benchmark Texygen). The mean over texts of BLEU-4 (Papineni, Roukos, Ward and Zhu
2002, ACL) of the text against all others as references, with uniform weights; 1 where all say the same.

An n-gram order without a match counts 0.1 of one (method 1 of Chen and Cherry 2014, WMT), as nltk does, and
a text that shares no word with any other has 0. The figure rises with the number of texts, so that only
samples of one size can be compared.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from edgen.quality.model import Words

ORDER = 4
SAMPLED = 200
SEED = 20180206
_EPSILON = 0.1

Gram = tuple[str, ...]


class SelfBleuSample:
    """A sample of at most 200 texts, each equally likely, drawn while they pass by (algorithm R of Vitter
    1985, ACM TOMS 11). The seed is fixed: the same texts in the same order give the same sample."""

    def __init__(self, size: int = SAMPLED) -> None:
        self._size = size
        self._random = random.Random(SEED)  # noqa: S311 - a sample, no secret
        self.seen = 0
        self._kept: list[list[str]] = []

    def add(self, words: Words) -> None:
        """A text: the words of its turns, one after the other."""
        self.seen += 1
        at = len(self._kept) if len(self._kept) < self._size else self._random.randrange(self.seen)
        if at >= self._size:
            return
        text = [word for turn in words for word in turn]
        self._kept[at : at + 1] = [text]

    def result(self) -> tuple[float | None, int]:
        """The mean, None with fewer than two texts, and how many texts it is of."""
        if len(self._kept) < 2:
            return None, len(self._kept)
        return math.fsum(self_bleu(self._kept)) / len(self._kept), len(self._kept)


def self_bleu(texts: Sequence[Sequence[str]]) -> list[float]:
    """BLEU-4 of each text against all the others, in [0, 1]; 0 for a text that has no other.

    Linear in the words: what the references of a text hold most of an n-gram is the most that any text
    holds, or the second most where the text itself holds the most.
    """
    counts = [[Counter(_grams(text, n)) for text in texts] for n in range(1, ORDER + 1)]
    tops = [_two_most(of_order) for of_order in counts]
    lengths = Counter(map(len, texts))
    found = []
    for i, text in enumerate(texts):
        precisions = [_precision(of_order[i], top) for of_order, top in zip(counts, tops, strict=True)]
        matched = precisions[0][0]
        if matched == 0 or len(texts) < 2:
            found.append(0.0)
            continue
        logs = (math.log((hits or _EPSILON) / total) for hits, total in precisions)
        found.append(_brevity(len(text), lengths) * math.exp(math.fsum(logs) / ORDER))
    return found


def _grams(text: Sequence[str], n: int) -> Iterable[Gram]:
    return zip(*(text[k:] for k in range(n)), strict=False)


def _two_most(counts: Iterable[Counter[Gram]]) -> dict[Gram, tuple[int, int]]:
    """n-gram -> the most and the second most that one text holds of it."""
    most: dict[Gram, tuple[int, int]] = {}
    for counter in counts:
        for gram, count in counter.items():
            first, second = most.get(gram, (0, 0))
            if count > first:
                most[gram] = (count, first)
            elif count > second:
                most[gram] = (first, count)
    return most


def _precision(own: Counter[Gram], most: dict[Gram, tuple[int, int]]) -> tuple[int, int]:
    """n-grams of a text that its references hold too, each at most as often as one of them does, and all."""
    hits = 0
    for gram, count in own.items():
        first, second = most[gram]
        # who holds the most is matched by the second most, which is as many where two hold the most
        hits += min(count, second if count == first else first)
    return hits, max(own.total(), 1)


def _brevity(length: int, lengths: Counter[int]) -> float:
    """The penalty for being shorter than the reference nearest in length, of two the shorter one."""
    others = (other for other, count in lengths.items() if count > (other == length))
    nearest = min(others, key=lambda other: (abs(other - length), other))
    return 1.0 if length > nearest else math.exp(1 - nearest / length)
