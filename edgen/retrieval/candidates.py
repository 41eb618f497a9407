"""The texts of a run that stand for choice, and which of them are right where.

In memory are the different texts, each once, and sixteen bytes and a few numbers for each context.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Sequence

Key = bytes  # stands for a context


class Candidates:
    """Different texts by their numbers, in the order in which they came. `drawable` are those that may be drawn as wrong
    answers: what the test side alone says may not."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.drawable = array("I")
        self._numbers: dict[str, int] = {}
        self._drawable = bytearray()
        self._topics: dict[Hashable, array[int]] = {}

    def add(self, text: str, *, drawable: bool, topic: Hashable = None) -> int:
        """The number of a text, which is added where it is new. `topic` is what the conversation is about."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
            self._drawable.append(0)
        if drawable and not self._drawable[number]:
            self._drawable[number] = 1
            self.drawable.append(number)
        if drawable and topic is not None:
            self._topics.setdefault(topic, array("I")).append(number)
        return number

    def about(self, topic: Hashable) -> Sequence[int]:
        """The drawable texts that were said about a topic, a text as often as it was said."""
        return self._topics.get(topic, array("I"))


class RightAnswers:
    """What was said next in each context, in any conversation of the run: all of it is right."""

    def __init__(self) -> None:
        self._answers: dict[Key, tuple[int, ...]] = {}

    def add(self, context: Key, numbers: Iterable[int]) -> None:
        """Texts, by their numbers, that are right in a context."""
        known = self._answers.get(context, ())
        self._answers[context] = tuple(dict.fromkeys((*known, *numbers)))

    def of(self, context: Key) -> tuple[int, ...]:
        """The numbers of what is right in a context."""
        return self._answers.get(context, ())


def key_of(context: Iterable[str]) -> Key:
    """What stands for the utterances of a context."""
    digest = hashlib.blake2b(digest_size=16)
    for text in context:
        data = text.encode()
        digest.update(b"%d:%b" % (len(data), data))
    return digest.digest()
