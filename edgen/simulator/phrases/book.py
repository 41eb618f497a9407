"""The phrase book: phrases.txt compiled once, and voices that speak from it.

A rule is a list of phrasings; a phrasing alternates literal text and names. All randomness comes from
the Voice's generator, so the same generator gives the same words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from random import Random

from edgen.reading import phrase_kinds

# Literal, name, literal, name, … literal: the result of `re.split` on a group.
Phrasing = tuple[str, ...]

_NAME = re.compile(r"\{([A-Za-z_.]+)\}")
_ONCE = {"aspect", "quality"}  # nested rules whose phrasings must not repeat either


def compile_book(text: str) -> dict[str, tuple[Phrasing, ...]]:
    """Return the rules in a phrase book's text. Raises ValueError for a line outside any rule."""
    rules: dict[str, list[Phrasing]] = {}
    phrasings: list[Phrasing] | None = None
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            phrasings = rules.setdefault(line[1:-1], [])
        elif phrasings is None:
            raise ValueError(f"no rule is open at {line!r}")
        else:
            phrasings.append(tuple(_NAME.split(line)))
    return {name: tuple(lines) for name, lines in rules.items()}


BOOK = compile_book(Path(__file__).with_name("phrases.txt").read_text(encoding="utf-8"))


class PhraseSpeaker:
    """A speaker of rules. It repeats no phrasing, aspect or quality in one conversation until all are used.
    `aspects`: the aspects of the topic, if the space names any."""

    __slots__ = ("_aspects", "_random", "_said", "slots")

    def __init__(self, rng: Random, slots: Mapping[str, str], aspects: tuple[Phrasing, ...] = ()) -> None:
        self.slots = slots
        self._aspects = aspects or BOOK["aspect"]
        self._random = rng.random
        self._said: set[int] = set()

    def say(self, rule: str) -> str:
        """Return one phrasing of `rule`, with a capital."""
        return _capitalize(self._fill(self._choose_fresh_phrasing(BOOK[rule])))

    def close(self, side: str, kind: str, mood: str) -> str:
        """Return the last words of a side, `s` or `t`, for this kind of reaction."""
        own = f"{side}.close.{kind}"
        return self.say(own if mood == "bad" and own in BOOK else f"{side}.close.{mood}")

    def _fill(self, phrasing: Phrasing) -> str:
        if len(phrasing) == 1:
            return phrasing[0]
        out = [phrasing[0]]
        for i in range(1, len(phrasing), 2):
            name = phrasing[i]
            rule = name.lower()
            value = self.slots.get(rule)
            if value is None:
                phrasings = self._aspects if rule == "aspect" else BOOK[rule]
                value = self._fill(
                    self._choose_fresh_phrasing(phrasings)
                    if rule in _ONCE
                    else self._choose_any_phrasing(phrasings)
                )
            out += (value if name == rule else _capitalize(value), phrasing[i + 1])
        return "".join(out)

    def _choose_any_phrasing(self, phrasings: tuple[Phrasing, ...]) -> Phrasing:
        return phrasings[int(self._random() * len(phrasings))]

    def _choose_fresh_phrasing(self, phrasings: tuple[Phrasing, ...]) -> Phrasing:
        """Return an unused phrasing; once all are used, all are fresh again."""
        count, said = len(phrasings), self._said
        start = int(self._random() * count)
        phrasing = phrasings[start]
        if id(phrasing) in said:
            for at in range(start + 1 - count, start):  # the other phrasings, from the next one on
                if id(phrasings[at]) not in said:
                    phrasing = phrasings[at]
                    break
            else:
                said.difference_update(map(id, phrasings))
        said.add(id(phrasing))
        return phrasing


@lru_cache(maxsize=256)
def list_aspects(texts: tuple[str, ...]) -> tuple[Phrasing, ...]:
    """Return the aspects of a topic as phrasings of `aspect`, with some aspects of every topic."""
    return (
        *((text,) for text in texts),
        *(phrasing for phrasing in BOOK["aspect"] if phrasing[0] in _OF_ANY_TOPIC),
    )


_OF_ANY_TOPIC = ("the main idea", "the hardest part", "the bigger picture", "the most surprising detail")


_GRUDGING = ("s.first.doubt", "s.confused", "s.wish", "s.prefer", "s.ask.", "s.react.")


@lru_cache(maxsize=4)
def _index_phrasings(*rules: str) -> tuple[frozenset[str], dict[str, list[str]]]:
    """Return an index of the phrasings of the rules whose names begin with `rules`: the keys, and the
    phrasings by key.

    The key of a phrasing is its rarest word between the first and the last, which stands between blanks in
    any text that says the phrasing. The key "" has the phrasings without such a word.
    """
    phrasings = {
        max(phrasing[::2], key=len).strip()
        for rule in BOOK
        if rule.startswith(rules)
        for phrasing in BOOK[rule]
    }
    inner = {
        phrasing[1:]: phrasing[1:].split(" ")[1:-1] for phrasing in phrasings if len(phrasing) > _TELLING
    }
    counts = Counter(word for words in inner.values() for word in words)
    said: dict[str, list[str]] = {}
    for phrasing, words in sorted(inner.items()):
        said.setdefault(min(words, key=lambda word: (counts[word], -len(word), word), default=""), []).append(
            phrasing
        )
    return frozenset(said), said


_TELLING = 8  # characters; shorter words occur in other sentences, too


def is_grudging(text: str) -> bool:
    """Return whether a student's turn holds a complaint, a wish or a sign of confusion from the book. Such
    turns get no praise."""
    return _holds_any(text, *_GRUDGING)


def find_praise(text: str) -> str:
    """Return the rule for a teacher's praise of a student's turn. A student who only looks forward to the
    lesson gets no praise for an insight."""
    return "t.glad" if _holds_any(text, "s.first.welcome") else "t.nod"


def is_summary(text: str) -> bool:
    """Return whether a teacher's turn asks how the lesson was, in the book's words, so that a goodbye answers
    it."""
    return _holds_any(text, "t.before.")


def _holds_any(text: str, *rules: str) -> bool:
    words, said = _index_phrasings(*rules)
    return any(
        phrasing in text for word in words.intersection(["", *text.split(" ")]) for phrasing in said[word]
    )


def join(*sentences: str) -> str:
    """Join the non-empty sentences."""
    return " ".join([sentence for sentence in sentences if sentence])


def fit_inside_sentence(topic: str | None) -> str:
    """Return a topic for the middle of a sentence, such as "the Eiffel Tower"."""
    topic = topic or "today's topic"
    if topic in _WITHOUT_ARTICLE:
        return "the " + topic
    if topic == "The Machu Picchu":  # so in Education Dialogue
        return "Machu Picchu"
    return "the " + topic[4:] if topic.startswith("The ") else topic


# Topics of Education Dialogue that need an article in a sentence.
_WITHOUT_ARTICLE = ("Pythagorean Theorem", "Minotaur")


def _capitalize(text: str) -> str:
    first = text[:1]
    return text if "A" <= first <= "Z" else first.upper() + text[1:]


class FreshVoice(PhraseSpeaker):
    """A voice that knows its side's earlier turns and does not repeat them."""

    __slots__ = ("_heard",)

    def __init__(
        self, rng: Random, slots: Mapping[str, str], heard: str, aspects: tuple[Phrasing, ...] = ()
    ) -> None:
        super().__init__(rng, slots, aspects)
        self._heard = heard

    def say_one(self, phrasings: tuple[Phrasing, ...]) -> str:
        """Return one of the phrasings, with a capital."""
        return _capitalize(self._fill(self._choose_fresh_phrasing(phrasings)))

    def choose_name(self, family: str) -> str:
        """Return a plain name of a family of methods."""
        return self._fill(self._choose_any_phrasing(BOOK[f"name.{family}"]))

    def _choose_fresh_phrasing(self, phrasings: tuple[Phrasing, ...]) -> Phrasing:
        heard, said = self._heard, self._said
        misleading = _find_misleading()
        start = int(self._random() * len(phrasings))
        for step in range(len(phrasings)):
            phrasing = phrasings[(start + step) % len(phrasings)]
            if (
                id(phrasing) not in said
                and id(phrasing) not in misleading
                and (not heard or _probe(phrasing) not in heard)
            ):
                break
        else:
            return super()._choose_fresh_phrasing(phrasings)
        said.add(id(phrasing))
        return phrasing


@lru_cache(maxsize=4_096)
def _probe(phrasing: Phrasing) -> str:
    """Return the longest literal part of a phrasing, which identifies it."""
    return max(phrasing[::2], key=len)[1:]


@lru_cache(maxsize=1)
def _find_misleading() -> frozenset[int]:
    """Return the aspects whose words look like a method: `the clearest illustration` is not a picture."""
    return frozenset([id(phrasing) for phrasing in BOOK["aspect"] if phrase_kinds.find_methods(phrasing[0])])
