"""The section `exercises` of a space file: reading, checking and showing exercises for the rest of edgen.

Reading reports every problem with its path. `check` makes every exercise once, with `grammar`.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.domains.tutoring.exercises.model import SHOWN, Case, Exercise, Exercises, Point, Thing, Tier
from edgen.plugin.errors import Problem, SpaceError
from edgen.plugin.files import convert, shorten_word, suggest_name
from edgen.space.entries import find_dimension_problem
from edgen.space.model import SpaceSection

if TYPE_CHECKING:
    from edgen.plugin import Space

_COLUMNS = 80


MAX_TIERS = 10
MAX_RULES = 100
MAX_LISTED = 1_000  # cases of a rule, answers and points of a tier
MAX_THINGS = 12  # things in a picture
IMAGE = re.compile(r"(?i)\.(?:png|jpe?g|gif|webp)\s*$")  # the end of an image file's name


def read_exercises(value: Any, dimensions: Collection[str], problems: list[Problem]) -> Exercises | None:
    """Return the grammar under `exercises:` of a space with these dimensions; None if it is invalid."""
    before = len(problems)
    found: Exercises | None = convert(_write_out(value), Exercises, "$.exercises", problems)
    if found is None or len(problems) > before:
        return None
    problems += _find_problems(found, dimensions)
    return found if len(problems) == before else None


def _write_out(value: Any) -> Any:
    """Return the value with every short form written out: one answer as a list, a point as a mapping, one
    value of a condition as a list."""
    if not isinstance(value, dict):
        return value
    spread = dict(value)
    if isinstance(tiers := value.get("tiers"), dict):
        spread["tiers"] = {name: _write_out_tier(tier) for name, tier in tiers.items()}
    if isinstance(rules := value.get("rules"), dict):
        spread["rules"] = {name: _write_out_list(cases) for name, cases in rules.items()}
    return spread


def _write_out_tier(tier: Any) -> Any:
    if not isinstance(tier, dict):
        return tier
    spread = dict(tier)
    if isinstance(tier.get("answers"), str):
        spread["answers"] = [tier["answers"]]
    if isinstance(points := tier.get("points"), list):
        spread["points"] = _write_out_list([{"text": one} if isinstance(one, str) else one for one in points])
    return spread


def _write_out_list(cases: Any) -> Any:
    """Return cases or points, each with its conditions as lists."""
    if not isinstance(cases, list):
        return cases
    return [
        {**one, "when": {name: said if isinstance(said, list) else [said] for name, said in when.items()}}
        if isinstance(one, dict) and isinstance(when := one.get("when"), dict)
        else one
        for one in cases
    ]


def _find_problems(found: Exercises, dimensions: Collection[str]) -> Iterator[Problem]:
    """Return the problems of names, and of numbers of elements."""
    for name in SHOWN:
        if name in dimensions:
            message = f"every exercise has a {name} of its own; give this dimension another name"
            yield Problem(f"$.dimensions.{name}", message)
    for key, named, most in (("tiers", found.tiers, MAX_TIERS), ("rules", found.rules, MAX_RULES)):
        if not named and key == "tiers":
            yield Problem(f"$.exercises.{key}", "this is empty; write one pattern of exercises at least")
        if len(named) > most:
            yield Problem(
                f"$.exercises.{key}", f"{len(named):,} {key} are too many; there are at most {most}"
            )
        for name in named:
            if wrong := find_dimension_problem(name):
                yield Problem(f"$.exercises.{key}.{shorten_word(name)}", wrong)
    for name, cases in found.rules.items():
        path = f"$.exercises.rules.{shorten_word(name)}"
        if name in dimensions or name in SHOWN:
            whose = "a dimension" if name in dimensions else "every exercise"
            yield Problem(path, f"{whose} has this name, too; choose another")
        yield from _check_length(path, cases)
        if sum(not case.when for case in cases) > 1:
            yield Problem(path, "more than one case has no condition; one at most is for all the rest")
    for name, tier in found.tiers.items():
        path = f"$.exercises.tiers.{shorten_word(name)}"
        yield from _check_length(f"{path}.answers", tier.answers)
        yield from _check_length(f"{path}.points", tier.points, least=0)
        yield from _check_length(f"{path}.draw", tier.draw, least=0, most=MAX_THINGS)
        yield from _check_concepts(f"{path}.concepts", tier.concepts, dimensions)


def _check_length(
    path: str, values: Collection[Any], least: int = 1, most: int = MAX_LISTED
) -> Iterator[Problem]:
    if not least <= len(values) <= most:
        yield Problem(path, f"expected a list of {least} to {most:,}")


def _check_concepts(path: str, concepts: tuple[str, ...], dimensions: Collection[str]) -> Iterator[Problem]:
    for i, name in enumerate(concepts):
        if name not in dimensions:
            message = f"there is no dimension {shorten_word(name)}{suggest_name(name, dimensions)}"
            yield Problem(f"{path}[{i}]", message)
    if not concepts or len({*concepts}) < len(concepts):
        yield Problem(path, "expected one dimension or more, each listed once, as in [colour, shape]")


class ExercisesSection(SpaceSection):
    """The section of questions with right answers, which a grammar makes from the values of a space."""

    name = "exercises"
    drawn = "Exercises to show of each tier."
    help = "Exercises that the values make: questions with right answers, by a grammar."
    shown = SHOWN
    structs = (Exercises, Tier, Thing, Case, Point)
    root = "Exercises"

    def read(self, value: Any, dimensions: Collection[str], problems: list[Problem]) -> Exercises | None:
        """Return the grammar; None if it is invalid."""
        return read_exercises(value, dimensions, problems)

    def widen(self, definitions: dict[str, Any]) -> None:
        """Allow a single answer in place of a list, a point as a text, and a single value of a condition."""
        text = {"type": "string"}
        tier = definitions["Tier"]["properties"]
        answers = tier["answers"]
        tier["answers"] = {"description": answers.pop("description"), "anyOf": [text, answers]}
        tier["points"]["items"] = {"anyOf": [text, tier["points"]["items"]]}
        for name in ("Case", "Point"):
            when = definitions[name]["properties"]["when"]["additionalProperties"]
            definitions[name]["properties"]["when"]["additionalProperties"] = {"anyOf": [when["items"], when]}

    def content(self, section: Exercises) -> Any:
        """Return the grammar without drawings, which do not shape requests or answers."""
        exercises = msgspec.to_builtins(section)
        tiers = {
            name: {key: said for key, said in tier.items() if key != "draw"}
            for name, tier in exercises["tiers"].items()
        }
        return {**exercises, "tiers": tiers}

    def pictures(self, space: Space) -> Iterator[tuple[str, str]]:
        """Yield the image files that are pictures of exercises."""
        grammar: Exercises = space.sections[self.name]
        if any(tier.picture is not None and IMAGE.search(tier.picture) for tier in grammar.tiers.values()):
            from edgen.domains.tutoring.exercises.grammar import Grammar
            from edgen.domains.tutoring.exercises.pool import list_picture_files

            with contextlib.suppress(SpaceError):  # `check` reports it
                yield from list_picture_files(Grammar(space))

    def drawings(self, space: Space) -> Iterator[tuple[str, str, str]]:
        """Yield the drawings of exercises in tiers that send them."""
        grammar: Exercises = space.sections[self.name]
        if any(tier.send == "drawing" for tier in grammar.tiers.values()):
            from edgen.domains.tutoring.exercises.grammar import Grammar
            from edgen.domains.tutoring.exercises.pool import draw_pictures

            with contextlib.suppress(SpaceError):  # `check` reports it
                yield from draw_pictures(Grammar(space))

    def check(self, space: Space) -> None:
        """Make every exercise once. Raises SpaceError."""
        from edgen.domains.tutoring.exercises.grammar import Grammar
        from edgen.domains.tutoring.exercises.pool import check_exercises

        check_exercises(Grammar(space))

    def dimensions(self, section: Exercises) -> frozenset[str]:
        """Return the dimensions that are concepts of exercises."""
        return frozenset(name for tier in section.tiers.values() for name in tier.concepts)

    def describe(self, space: Space, examples: int) -> dict[str, Any]:
        """Return each tier's number of exercises, its dimensions, and some exercises."""
        from edgen.domains.tutoring.exercises.grammar import Grammar
        from edgen.domains.tutoring.exercises.pool import check_exercises, list_example_exercises

        grammar = Grammar(space)
        return {
            name: {
                "exercises": count,
                "concepts": list(grammar.tiers[name].tier.concepts),
                "shown": [_describe_exercise(one) for one in list_example_exercises(grammar, name, examples)],
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
        """Draw this many exercises of each tier."""
        from edgen.domains.tutoring.exercises.pictures import PAGE, write_pictures

        return write_pictures(space, folder, examples), folder / PAGE


SECTION = ExercisesSection()


def _describe_exercise(exercise: Exercise) -> dict[str, Any]:
    """Return an exercise as JSON values, with its rules among its points."""
    found: dict[str, Any] = msgspec.to_builtins(exercise)
    del found["rules"]
    return found


def _wrap(label: str, text: str) -> list[str]:
    head = f"{'':20} {label} "
    return textwrap.wrap(
        text, _COLUMNS, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )
