"""The phrase book: phrases.txt compiled once, and voices that speak from it.

A rule is a list of ways to say something; a way alternates literal text and names. All randomness comes from
the Voice's generator, so the same generator gives the same words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from random import Random

from edgen.reading import phrase_kinds as ways

# Literal, name, literal, name, … literal: the result of `re.split` on a group.
Way = tuple[str, ...]

_NAME = re.compile(r"\{([A-Za-z_.]+)\}")
_ONCE = {"aspect", "quality"}  # nested rules whose ways must not repeat either


def compile_book(text: str) -> dict[str, tuple[Way, ...]]:
    """Return the rules in a phrase book's text. Raises ValueError for a line outside any rule."""
    rules: dict[str, list[Way]] = {}
    ways: list[Way] | None = None
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            ways = rules.setdefault(line[1:-1], [])
        elif ways is None:
            raise ValueError(f"no rule is open at {line!r}")
        else:
            ways.append(tuple(_NAME.split(line)))
    return {name: tuple(lines) for name, lines in rules.items()}


BOOK = compile_book(Path(__file__).with_name("phrases.txt").read_text(encoding="utf-8"))


class PhraseSpeaker:
    """A speaker of rules. It repeats no way, aspect or quality in one conversation until all are used.
    `aspects`: the aspects of the topic, if the space names any."""

    __slots__ = ("_aspects", "_random", "_said", "slots")

    def __init__(self, rng: Random, slots: Mapping[str, str], aspects: tuple[Way, ...] = ()) -> None:
        self.slots = slots
        self._aspects = aspects or BOOK["aspect"]
        self._random = rng.random
        self._said: set[int] = set()

    def say(self, rule: str) -> str:
        """Return one way to say `rule`, with a capital."""
        return _capitalize(self._fill(self._choose_fresh_way(BOOK[rule])))

    def close(self, side: str, kind: str, mood: str) -> str:
        """Return the last words of a side, `s` or `t`, for this kind of reaction."""
        own = f"{side}.close.{kind}"
        return self.say(own if mood == "bad" and own in BOOK else f"{side}.close.{mood}")

    def _fill(self, way: Way) -> str:
        if len(way) == 1:
            return way[0]
        out = [way[0]]
        for i in range(1, len(way), 2):
            name = way[i]
            rule = name.lower()
            value = self.slots.get(rule)
            if value is None:
                ways = self._aspects if rule == "aspect" else BOOK[rule]
                value = self._fill(
                    self._choose_fresh_way(ways) if rule in _ONCE else self._choose_any_way(ways)
                )
            out += (value if name == rule else _capitalize(value), way[i + 1])
        return "".join(out)

    def _choose_any_way(self, ways: tuple[Way, ...]) -> Way:
        return ways[int(self._random() * len(ways))]

    def _choose_fresh_way(self, ways: tuple[Way, ...]) -> Way:
        """Return an unused way; once all are used, all are fresh again."""
        count, said = len(ways), self._said
        start = int(self._random() * count)
        way = ways[start]
        if id(way) in said:
            for at in range(start + 1 - count, start):  # the other ways, from the next one on
                if id(ways[at]) not in said:
                    way = ways[at]
                    break
            else:
                said.difference_update(map(id, ways))
        said.add(id(way))
        return way


@lru_cache(maxsize=256)
def list_aspects(texts: tuple[str, ...]) -> tuple[Way, ...]:
    """Return the aspects of a topic as ways to say `aspect`, with some aspects of every topic."""
    return (*((text,) for text in texts), *(way for way in BOOK["aspect"] if way[0] in _OF_ANY_TOPIC))


_OF_ANY_TOPIC = ("the main idea", "the hardest part", "the bigger picture", "the most surprising detail")


_GRUDGING = ("s.first.doubt", "s.confused", "s.wish", "s.prefer", "s.ask.", "s.react.")


@lru_cache(maxsize=4)
def _index_ways(*rules: str) -> tuple[frozenset[str], dict[str, list[str]]]:
    """Return an index of the ways of the rules whose names begin with `rules`: the keys, and the ways by key.

    The key of a way is its rarest word between the first and the last, which stands between blanks in any
    text that says the way. The key "" has the ways without such a word.
    """
    ways = {max(way[::2], key=len).strip() for rule in BOOK if rule.startswith(rules) for way in BOOK[rule]}
    inner = {way[1:]: way[1:].split(" ")[1:-1] for way in ways if len(way) > _TELLING}
    counts = Counter(word for words in inner.values() for word in words)
    said: dict[str, list[str]] = {}
    for way, words in sorted(inner.items()):
        said.setdefault(min(words, key=lambda word: (counts[word], -len(word), word), default=""), []).append(
            way
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
    words, said = _index_ways(*rules)
    return any(way in text for word in words.intersection(["", *text.split(" ")]) for way in said[word])


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
        self, rng: Random, slots: Mapping[str, str], heard: str, aspects: tuple[Way, ...] = ()
    ) -> None:
        super().__init__(rng, slots, aspects)
        self._heard = heard

    def say_one(self, ways: tuple[Way, ...]) -> str:
        """Return one of the ways, with a capital."""
        text = self._fill(self._choose_fresh_way(ways))
        return text[:1].upper() + text[1:]

    def choose_name(self, family: str) -> str:
        """Return a plain name of a family of methods."""
        return self._fill(self._choose_any_way(BOOK[f"name.{family}"]))

    def _choose_fresh_way(self, ways: tuple[Way, ...]) -> Way:
        heard, said = self._heard, self._said
        misleading = _find_misleading()
        start = int(self._random() * len(ways))
        for step in range(len(ways)):
            way = ways[(start + step) % len(ways)]
            if id(way) not in said and id(way) not in misleading and (not heard or _probe(way) not in heard):
                break
        else:
            return super()._choose_fresh_way(ways)
        said.add(id(way))
        return way


@lru_cache(maxsize=4_096)
def _probe(way: Way) -> str:
    """Return the longest literal part of a way, which identifies it."""
    return max(way[::2], key=len)[1:]


@lru_cache(maxsize=1)
def _find_misleading() -> frozenset[int]:
    """Return the aspects whose words look like a method: `the clearest illustration` is not a picture."""
    return frozenset([id(way) for way in BOOK["aspect"] if ways.find_methods(way[0])])
