"""The `exercises:` of a space as frozen values, as its file says them; and one exercise that they make."""

from __future__ import annotations

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
    """Values of dimensions, of their fields (`object.gender`) or of rules. Without: where no other case
    applies."""
    point: str | None = None
    """A point that a tutor may make about this case, a template."""


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """A point that a tutor may make."""

    text: str
    """The words of the point, a template."""
    when: When = {}
    """Conditions under which it belongs to an exercise, as in a rule."""


class Thing(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thing in a picture. Each text is a template; where `thing` gives nothing, it is left out."""

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
    """The dimensions that an exercise is made of; the next one shares at least one of their values with
    it."""
    question: str
    """The question, a template."""
    answers: tuple[str, ...]
    """The right answer, a template, or a list of several forms of it; the first is the one that is shown."""
    points: tuple[Point, ...] = ()
    """Points that a tutor may make: texts, or mappings with `text` and `when`."""
    picture: str | None = None
    """The picture in words, a template."""
    draw: tuple[Thing, ...] = ()
    """Things that are drawn as its picture, the nearest to the front last."""
    send: Literal["words", "drawing"] = "words"
    """The `picture` that models get: its words, or what `draw` draws, as a PNG picture. Drawings need the
    extra `pictures`, and have neither cards nor labels."""
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
    """Whether an answer has to have its accents."""


class Exercise(msgspec.Struct, frozen=True, kw_only=True):
    """One exercise."""

    tier: str  # of the grammar
    concepts: dict[str, str]  # its values by dimension
    question: str  # the task
    answers: tuple[str, ...]  # at least one
    points: tuple[str, ...] = ()  # that a tutor may make
    rules: tuple[str, ...] = ()
    """The points that are not vocabulary: those of the cases of rules, and those of every exercise of the
    tier."""
    picture: str | None = None  # the picture in words; None without one
    mistake: str | None = None  # a likely wrong answer; None without one
    drawing: tuple[Thing, ...] = ()  # things in the picture

    @property
    def answer(self) -> str:
        """The right answer that is shown."""
        return self.answers[0]


SECTION = "exercises"  # the key of a space's section


def exercises_of(space: Space) -> Exercises | None:
    """Return the grammar of a space's exercises; None where it has none."""
    found: Exercises | None = space.sections.get(SECTION)
    return found
