"""The section `exercises:` of a space file, read with every problem and its path.

What its texts and rules give is checked by `grammar`, which makes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from edgen.domains.tutoring.exercises.model import SHOWN, Exercises
from edgen.plugin import Problem
from edgen.plugin.files import convert, shorten_word, suggest_name
from edgen.space.entries import dimension_problem

if TYPE_CHECKING:
    pass


MAX_TIERS = 10
MAX_RULES = 100
MAX_LISTED = 1_000  # cases of a rule, answers and points of a tier
MAX_THINGS = 12  # of a picture
IMAGE = re.compile(r"(?i)\.(?:png|jpe?g|gif|webp)\s*$")  # the end of an image file's name


def read_exercises(value: Any, dimensions: Collection[str], problems: list[Problem]) -> Exercises | None:
    """Return the grammar under `exercises:` of a space with these dimensions; None where it cannot be
    read."""
    before = len(problems)
    found: Exercises | None = convert(_spread(value), Exercises, "$.exercises", problems)
    if found is None or len(problems) > before:
        return None
    problems += _problems(found, dimensions)
    return found if len(problems) == before else None


def _spread(value: Any) -> Any:
    """Return the value with every short form written out: one answer as a list, a point as a mapping, one
    value of a condition as a list."""
    if not isinstance(value, dict):
        return value
    spread = dict(value)
    if isinstance(tiers := value.get("tiers"), dict):
        spread["tiers"] = {name: _spread_tier(tier) for name, tier in tiers.items()}
    if isinstance(rules := value.get("rules"), dict):
        spread["rules"] = {name: _spread_list(cases) for name, cases in rules.items()}
    return spread


def _spread_tier(tier: Any) -> Any:
    if not isinstance(tier, dict):
        return tier
    spread = dict(tier)
    if isinstance(tier.get("answers"), str):
        spread["answers"] = [tier["answers"]]
    if isinstance(points := tier.get("points"), list):
        spread["points"] = _spread_list([{"text": one} if isinstance(one, str) else one for one in points])
    return spread


def _spread_list(cases: Any) -> Any:
    """Cases or points, each with its conditions as lists."""
    if not isinstance(cases, list):
        return cases
    return [
        {**one, "when": {name: said if isinstance(said, list) else [said] for name, said in when.items()}}
        if isinstance(one, dict) and isinstance(when := one.get("when"), dict)
        else one
        for one in cases
    ]


def _problems(found: Exercises, dimensions: Collection[str]) -> Iterator[Problem]:
    """Return the problems of names and numbers of things."""
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
            if wrong := dimension_problem(name):
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
        yield from _concepts(f"{path}.concepts", tier.concepts, dimensions)


def _check_length(
    path: str, values: Collection[Any], least: int = 1, most: int = MAX_LISTED
) -> Iterator[Problem]:
    if not least <= len(values) <= most:
        yield Problem(path, f"expected a list of {least} to {most:,}")


def _concepts(path: str, concepts: tuple[str, ...], dimensions: Collection[str]) -> Iterator[Problem]:
    for i, name in enumerate(concepts):
        if name not in dimensions:
            message = f"there is no dimension {shorten_word(name)}{suggest_name(name, dimensions)}"
            yield Problem(f"{path}[{i}]", message)
    if not concepts or len({*concepts}) < len(concepts):
        yield Problem(path, "expected one dimension or more, each listed once, as in [colour, shape]")
