"""The `exercises:` of a space as frozen values, in the form of its file; and one exercise made from them,
with the check whether a text contains its right answer.

Words are compared without case, punctuation and the form of apostrophes, and without accents if the space
ignores them; the answer may be anywhere in a text. Numbers are compared by value: 2/4 is 1/2, 0.5 and ½.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import Literal

import msgspec

from edgen.plugin import Space

When = dict[str, tuple[str | int | float | bool, ...]]

# Fields of an exercise, by the names that roles may see and templates may use.
SHOWN = ("question", "picture", "answer", "points", "mistake")


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """A case of a rule."""

    gives: str
    """The rule's text in this case, a template."""
    when: When = {}
    """Values of dimensions, of their fields (`object.gender`) or of rules. Without: the case applies if no
    other does."""
    point: str | None = None
    """A point that a tutor may make about this case, a template."""


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """A point that a tutor may make."""

    text: str
    """The words of the point, a template."""
    when: When = {}
    """Conditions under which the point belongs to an exercise, as in a rule."""


class Thing(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thing in a picture. Each text is a template; a thing with an empty `thing` is left out."""

    thing: str
    """A shape (square, triangle, circle, star, heart), an object (cat, dog, bunny, plant, tree, ball, table,
    box, bag, bed), `something`, a `card` with words, or parts of a whole as a `bar` or a `pie`."""
    colour: str = "grey"
    """red, orange, yellow, green, blue, purple, pink, brown, black, white or grey."""
    position: str = ""
    """Its place, seen from the last thing without a position: `on top of`, `under`, `inside of`, `next to`,
    `behind` or `in front of`."""
    parts: str = ""
    """How many parts of a bar or a pie are filled."""
    of: str = ""
    """How many parts it has."""
    label: str = ""
    """Words under it, or on a card."""


class Tier(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pattern of exercises."""

    concepts: tuple[str, ...]
    """The dimensions of an exercise; the next exercise shares at least one of their values."""
    question: str
    """The question, a template."""
    answers: tuple[str, ...]
    """The right answer, a template, or a list of several forms of it; the first is shown."""
    points: tuple[Point, ...] = ()
    """Points that a tutor may make: texts, or mappings with `text` and `when`."""
    picture: str | None = None
    """The picture in words, a template."""
    draw: tuple[Thing, ...] = ()
    """Things that are drawn as its picture, the foremost last."""
    send: Literal["words", "drawing"] = "words"
    """The `picture` for models: its words, or the drawing of `draw` as PNG. Drawings need the extra
    `pictures`, and have neither cards nor labels."""
    mistake: str | None = None
    """The answer of a learner who has the scenario's misconception, a template."""
    answer_kind: Literal["words", "number"] = "words"
    """How an answer is compared: as words, or as a number by its value."""


class Exercises(msgspec.Struct, frozen=True, omit_defaults=True):
    """The grammar of a space's exercises."""

    tiers: dict[str, Tier]
    """Patterns of exercises by their names, the easiest first."""
    rules: dict[str, tuple[Case, ...]] = {}
    """Texts that depend on the values, by name: cases, each with its text and its conditions."""
    accents: Literal["needed", "ignored"] = "needed"
    """Whether answers need their accents."""


class Exercise(msgspec.Struct, frozen=True, kw_only=True):
    """One exercise."""

    tier: str  # of the grammar
    concepts: dict[str, str]  # its values by dimension
    question: str  # the task
    answers: tuple[str, ...]  # right answers, at least one
    points: tuple[str, ...] = ()  # points that a tutor may make
    rules: tuple[str, ...] = ()
    """The points that are not vocabulary: those of rules' cases, and those that are the same in every
    exercise of the tier."""
    picture: str | None = None  # the picture in words; None without one
    mistake: str | None = None  # a likely wrong answer; None without one
    drawing: tuple[Thing, ...] = ()  # things in the picture

    @property
    def answer(self) -> str:
        """The right answer that is shown to the tutor."""
        return self.answers[0]


SECTION = "exercises"  # the key of the section in a space's file


def find_exercises(space: Space) -> Exercises | None:
    """Return the grammar of a space's exercises; None if it has none."""
    found: Exercises | None = space.sections.get(SECTION)
    return found


_WORD = re.compile(r"\w+")
_NUMBER = re.compile(
    r"(?<![\w.,/])(-?\d+)\s+(\d+)/(\d+)(?![\d/])|(?<![\w.,/])(-?\d+)/(\d+)(?![\d/])"
    r"|(?<![\w.,/])-?\d+(?:[.,]\d+)?(?![\d/])"
)
MAX_SAID = 20_000  # characters of a text that are searched


def is_right(text: str, exercise: Exercise, exercises: Exercises) -> bool:
    """Return whether a text contains one of the right answers.

    If the answer is a number that the question names, as in comparing two numbers, only the last number in
    the text counts.
    """
    if exercises.tiers[exercise.tier].answer_kind == "number":
        return _has_number(text[:MAX_SAID], exercise)
    accents = exercises.accents == "needed"
    words = f" {' '.join(split_words(text[:MAX_SAID], accents=accents))} "
    wanted = (" ".join(split_words(answer, accents=accents)) for answer in exercise.answers)
    return any(one and f" {one} " in words for one in wanted)


def split_words(text: str, *, accents: bool = True) -> list[str]:
    """Return the words of a text in the form in which they are compared."""
    text = unicodedata.normalize("NFKC", text).casefold()
    if not accents and not text.isascii():
        text = "".join(
            char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn"
        )
    return _WORD.findall(text)


def find_numbers(text: str) -> list[Fraction]:
    """Return the numbers in a text by value: whole numbers, decimals, fractions, mixed numbers such as 1
    1/2."""
    text = unicodedata.normalize("NFKC", re.sub(r"(\d)([¼-¾⅐-⅞])", r"\1 \2", text))
    text = text.replace("\u2044", "/").replace("\u2212", "-")
    found = []
    for match in _NUMBER.finditer(text):
        whole, part, of, over, under = match.groups()
        if (of or under) is not None and int(of or under) == 0:
            continue
        if whole is not None:
            sign = -1 if whole.startswith("-") else 1
            found.append(int(whole) + sign * Fraction(int(part), int(of)))
        elif over is not None:
            found.append(Fraction(int(over), int(under)))
        else:
            found.append(Fraction(match[0].replace(",", ".")))
    return found


def _has_number(said: str, exercise: Exercise) -> bool:
    found, asked = find_numbers(said), {*find_numbers(exercise.question)}
    wanted = {number for answer in exercise.answers for number in find_numbers(answer)[:1]}
    return bool(wanted & {*found[-1:]} or (wanted - asked) & {*found})
