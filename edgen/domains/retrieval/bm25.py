"""Rankings of texts for a query by BM25 as in Lucene (k1 = 1.2, b = 0.75), with the library bm25s.

Texts are lower-cased and lose the stop words that Lucene's StandardAnalyzer had for English.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgen.plugin.files import require_extra
from edgen.plugin.texts import words

K1, B = 1.2, 0.75
MOST = 1000
STOP_WORDS = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not",
    "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was",
    "will", "with",
))  # fmt: skip
_FREQUENT = 30  # a word in over 1/30 of the texts is frequent: keeping its scores for all texts is faster
_SPREAD = 200  # frequent words at most: each takes four bytes per text
_SAMPLED = 8  # every 8th score is sampled to estimate the highest ones


class Bm25:
    """An index of texts, which are known by numbers. Raises UsageError if bm25s is not installed."""

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        require_extra("retrieval", "candidates by BM25", "bm25s")
        self._vocabulary: dict[str, int] = {}
        numbers: list[int] = []
        documents: list[list[int]] = []
        for number, text in texts:
            numbers.append(number)
            documents.append(list(self._iterate_ids(text)))
        self.numbers = np.array(numbers, dtype=np.int64)
        self._starts: Any = None
        self._spread: dict[int, NDArray[np.float32]] = {}  # scores of frequent words in all texts
        if self._vocabulary:
            self._index(documents)

    def _index(self, documents: list[list[int]]) -> None:
        index = importlib.import_module("bm25s").BM25(k1=K1, b=B, method="lucene")
        index.index((documents, self._vocabulary), create_empty_token=False, show_progress=False)
        made = index.scores
        self._weights, self._starts = made["data"], made["indptr"].tolist()
        self._places = made["indices"].astype(np.intp)
        counts = np.diff(made["indptr"])
        for word in np.argsort(-counts, kind="stable")[:_SPREAD].tolist():
            if counts[word] * _FREQUENT > len(self.numbers):
                self._spread[word] = self._add(word, np.zeros(len(self.numbers), dtype=np.float32))

    def _add(self, word: int, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Add a word's score in each text to `scores`."""
        part = slice(self._starts[word], self._starts[word + 1])
        scores[self._places[part]] += self._weights[part]
        return scores

    def _iterate_ids(self, text: str) -> Iterator[int]:
        """Yield the numbers of a text's words; new words get a number."""
        known = self._vocabulary
        for word in _split_content(text):
            yield known.setdefault(word, len(known))

    def find_best(self, query: str) -> list[int] | None:
        """Return the numbers of up to MOST texts that share a word with the query: those with the highest
        scores, by their place in the index; of equal scores the first. None if the query has only stop
        words."""
        said = list(_split_content(query))
        if not said:
            return None
        found = [known for word in said if (known := self._vocabulary.get(word)) is not None]
        if self._starts is None or not found:
            return []
        scores = np.zeros(len(self.numbers), dtype=np.float32)
        for word in found:
            if (spread := self._spread.get(word)) is None:
                self._add(word, scores)
            else:
                scores += spread
        found_best: list[int] = self.numbers[_find_highest(scores)].tolist()
        return found_best


def _split_content(text: str) -> Iterator[str]:
    return (word for word in words(text) if word not in STOP_WORDS)


def _find_highest(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the places of the MOST highest scores above 0, in order; of the lowest of them the first places.
    The result does not depend on how a machine partitions."""
    places = np.flatnonzero(scores > _find_floor(scores))
    if len(places) <= MOST:
        return places
    found = scores[places]
    least = np.partition(found, len(found) - MOST)[len(found) - MOST]
    above, equal = places[found > least], places[found == least]
    return np.sort(np.concatenate([above, equal[: MOST - len(above)]]))


def _find_floor(scores: NDArray[np.float32]) -> np.float32:
    """Return a lower bound of the MOST highest scores, at least 0, estimated so that few scores are above
    it."""
    sample = scores[::_SAMPLED]
    if len(sample) <= MOST:
        return np.float32(0)
    least = np.partition(sample, len(sample) - MOST)[len(sample) - MOST]
    return np.nextafter(np.float32(max(least, 0)), np.float32(-1)) if least > 0 else np.float32(0)
