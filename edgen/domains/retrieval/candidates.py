"""The candidate texts of a run, and the right answers of each context.

Memory: each different text once, with about thirty bytes of features, and for each context sixteen bytes and
a few numbers.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from edgen.plugin.texts import hash64, shingles_of, words

Key = bytes  # identifies a context

_BITS = 63


class TextFeatures(NamedTuple):
    """Features that quickly show that two texts differ. `form` is a hash of a text's words in order. `words`
    and `shingles` are the numbers of words and of different word 3-grams. `signature` has a bit for each
    3-gram; several may share a bit."""

    form: int
    words: int
    shingles: int
    signature: int


class CandidatePool:
    """Different texts, numbered in order of arrival, and groups of them for drawing."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._forms, self._words = array("Q"), array("I")
        self._shingles, self._signatures = array("I"), array("Q")
        self._groups: dict[Hashable, dict[int, None]] = {}
        self._frozen: dict[Hashable, Sequence[int]] = {}

    def add(self, text: str, *groups: Hashable) -> int:
        """Return the number of a text. A new text is added; the text is also added to the groups."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
            form, said, shingles, signature = compute_features(text)
            self._forms.append(form)
            self._words.append(said)
            self._shingles.append(shingles)
            self._signatures.append(signature)
        for group in groups:
            self._groups.setdefault(group, {})[number] = None
        return number

    def list_group(self, group: Hashable) -> Sequence[int]:
        """Return the numbers of a group's texts, in order of arrival. Nothing can be added to the group
        afterwards."""
        if group not in self._frozen:
            self._frozen[group] = array("I", self._groups.pop(group, ()))
        return self._frozen[group]

    def get_features(self, number: int) -> TextFeatures:
        """Return the features of a text."""
        return TextFeatures(
            self._forms[number], self._words[number], self._shingles[number], self._signatures[number]
        )

    def count_different(self, group: Hashable) -> int:
        """Return the number of texts in a group that differ in their words."""
        return len({self._forms[number] for number in self.list_group(group)})


class RightAnswers:
    """The right answers of each context: its continuations in all conversations of the run."""

    def __init__(self) -> None:
        self._answers: dict[Key, dict[int, None]] = {}

    def add(self, context: Key, numbers: Iterable[int]) -> None:
        """Add right answers of a context, by their numbers."""
        self._answers.setdefault(context, {}).update(dict.fromkeys(numbers))

    def of(self, context: Key) -> tuple[int, ...]:
        """Return the numbers of the right answers of a context, in order of arrival."""
        return tuple(self._answers.get(context, ()))


def make_key(context: Iterable[str]) -> Key:
    """Return a key for the utterances of a context."""
    *_, last = iterate_keys(context)
    return last


def iterate_keys(utterances: Iterable[str]) -> Iterator[Key]:
    """Yield a key for the first 0, 1, 2 … utterances."""
    digest = hashlib.blake2b(digest_size=16)
    yield digest.digest()
    for text in utterances:
        data = text.encode()
        digest.update(b"%d:%b" % (len(data), data))
        yield digest.digest()


def compute_features(text: str) -> TextFeatures:
    """Compute the features of a text."""
    said = words(text)
    grams = shingles_of(said)
    signature = 0
    for gram in grams:
        signature |= 1 << hash(gram) % _BITS
    return TextFeatures(hash64("\n".join(said)), len(said), len(grams), signature)
