"""All exercises of a space: each is checked by making it once, and the exercises of a session are drawn from
them.

Problems are rules without a case or with two cases for an exercise, cases that never apply, exercises without
an answer, two with the same question and different answers, and mistakes that are right.

The first exercise of a session is the scenario's own; each next one shares a value with the one before. The
choice depends only on (seed, index of the scenario, number of the exercise) and on the exercises before.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator
from typing import Any

from edgen.domains.tutoring.exercises.drawing import draw_exercise, make_drawing_name
from edgen.domains.tutoring.exercises.grammar import Grammar, RuleError, Values
from edgen.domains.tutoring.exercises.model import Exercise, is_right
from edgen.plugin import Scenario
from edgen.plugin.errors import Problem, SpaceError, TemplateError
from edgen.space.model import Entry
from edgen.space.pictures import names_picture

MAX_EXERCISES = 20_000  # exercises of a tier, with all values on which they depend
_MOST = 20  # problems reported of one tier
_TRIES = 40  # draws before the unused exercises are listed
_MOST_KEPT = 10_000  # exercises, and lists of cells, in memory

Cell = tuple[Entry, ...]  # an entry for each concept of a tier


def check_exercises(grammar: Grammar) -> dict[str, int]:
    """Return the number of exercises of each tier. Raises SpaceError with the problems."""
    problems: list[Problem] = []
    chosen: dict[str, set[int]] = {name: set() for name in grammar.rules}
    counts = {name: _check_tier(grammar, name, chosen, problems) for name in grammar.tiers}
    if not problems:
        problems += [
            Problem(f"{rule.path}[{place}]", "this case never applies; take it out")
            for name, rule in grammar.rules.items()
            for place in range(len(rule.cases))
            if place not in chosen[name]
        ]
    if problems:
        raise SpaceError.of(grammar.space.name, problems)
    return counts


def iterate_values(grammar: Grammar, tier: str) -> Iterator[dict[str, Entry]]:
    """Yield the values of every exercise of a tier: those of its concepts and of other dimensions on which it
    depends."""
    used = grammar.tiers[tier].variables_used.union(grammar.tiers[tier].tier.concepts)
    names = [name for name in grammar.space.names if name in used]
    for entries in grammar.list_allowed_entries(names, {}):
        yield dict(zip(names, entries, strict=True))


def _check_tier(grammar: Grammar, name: str, chosen: dict[str, set[int]], problems: list[Problem]) -> int:
    """Return the number of exercises of a tier; 0 for a tier with too many. Its problems are added to
    `problems`, the cases that its rules chose to `chosen`."""
    tier, path = grammar.tiers[name], f"$.exercises.tiers.{name}"
    used = tier.variables_used | set(tier.tier.concepts)
    size = math.prod(len(grammar.space[one].entries) for one in used)
    if size > MAX_EXERCISES:
        message = f"{size:,} exercises are too many; a tier has at most {MAX_EXERCISES:,}. Split it"
        problems.append(Problem(f"{path}.concepts", message))
        return 0
    problems += [
        Problem(f"{path}.concepts", f"{one} changes nothing in an exercise; take it out")
        for one in tier.tier.concepts
        if one not in tier.variables_used
    ]
    seen: dict[tuple[object, ...], Exercise] = {}
    found: dict[Problem, None] = {}
    concepts = set()
    for values in iterate_values(grammar, name):
        picked: dict[str, int] = {}
        try:
            exercise = tier.make(values, picked)
        except RuleError as error:
            found.setdefault(Problem(error.path, error.message))
        except TemplateError as error:
            found.setdefault(
                Problem(
                    path,
                    f"{_describe_values(values)}: "
                    f"{error.problems[0].message if error.problems else error.summary}",
                )
            )
        else:
            concepts.add(tuple(exercise.concepts.items()))
            found |= dict.fromkeys(_check_exercise(grammar, exercise, path, values, seen))
        for rule, place in picked.items():
            chosen[rule].add(place)
        if len(found) >= _MOST:
            break
    problems += found
    return len(concepts)


def _check_exercise(
    grammar: Grammar,
    exercise: Exercise,
    path: str,
    values: dict[str, Entry],
    seen: dict[tuple[object, ...], Exercise],
) -> Iterator[Problem]:
    """Yield the problems of an exercise, alone and compared with those in `seen`; add it to `seen`."""
    if not exercise.question:
        yield Problem(f"{path}.question", f"it is empty for {_describe_values(values)}")
    if not all(exercise.answers):
        yield Problem(f"{path}.answers", f"it is empty for {_describe_values(values)}")
    elif not is_right(exercise.answer, exercise, grammar.exercises):
        yield Problem(
            f"{path}.answers",
            f"{exercise.answer!r} for {_describe_values(values)} cannot be distinguished from other text; it "
            "needs a word or a number",
        )
    elif exercise.mistake and is_right(exercise.mistake, exercise, grammar.exercises):
        message = (
            f"{exercise.mistake!r} is right for {_describe_values(values)}; exclude that combination, or "
            "fix the rule"
        )
        yield Problem(f"{path}.mistake", message)
    rest = tuple(entry.value for name, entry in values.items() if name not in exercise.concepts)
    key = (rest, exercise.question, exercise.picture)
    other = seen.setdefault(key, exercise)
    if other.concepts != exercise.concepts:
        same = "have the same answer" if other.answers == exercise.answers else "have different answers"
        message = (
            f"{_join_concepts(other)} and {_join_concepts(exercise)} ask the same ({exercise.question!r}) "
            f"and {same}; make their questions or pictures differ"
        )
        yield Problem(f"{path}.question", message)


def _join_concepts(exercise: Exercise) -> str:
    return " + ".join(exercise.concepts.values())


def _describe_values(values: dict[str, Entry]) -> str:
    return ", ".join(f"{name} {entry.value!r}" for name, entry in values.items())


def list_picture_files(grammar: Grammar) -> Iterator[tuple[str, str]]:
    """Yield each image file that is the picture of an exercise: (path in the space, file name)."""
    for name, tier in grammar.tiers.items():
        used = tier.variables_used | set(tier.tier.concepts)
        if math.prod(len(grammar.space[one].entries) for one in used) > MAX_EXERCISES:
            continue
        for exercise in _iterate_exercises(grammar, name):
            if names_picture(exercise.picture):
                yield f"$.exercises.tiers.{name}.picture", str(exercise.picture)


def draw_pictures(grammar: Grammar) -> Iterator[tuple[str, str, str]]:
    """Yield the drawing of each exercise that is sent as a picture: (path in the space, file name, SVG)."""
    for name, tier in grammar.tiers.items():
        for exercise in _iterate_exercises(grammar, name) if tier.tier.send == "drawing" else ():
            if (svg := draw_exercise(exercise)) is not None:
                yield f"$.exercises.tiers.{name}.draw", make_drawing_name(exercise), svg


def _iterate_exercises(grammar: Grammar, tier: str) -> Iterator[Exercise]:
    """Yield the exercises of a tier, except those that cannot be made: `check_exercises` reports them."""
    for values in iterate_values(grammar, tier):
        with contextlib.suppress(RuleError, TemplateError):
            yield grammar.tiers[tier].make(values)


def list_example_exercises(grammar: Grammar, tier: str, count: int) -> list[Exercise]:
    """Return at most `count` exercises of a tier, spread over all of them and the same at each call."""
    every = list(iterate_values(grammar, tier))
    places = sorted(random.Random(0).sample(range(len(every)), min(count, len(every))))  # noqa: S311 - an example
    return [grammar.tiers[tier].make(every[place]) for place in places]


class ExercisePool:
    """All exercises of a space, made on demand and kept."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._made: dict[Any, Exercise] = {}
        self._cells: dict[Any, list[Cell]] = {}

    def list_cells(self, tier: str, rest: Values) -> list[Cell]:
        """Return the combinations of a tier's concepts that are allowed with the entries `rest` of other
        dimensions."""
        key = tier, *([entry.value for entry in rest.values()] if self.grammar.space.conditional else ())
        if key not in self._cells:
            if len(self._cells) >= _MOST_KEPT:
                self._cells.clear()
            self._cells[key] = [
                *self.grammar.list_allowed_entries(self.grammar.tiers[tier].tier.concepts, rest)
            ]
        return self._cells[key]

    def make_exercise(self, tier: str, cell: Cell, rest: Values) -> Exercise:
        """Return the exercise of these values. Raises SpaceError if the grammar makes none."""
        compiled = self.grammar.tiers[tier]
        names = compiled.tier.concepts
        other = tuple(entry.value for name, entry in rest.items() if name in compiled.variables_used)
        key = tier, other, *[entry.value for entry in cell]
        if key not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            self._made[key] = self.grammar.make_exercise(
                tier, {**rest, **dict(zip(names, cell, strict=True))}
            )
        return self._made[key]


class ExerciseChain:
    """The exercises of one scenario's session."""

    def __init__(self, pool: ExercisePool, scenario: Scenario, seed: int) -> None:
        self._pool, self._seed, self._index = pool, seed, scenario.index
        values = _find_entries(pool.grammar, scenario)
        self._rest = {name: entry for name, entry in values.items() if name not in pool.grammar.concepts}
        self._own, self._last = values, dict[str, str]()
        self._used: set[tuple[str, ...]] = set()
        self._number = 0

    def draw_next(self, tier: str) -> Exercise | None:
        """Return the next exercise of a tier. It shares a value with the last one if such an exercise is
        left; None if no exercise is left."""
        names = self._pool.grammar.tiers[tier].tier.concepts
        cell = tuple(self._own[name] for name in names) if not self._number else self._draw(tier, names)
        if cell is None:
            return None
        self._number += 1
        self._used.add(_make_key(tier, cell))
        self._last = {name: entry.value for name, entry in zip(names, cell, strict=True)}
        return self._pool.make_exercise(tier, cell, self._rest)

    def _draw(self, tier: str, names: tuple[str, ...]) -> Cell | None:
        rng = random.Random(f"{self._seed}/{self._index}/exercise/{self._number}")  # noqa: S311 - reproducible, not secret
        cells = self._pool.list_cells(tier, self._rest)
        for _ in range(_TRIES if cells else 0):
            cell = rng.choice(cells)
            if _make_key(tier, cell) not in self._used and self._has_equal_values(names, cell):
                return cell
        left = [cell for cell in cells if _make_key(tier, cell) not in self._used]
        near = [cell for cell in left if self._has_equal_values(names, cell)]
        return rng.choice(near or left) if left else None

    def _has_equal_values(self, names: tuple[str, ...], cell: Cell) -> bool:
        return any(self._last.get(name) == entry.value for name, entry in zip(names, cell, strict=True))


def _make_key(tier: str, cell: Cell) -> tuple[str, ...]:
    return tier, *[entry.value for entry in cell]


def _find_entries(grammar: Grammar, scenario: Scenario) -> dict[str, Entry]:
    """Return the entries that a scenario was drawn from."""
    found = {}
    for dimension in grammar.space.dimensions:
        value, fields = scenario[dimension.name], scenario.fields.get(dimension.name, {})
        found[dimension.name] = next(
            entry for entry in dimension.entries if entry.value == value and entry.fields == fields
        )
    return found
