"""The section `exercises` of a space file: how the rest of edgen reads, checks and shows exercises."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.domains.tutoring.exercises.model import SHOWN, Case, Exercise, Exercises, Point, Thing, Tier
from edgen.plugin import Problem
from edgen.plugin.errors import SpaceError
from edgen.space.model import SpaceSection

if TYPE_CHECKING:
    from edgen.plugin import Space
from edgen.domains.tutoring.exercises.parse import IMAGE, read_exercises

_COLUMNS = 80


class ExercisesSection(SpaceSection):
    """Questions with right answers, which the values of a space make by a grammar."""

    name = "exercises"
    drawn = "Exercises to show of each tier."
    help = "Exercises that the values make: questions with right answers, by a grammar."
    shown = SHOWN
    structs = (Exercises, Tier, Thing, Case, Point)
    root = "Exercises"

    def read(self, value: Any, dimensions: Collection[str], problems: list[Problem]) -> Exercises | None:
        """Return the grammar, None where it cannot be read."""
        return read_exercises(value, dimensions, problems)

    def widen(self, definitions: dict[str, Any]) -> None:
        """Allow one answer for a list, a point as a text, and one value of a condition for a list."""
        text = {"type": "string"}
        tier = definitions["Tier"]["properties"]
        answers = tier["answers"]
        tier["answers"] = {"description": answers.pop("description"), "anyOf": [text, answers]}
        tier["points"]["items"] = {"anyOf": [text, tier["points"]["items"]]}
        for name in ("Case", "Point"):
            when = definitions[name]["properties"]["when"]["additionalProperties"]
            definitions[name]["properties"]["when"]["additionalProperties"] = {"anyOf": [when["items"], when]}

    def content(self, section: Exercises) -> Any:
        """Return the grammar without drawings, which shape nothing that is asked or answered."""
        exercises = msgspec.to_builtins(section)
        tiers = {
            name: {key: said for key, said in tier.items() if key != "draw"}
            for name, tier in exercises["tiers"].items()
        }
        return {**exercises, "tiers": tiers}

    def pictures(self, space: Space) -> Iterator[tuple[str, str]]:
        """Yield the image files that exercises have as their pictures."""
        grammar: Exercises = space.sections[self.name]
        if any(tier.picture is not None and IMAGE.search(tier.picture) for tier in grammar.tiers.values()):
            from edgen.domains.tutoring.exercises.check import picture_files
            from edgen.domains.tutoring.exercises.grammar import Grammar

            with contextlib.suppress(SpaceError):  # `check` reports it
                yield from picture_files(Grammar(space))

    def drawings(self, space: Space) -> Iterator[tuple[str, str, str]]:
        """Yield what `draw` draws of each exercise of the tiers that send it."""
        grammar: Exercises = space.sections[self.name]
        if any(tier.send == "drawing" for tier in grammar.tiers.values()):
            from edgen.domains.tutoring.exercises.check import draw_pictures
            from edgen.domains.tutoring.exercises.grammar import Grammar

            with contextlib.suppress(SpaceError):  # `check` reports it
                yield from draw_pictures(Grammar(space))

    def check(self, space: Space) -> None:
        """Make every exercise once. Raises SpaceError."""
        from edgen.domains.tutoring.exercises.check import check_exercises
        from edgen.domains.tutoring.exercises.grammar import Grammar

        check_exercises(Grammar(space))

    def dimensions(self, section: Exercises) -> frozenset[str]:
        """Return the dimensions that exercises are made of."""
        return frozenset(name for tier in section.tiers.values() for name in tier.concepts)

    def describe(self, space: Space, examples: int) -> dict[str, Any]:
        """Return each tier's number of exercises, its dimensions, and some exercises."""
        from edgen.domains.tutoring.exercises.check import check_exercises, example_exercises
        from edgen.domains.tutoring.exercises.grammar import Grammar

        grammar = Grammar(space)
        return {
            name: {
                "exercises": count,
                "concepts": list(grammar.tiers[name].tier.concepts),
                "shown": [_describe_exercise(one) for one in example_exercises(grammar, name, examples)],
            }
            for name, count in check_exercises(grammar).items()
        }

    def render(self, facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield each tier with some exercises and their answers."""
        for name, tier in facts.items():
            yield ""
            yield f"{'exercises':20} {tier['exercises']:>7,} {name}, of {', '.join(tier['concepts'])}"
            for one in tier["shown"]:
                yield from _wrap("question ", one["question"])
                for key in ("answers", "mistake", "picture"):
                    said = " · ".join(one[key]) if key == "answers" else one.get(key)
                    if said:
                        yield from _wrap(f"{key:9}", said)

    def draw(self, space: Space, folder: Path, examples: int) -> tuple[int, Path]:
        """Draw so many exercises of each tier."""
        from edgen.domains.tutoring.exercises.pictures import PAGE, write_pictures

        return write_pictures(space, folder, examples), folder / PAGE


SECTION = ExercisesSection()


def _describe_exercise(exercise: Exercise) -> dict[str, Any]:
    """Return an exercise in plain values; its rules are among its points."""
    found: dict[str, Any] = msgspec.to_builtins(exercise)
    del found["rules"]
    return found


def _wrap(label: str, text: str) -> list[str]:
    head = f"{'':20} {label} "
    return textwrap.wrap(
        text, _COLUMNS, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )
