"""How varied the words are: distinct-n, the growth of the vocabulary, self-BLEU.

* distinct-n: different n-grams over n-grams (Li, Galley, Brockett, Gao and Dolan 2016, NAACL, arXiv
  1510.03055), n = 1, 2, 3, within conversations and over their turns. It falls as a data set grows. Above two
  million different n-grams it is an estimate from a sample of them (`distinct`), and `distinct_error` says so.
* distinct-n in blocks: the same in blocks of 1,000 words each, in the order of the data, averaged, so that
  size does not matter: the idea of the mean segmental type-token ratio (Johnson 1944, Psychological
  Monographs 56). Words behind the last whole block are left out.
* growth: types among the first so many tokens, at points of equal ratio, and Heaps' law fitted to those from
  100 tokens on, by least squares of the logarithms (Herdan 1960; Heaps 1978, Information Retrieval).
* self-BLEU: see `selfbleu`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgen.quality.corpus import NONE, Codes, Corpus, Ids, ngrams
from edgen.quality.distinct import Distinct
from edgen.quality.model import Sample, Words
from edgen.quality.results import Diversity, Growth
from edgen.quality.selfbleu import SelfBleuSample

BLOCK_WORDS = 1000
ORDERS = (1, 2, 3)
_POINTS = 25
_FIT_FROM = 100
_AT_ONCE = 256  # blocks


class DiversityMeasure:
    """Looks at `corpus`, which somebody else fills with the same conversations."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._sample = SelfBleuSample()

    def add(self, sample: Sample, words: Words) -> None:  # noqa: ARG002 - as every measure
        self._sample.add(words)

    def result(self) -> Diversity:
        # who was told of nothing has nothing to look at, whatever the corpus holds
        corpus = self._corpus if self._sample.seen else Corpus()
        whole, blocks, error = {}, {}, 0.0
        for n in ORDERS:
            counted, in_blocks = Distinct(), _Blocks(n)
            total = 0
            for chunk in corpus.chunks():
                codes = ngrams(chunk.ids, chunk.ends, n, corpus.types)
                in_blocks.add(codes)
                known = codes[codes != NONE]
                total += len(known)
                if n > 1:
                    counted.add(known)
            if total:
                # every word that is there has a number of its own
                whole[str(n)] = (corpus.types if n == 1 else counted.count) / total
                error = max(error, counted.error)
            mean = in_blocks.mean()
            if mean is not None:
                blocks[str(n)] = mean
        growth = _growth(corpus)
        k, beta = _heaps(growth)
        bleu, sampled = self._sample.result()
        return Diversity(
            tokens=corpus.tokens,
            types=corpus.types,
            distinct=whole,
            distinct_error=error,
            distinct_in_blocks=blocks,
            block_words=BLOCK_WORDS,
            growth=growth,
            heaps_k=k,
            heaps_beta=beta,
            self_bleu=bleu,
            self_bleu_sampled=sampled,
        )


def distinct(texts: Sequence[Sequence[str]], n: int) -> float | None:
    """Different n-grams over n-grams of some texts, n from 1 to 3; None if there is no n-gram."""
    corpus = Corpus()
    for text in texts:
        corpus.add([text])
    different, total = Distinct(), 0
    for chunk in corpus.chunks():
        codes = ngrams(chunk.ids, chunk.ends, n, corpus.types)
        known = codes[codes != NONE]
        different.add(known)
        total += len(known)
    return different.count / total if total else None


class _Blocks:
    """distinct-n of whole blocks, told of the n-grams that begin at one word after the other."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._begun: Codes = np.array([], dtype=np.uint64)  # less than a block
        self._shares: list[NDArray[np.float64]] = []

    def add(self, codes: Codes) -> None:
        codes = np.concatenate((self._begun, codes))
        count = len(codes) // BLOCK_WORDS
        for start in range(0, count, _AT_ONCE):
            rows = codes[start * BLOCK_WORDS : min(start + _AT_ONCE, count) * BLOCK_WORDS]
            # an n-gram that runs over the end of its block belongs to none
            block = np.sort(rows.reshape(-1, BLOCK_WORDS)[:, : BLOCK_WORDS - self._n + 1], axis=1)
            total = np.count_nonzero(block != NONE, axis=1)
            different = 1 + np.count_nonzero(block[:, 1:] != block[:, :-1], axis=1) - (total < block.shape[1])
            self._shares.append(different[total > 0] / total[total > 0])
        self._begun = codes[count * BLOCK_WORDS :].copy()

    def mean(self) -> float | None:
        """The mean over whole blocks that hold an n-gram; None without any."""
        values = np.concatenate(self._shares) if self._shares else np.array([])
        return float(np.mean(values)) if values.size else None


def _growth(corpus: Corpus) -> tuple[Growth, ...]:
    size = corpus.tokens
    if size == 0:
        return ()
    points = np.unique(np.geomspace(min(10, size), size, _POINTS).round().astype(np.int64)).tolist()
    found, types, start, at = [], 0, 0, 0
    for chunk in corpus.chunks():
        before = 0
        while at < len(points) and points[at] - start <= len(chunk.ids):
            # numbers are given in order of first use
            types = max(types, _types(chunk.ids[before : points[at] - start]))
            found.append(Growth(points[at], types))
            before = points[at] - start
            at += 1
        types = max(types, _types(chunk.ids[before:]))
        start += len(chunk.ids)
    return tuple(found)


def _types(ids: Ids) -> int:
    return int(ids.max()) + 1 if len(ids) else 0


def _heaps(growth: Sequence[Growth]) -> tuple[float | None, float | None]:
    """k and beta of types = k * tokens ** beta; None with fewer than three points."""
    points = [point for point in growth if point.tokens >= _FIT_FROM]
    if len(points) < 3:
        return None, None
    x = np.log([point.tokens for point in points])
    y = np.log([point.types for point in points])
    spread = x - np.mean(x)
    beta = float(spread @ (y - np.mean(y)) / (spread @ spread))
    return float(np.exp(np.mean(y) - beta * np.mean(x))), beta
