"""How varied the words are: distinct-n, the growth of the vocabulary, self-BLEU.

* distinct-n: different n-grams over n-grams (Li, Galley, Brockett, Gao and Dolan 2016, NAACL, arXiv
  1510.03055), n = 1, 2, 3, within conversations and over their turns. It falls as a data set grows.
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

from edgen.quality.corpus import NONE, Codes, Corpus, Ids, ngrams
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
        whole, blocks = {}, {}
        for n in ORDERS:
            codes = ngrams(corpus.ids, corpus.ends, n, corpus.types)
            mean = _in_blocks(codes, n)
            if mean is not None:
                blocks[str(n)] = mean
            share = _distinct(codes)
            if share is not None:
                whole[str(n)] = share
            del codes
        growth = _growth(corpus.ids)
        k, beta = _heaps(growth)
        bleu, sampled = self._sample.result()
        return Diversity(
            tokens=len(corpus.ids),
            types=corpus.types,
            distinct=whole,
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
    return _distinct(ngrams(corpus.ids, corpus.ends, n, corpus.types))


def _distinct(codes: Codes) -> float | None:
    """Sorts `codes` in place: at full size a copy would be felt."""
    total = int(np.count_nonzero(codes != NONE))
    if total == 0:
        return None
    codes.sort()
    different = 1 + int(np.count_nonzero(codes[1:] != codes[:-1])) - (total < len(codes))
    return different / total


def _in_blocks(codes: Codes, n: int) -> float | None:
    """The mean over whole blocks that hold an n-gram; None without any."""
    count = len(codes) // BLOCK_WORDS
    means = []
    for start in range(0, count, _AT_ONCE):
        rows = codes[start * BLOCK_WORDS : min(start + _AT_ONCE, count) * BLOCK_WORDS]
        # an n-gram that runs over the end of its block belongs to none
        block = np.sort(rows.reshape(-1, BLOCK_WORDS)[:, : BLOCK_WORDS - n + 1], axis=1)
        total = np.count_nonzero(block != NONE, axis=1)
        different = 1 + np.count_nonzero(block[:, 1:] != block[:, :-1], axis=1) - (total < block.shape[1])
        means.append(different[total > 0] / total[total > 0])
    values = np.concatenate(means) if means else np.array([])
    return float(np.mean(values)) if values.size else None


def _growth(ids: Ids) -> tuple[Growth, ...]:
    if len(ids) == 0:
        return ()
    points = np.unique(np.geomspace(min(10, len(ids)), len(ids), _POINTS).round().astype(np.int64))
    found, types, before = [], 0, 0
    for tokens in map(int, points):
        types = max(types, int(ids[before:tokens].max()) + 1)  # numbers are given in order of first use
        found.append(Growth(tokens, types))
        before = tokens
    return tuple(found)


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
