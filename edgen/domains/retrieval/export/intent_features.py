"""Features of utterances for intent prediction (Qu et al., CHIIR 2019, table 3): content, structural and
sentiment features, in the order of the authors' program.

A dialog is the lines of the file between two blank lines. Words have at least two letters and are in lower
case. Rules about single words are the program's: a word counts wherever its letters occur.
"""

from __future__ import annotations

import importlib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Literal

from edgen.domains.retrieval.export.sentiment import compute_sentiment, split_word_set
from edgen.plugin.files import require_extra

Group = Literal["content", "structural", "sentiment"]
ASKING = ("how", "what", "why", "who", "where", "when")
# The groups in the order of the program.
FEATURES: Mapping[str, Group] = {
    "initial_similarity": "content",
    "dialog_similarity": "content",
    "question_mark": "content",
    "duplicate": "content",
    **dict.fromkeys(ASKING, "content"),
    "absolute_position": "structural",
    "normalized_position": "structural",
    "length": "structural",
    "unique_length": "structural",
    "unique_stemmed_length": "structural",
    "is_starter": "structural",
    "thank": "sentiment",
    "exclamation_mark": "sentiment",
    "feedback": "sentiment",
    "negative": "sentiment",
    "neutral": "sentiment",
    "positive": "sentiment",
    "positive_words": "sentiment",
    "negative_words": "sentiment",
}
FUNCTION_WORDS = split_word_set("""
    about above after again against all am an and any are aren as at be because been before being
    below between both but by can could couldn did didn do does doesn doing don down during each few
    for from further had hadn has hasn have haven having he her here hers herself him himself his
    how if in into is isn it its itself just ll me might more most must my myself no nor not now of
    off on once only or other our ours ourselves out over own re same shall shan she should shouldn
    so some such than that the their theirs them themselves then there these they this those through
    to too under until up ve very was wasn we were weren what when where which while who whom why
    will with won would wouldn you your yours yourself yourselves
""")
_WORD = re.compile(r"\b\w\w+\b")
_CONTRACTED = re.compile(r"(n't|'(?:s|ve|re|d|ll)\b)")
_OTHER = re.compile(r"[^\w(),!?'`]|_")


class Features:
    """The features of a data set's utterances. Add all texts first, since rare words weigh more. Raises
    UsageError if the stemmer is not installed."""

    def __init__(self) -> None:
        require_extra("retrieval", "Features of intents", "snowballstemmer")
        stem = importlib.import_module("snowballstemmer").stemmer("porter").stemWord
        self._stem: Callable[[str], str] = cache(stem)
        self._texts = 0
        self._with: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the words of a text of the data set."""
        self._texts += 1
        self._with.update({*_select_content_words(_split_words(_normalize(text)))})

    def of(self, texts: Sequence[str], actors: Sequence[str]) -> list[list[str]]:
        """Return the values of FEATURES for each utterance of a dialog."""
        plain = [*map(_normalize, texts)]
        words = [*map(_split_words, plain)]
        weights = [self._compute_weights(one) for one in words]
        whole = self._compute_weights([word for one in words for word in one])
        found = []
        for place, (text, said) in enumerate(zip(plain, words, strict=True)):
            content = _select_content_words(said)
            different = {*content}
            felt = compute_sentiment(text)
            values: list[float] = [
                _compute_cosine(weights[0], weights[place]), _compute_cosine(whole, weights[place]),
                "?" in text, "same" in text or "similar" in text, *(word in text for word in ASKING),
                place + 1, (place + 1) / len(texts), len(content), len(different),
                    len({*map(self._stem, different)}),
                actors[place] == "User",
                "thank" in text, "!" in text, "did not" in text or "does not" in text, *felt,
            ]  # fmt: skip
            found.append(
                [f"{value:.4f}" if isinstance(value, float) else str(int(value)) for value in values]
            )
        return found

    def _compute_weights(self, words: Sequence[str]) -> dict[str, float]:
        """Return the weight of each content word of a text: its count times its rarity in the data set."""
        return {
            word: count * math.log((self._texts - others + 0.5) / (others + 0.5))
            for word, count in Counter(words).items()
            if (others := self._with[word])
        }


def _normalize(text: str) -> str:
    """Return a text in lower case, with separate contractions and without punctuation that no feature
    uses."""
    apart = _CONTRACTED.sub(r" \1", _OTHER.sub(" ", text))
    return " ".join(apart.split()).lower()


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text)


def _select_content_words(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in FUNCTION_WORDS]


def _compute_cosine(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    lengths = math.sqrt(sum(x * x for x in a.values()) * sum(x * x for x in b.values()))
    return sum(x * b[word] for word, x in a.items() if word in b) / lengths if lengths else 0.0
