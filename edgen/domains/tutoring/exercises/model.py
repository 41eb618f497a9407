"""The `exercises:` of a space as frozen values, as its file says them; and one exercise that they make."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgen.plugin import Space

When = dict[str, tuple[str | int | float | bool, ...]]

# What an exercise says, by the names that roles may see and templates may use.
SHOWN = ("question", "picture", "answer", "points", "mistake")


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """A case of a rule."""

    gives: str
    """What the rule gives then, a template."""
    when: When = {}
    """Values of dimensions, of their fields (`object.gender`) or of rules. Without: where no other case
    applies."""
    point: str | None = None
    """What a tutor may tell about this case, a template."""


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a tutor may tell."""

    text: str
    """What it says, a template."""
    when: When = {}
    """When it belongs to an exercise, as in a rule."""


class Thing(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thing in a picture. Each text is a template; where `thing` gives nothing, it is left out."""

    thing: str
    """A shape (square, triangle, circle, star, heart), an object (cat, dog, bunny, plant, tree, ball, table,
    box, bag, bed), `something`, a `card` with words, or parts of a whole as a `bar` or a `pie`."""
    colour: str = "grey"
    """red, orange, yellow, green, blue, purple, pink, brown, black, white or grey."""
    position: str = ""
    """Where it is, seen from the last thing without a position: on top of, under, inside of, next to, behind,
    in front of."""
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
    """What is asked, a template."""
    answers: tuple[str, ...]
    """The right answer, a template, or a list of several forms of it; the first is the one that is shown."""
    points: tuple[Point, ...] = ()
    """What a tutor may tell: texts, or mappings with `text` and `when`."""
    picture: str | None = None
    """What the picture shows, in words, a template."""
    draw: tuple[Thing, ...] = ()
    """What is drawn as its picture, the nearest to the front last."""
    send: Literal["words", "drawing"] = "words"
    """The `picture` that models get: its words, or what `draw` draws, as a PNG picture. Drawings need the extra
    `pictures`, and have neither cards nor labels."""
    mistake: str | None = None
    """What a learner answers who has the scenario's misconception, a template."""
    answer_kind: Literal["words", "number"] = "words"
    """How an answer is compared: as words, or as a number by its value."""


class Exercises(msgspec.Struct, frozen=True, omit_defaults=True):
    """The grammar of a space's exercises."""

    tiers: dict[str, Tier]
    """Patterns of exercises by their names, the easiest first."""
    rules: dict[str, tuple[Case, ...]] = {}
    """What is worked out from the values, by name: cases, each with what it gives and when."""
    accents: Literal["needed", "ignored"] = "needed"
    """Whether an answer has to have its accents."""


class Exercise(msgspec.Struct, frozen=True, kw_only=True):
    """One exercise. `concepts` are its values by dimension; `answers` holds at least one; `picture` tells
    what its picture shows, and `drawing` holds the things in it. `rules` are those of the `points` that are
    no vocabulary: what the cases of rules tell, and what is told of every exercise of the tier."""

    tier: str
    concepts: dict[str, str]
    question: str
    answers: tuple[str, ...]
    points: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    picture: str | None = None
    mistake: str | None = None
    drawing: tuple[Thing, ...] = ()

    @property
    def answer(self) -> str:
        """The right answer that is shown."""
        return self.answers[0]


SECTION = "exercises"  # the key of a space's section


def exercises_of(space: Space) -> Exercises | None:
    """Return the grammar of a space's exercises; None where it has none."""
    found: Exercises | None = space.sections.get(SECTION)
    return found
