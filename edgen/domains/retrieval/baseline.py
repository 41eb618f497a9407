"""Simple rankings of candidates: at random, or by the words that they share with the earlier conversation.

Word frequencies are counted over all candidates of a file. An example's few candidates are scored one by one,
so there is no index and only the standard library is needed. TF-IDF: the cosine of vectors of (1 + ln tf)
ln(N / df) (Manning, Raghavan and Schuetze 2008, Introduction to Information Retrieval, section 6.4). BM25: k1
= 1.2, b = 0.75 and idf = ln(1 + (N - df + 0.5) / (df + 0.5)), as in Lucene (Robertson and Zaragoza 2009,
Foundations and Trends in Information Retrieval 3). Candidates with equal scores are in random order, drawn
from the seed and the example's id.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from edgen.domains.retrieval.submissions.ranking_file import as_id, decode_leniently
from edgen.plugin import Turn
from edgen.plugin.errors import DataError, Problem
from edgen.plugin.texts import words as words_of

_K1, _B = 1.2, 0.75
Words = Counter[str]


@dataclass(frozen=True, slots=True)
class RankingExample:
    """An example: the turns so far, and the candidates for the next one, each with its id and text."""

    id: str
    turns: Sequence[Turn]
    candidates: Sequence[tuple[str, str]]

    @property
    def said(self) -> Words:
        """The words of the turns so far."""
        return Counter(word for turn in self.turns for word in words_of(turn.text))

    @property
    def words(self) -> list[Words]:
        """The words of each candidate."""
        return [Counter(words_of(text)) for _, text in self.candidates]


@dataclass(slots=True)
class Frequencies:
    """Statistics of all candidates: their number, the number that hold each word, and the total number of
    words."""

    candidates: int = 0
    words: int = 0
    holding: Words = field(default_factory=Counter)

    def see(self, example: RankingExample) -> None:
        for words in example.words:
            self.candidates += 1
            self.words += words.total()
            self.holding.update(words.keys())


def read_examples(entries: Iterable[msgspec.Raw], source: str) -> Iterator[RankingExample]:
    """Yield the examples of a file in DSTC7's layout. Raises DataError for the first invalid one."""
    for number, raw in enumerate(entries):
        entry = decode_leniently(raw)
        example = _read_example(entry) if isinstance(entry, dict) else "expected an object"
        if isinstance(example, str):
            raise DataError.of(source, [Problem(f"$[{number}]", example)])
        yield example


def _read_example(entry: Mapping[str, Any]) -> RankingExample | str:
    """Return the example, or the problem of the entry."""
    example = as_id(entry.get("example-id"))
    if example is None:
        return "it has no 'example-id'"
    said, options = entry.get("messages-so-far"), entry.get("options-for-next")
    if not isinstance(options, list) or not options:
        return "it has no 'options-for-next', the candidates to rank"
    if not isinstance(said, list):
        return "it has no 'messages-so-far'"
    texts = [_read_text(one) for one in (*said, *options)]
    ids = [as_id(one.get("candidate-id")) if isinstance(one, dict) else None for one in options]
    if None in texts or None in ids:
        return (
            "expected an 'utterance' in every message and candidate, and a 'candidate-id' in every candidate"
        )
    turns = [Turn(_read_speaker(one), text or "") for one, text in zip(said, texts, strict=False)]
    candidates = [(str(one).upper(), text or "") for one, text in zip(ids, texts[len(said) :], strict=True)]
    return RankingExample(example, turns, candidates)


def _read_speaker(message: Mapping[str, Any]) -> str:
    return " ".join(str(message.get("speaker") or "Somebody").split())[:80]


def _read_text(one: Any) -> str | None:
    text = one.get("utterance") if isinstance(one, dict) else None
    return text if isinstance(text, str) else None


def rank_candidates(
    example: RankingExample, frequencies: Frequencies, by: str, seed: int
) -> list[tuple[int, float]]:
    """Return the places of the example's candidates with their scores, the best first. `by`: a key of
    BASELINES."""
    places = [*range(len(example.candidates))]
    random.Random(f"{seed}/{example.id}").shuffle(places)  # noqa: S311 - no secret
    words = example.words
    scores = [
        round(one, 6) for one in BASELINES[by](example.said, [words[place] for place in places], frequencies)
    ]
    return sorted(zip(places, scores, strict=True), key=lambda one: -one[1])


def rank(example: RankingExample, frequencies: Frequencies, by: str, seed: int) -> bytes:
    """Return the example's entry of a submission, as JSON. `by`: a key of BASELINES."""
    order = rank_candidates(example, frequencies, by, seed)
    return make_entry(example.id, [(example.candidates[place][0], score) for place, score in order])


def make_entry(example: str, ranked: Iterable[tuple[str, float]]) -> bytes:
    """Return an entry of a submission, as JSON: the ids of candidates with their scores, the best first."""
    ranking = [{"candidate-id": one, "confidence": score} for one, score in ranked]
    return msgspec.json.encode({"example-id": example, "candidate-ranking": ranking})


def _score_by_chance(said: Words, candidates: Sequence[Words], frequencies: Frequencies) -> list[float]:  # noqa: ARG001
    """Return the same score for all: their order is random."""
    return [1 / len(candidates)] * len(candidates)


def _score_by_tfidf(said: Words, candidates: Sequence[Words], frequencies: Frequencies) -> list[float]:
    holding, n = frequencies.holding, frequencies.candidates

    def make_vector(words: Words) -> dict[str, float]:
        return {
            word: (1 + math.log(count)) * math.log(n / holding[word])
            for word, count in words.items()
            if word in holding
        }

    query = make_vector(said)
    length = math.hypot(*query.values())
    found = []
    for words in candidates:
        other = make_vector(words)
        product = sum(weight * query.get(word, 0.0) for word, weight in other.items())
        lengths = length * math.hypot(*other.values())
        found.append(product / lengths if lengths else 0.0)
    return found


def _score_by_bm25(said: Words, candidates: Sequence[Words], frequencies: Frequencies) -> list[float]:
    holding, n = frequencies.holding, frequencies.candidates
    mean = frequencies.words / n or 1.0
    found = []
    for words in candidates:
        norm = _K1 * (1 - _B + _B * words.total() / mean)
        found.append(
            sum(
                said[word]
                * math.log(1 + (n - holding[word] + 0.5) / (holding[word] + 0.5))
                * count
                / (count + norm)
                for word, count in words.items()
                if word in said
            )
        )
    return found


BASELINES: Mapping[str, Callable[[Words, Sequence[Words], Frequencies], list[float]]] = {
    "chance": _score_by_chance,
    "tfidf": _score_by_tfidf,
    "bm25": _score_by_bm25,
}
