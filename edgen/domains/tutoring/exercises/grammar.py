"""The grammar of a space's exercises: it makes exercises from values, and finds all problems of the grammar.

A rule gives the text of the one case whose conditions hold. If no condition holds, the case without a
condition applies. Rules may use each other, in any order but a circle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from edgen.domains.tutoring.exercises.drawing import find_thing_problem, make_drawing_name
from edgen.domains.tutoring.exercises.model import Case, Exercise, Point, Thing, Tier, When, find_exercises
from edgen.plugin import Scenario, Space
from edgen.plugin.errors import Problem, SpaceError, TemplateError
from edgen.plugin.files import shorten_word, suggest_name
from edgen.plugin.protocols import AllowedCells
from edgen.prompting import ValueWithFields
from edgen.prompting.prompt import Snippet, make_sandbox
from edgen.space.model import Entry

Values = Mapping[str, Entry]  # the entry of each dimension
_ROOT = "$.exercises"


class RuleError(Exception):
    """No case of a rule applies, or two do; or a thing cannot be drawn. `path` is that of the rule or the
    case, `message` a clause about the problem."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(path, message)
        self.path, self.message = path, message


class Grammar:
    """The exercises of a space. `tiers` are their patterns by name, the easiest first."""

    def __init__(self, space: Space) -> None:
        """Compile all texts. Raises SpaceError for texts that cannot be compiled, unknown names, rules that
        need each other in a circle, and unused rules."""
        exercises = find_exercises(space)
        assert exercises is not None
        self.space, self.exercises = space, exercises
        self.tiers = {name: _CompiledTier(name, tier, self) for name, tier in exercises.tiers.items()}
        self.rules = {name: _CompiledRule(name, cases, self) for name, cases in exercises.rules.items()}
        problems = [*self._found, *self._find_unknown_conditions()]
        if not problems:
            problems = [*self._find_circles(), *self._find_unused_rules()]
        if problems:
            raise SpaceError.of(space.name, problems)

    @cached_property
    def cells(self) -> AllowedCells:
        """The cells that the space's conditions allow."""
        return AllowedCells(self.space)

    def list_allowed_entries(self, names: Sequence[str], fixed: Values) -> Iterator[tuple[Entry, ...]]:
        """Yield the combinations of these dimensions' entries that are allowed with the entries in
        `fixed`."""
        entries = [self.space[name].entries for name in names]
        if not self.space.conditional:
            yield from itertools.product(*entries)
            return
        known = {
            self.cells.places[name]: self.space[name].entries.index(entry) for name, entry in fixed.items()
        }
        places = [self.cells.places[name] for name in names]
        for numbers in itertools.product(*[range(len(one)) for one in entries]):
            if self.cells.is_possible({**known, **dict(zip(places, numbers, strict=True))}):
                yield tuple([one[number] for one, number in zip(entries, numbers, strict=True)])

    @cached_property
    def concepts(self) -> frozenset[str]:
        """The dimensions that are concepts of any tier."""
        return frozenset(name for tier in self.exercises.tiers.values() for name in tier.concepts)

    def make_exercise(self, tier: str, values: Values) -> Exercise:
        """Return the exercise of a tier with these values. Raises SpaceError if the grammar makes none."""
        try:
            return self.tiers[tier].make(values)
        except RuleError as error:
            raise SpaceError.of(self.space.name, [Problem(error.path, error.message)]) from None
        except TemplateError as error:
            raise SpaceError.of(
                self.space.name, [*_locate_problems(f"{_ROOT}.tiers.{tier}", error)]
            ) from None

    def make_exercise_of_record(self, scenario: Scenario, one: Mapping[str, Any]) -> Exercise:
        """Return the whole exercise that a session's outcome names by tier and concepts. Raises SpaceError if
        the space has no such exercise."""
        values = {**scenario.values, **one["concepts"]}
        entries = {}
        for name in self.space.names:
            found = [entry for entry in self.space[name].entries if entry.value == values.get(name)]
            if not found or one["tier"] not in self.tiers:
                raise SpaceError.of(
                    self.space.name, [Problem(_ROOT, f"it has no exercise {shorten_word(repr(one))}")]
                )
            entries[name] = found[0]
        return self.make_exercise(one["tier"], entries)

    def find_values(self, exercise: Exercise) -> dict[str, ValueWithFields]:
        """Return the values of an exercise's concepts, with their fields."""
        return {
            name: ValueWithFields(entry.value, entry.fields)
            for name, value in exercise.concepts.items()
            for entry in self.space[name].entries
            if entry.value == value
        }

    def order_rules(self, used: frozenset[str]) -> tuple[str, ...]:
        """Return these rules and all rules that they use, in the order of evaluation. Raises CycleError for
        rules that use each other."""
        graph: dict[str, set[str]] = {}
        waiting = [name for name in used if name in self.rules]
        while waiting:
            name = waiting.pop()
            if name not in graph:
                graph[name] = {one for one in self.rules[name].variables_used if one in self.rules}
                waiting += graph[name]
        listed = {name: place for place, name in enumerate(self.rules)}
        inner = {name: sorted(below, key=listed.__getitem__) for name, below in graph.items()}
        return tuple(
            TopologicalSorter(
                {name: inner[name] for name in sorted(inner, key=listed.__getitem__)}
            ).static_order()
        )

    # ---- compiling

    @cached_property
    def _found(self) -> list[Problem]:
        return []

    @cached_property
    def _sandbox(self) -> Any:
        return make_sandbox()

    @cached_property
    def _available(self) -> frozenset[str]:
        return frozenset([*self.space.names, *self.exercises.rules])

    @cached_property
    def _fields(self) -> dict[str, tuple[str, ...]]:
        return {dimension.name: dimension.fields for dimension in self.space.dimensions}

    def compile(self, text: str, path: str) -> Snippet:
        """Return the compiled text at a path. Problems are collected."""
        try:
            return Snippet(text, self._sandbox, self._available, self._fields)
        except TemplateError as error:
            self._found.extend(_locate_problems(path, error))
            return Snippet("-", self._sandbox, ())

    # ---- problems

    def _find_circles(self) -> Iterator[Problem]:
        try:
            self.order_rules(frozenset(self.rules))
        except CycleError as found:
            circle = found.args[1][::-1]
            message = f"these rules need each other in a circle ({' → '.join(circle)}); take one of them out"
            yield Problem(f"{_ROOT}.rules.{circle[0]}", message)

    def _find_unused_rules(self) -> Iterator[Problem]:
        try:
            used = {name for tier in self.tiers.values() for name in tier.rules}
        except CycleError:
            return
        for name in self.rules:
            if name not in used:
                yield Problem(f"{_ROOT}.rules.{name}", "no text of any tier uses this rule; take it out")

    def _find_unknown_conditions(self) -> Iterator[Problem]:
        """Yield the conditions on unknown dimensions, fields, rules and values."""
        for path, when in self._list_conditions():
            for name, wanted in when.items():
                where = f"{path}.when.{shorten_word(name)}"
                dimension, _, field = name.partition(".")
                if not field and dimension in self.rules:
                    continue
                if dimension not in self.space.names:
                    known = [*self.space.names, *self.rules]
                    yield Problem(
                        where,
                        "there is no dimension or rule "
                        f"{shorten_word(dimension)}{suggest_name(dimension, known)}",
                    )
                    continue
                if field and field not in self._fields[dimension]:
                    message = (
                        f"no value of {dimension} has a "
                        f"'{shorten_word(field)}'{suggest_name(field, self._fields[dimension])}"
                    )
                    yield Problem(where, message)
                    continue
                yield from self._find_unknown_values(where, name, dimension, field, wanted)

    def _find_unknown_values(
        self, where: str, name: str, dimension: str, field: str, wanted: Sequence[Any]
    ) -> Iterator[Problem]:
        entries = self.space[dimension].entries
        known = {_tag_kind(entry.fields.get(field) if field else entry.value) for entry in entries}
        for one in wanted:
            if _tag_kind(one) not in known:
                texts = sorted(value for _, value in known if isinstance(value, str))
                near = suggest_name(str(one), texts) if texts else ""
                yield Problem(where, f"{name} is never {shorten_word(repr(one))}{near}")

    def _list_conditions(self) -> Iterator[tuple[str, When]]:
        for name, cases in self.exercises.rules.items():
            for i, case in enumerate(cases):
                yield f"{_ROOT}.rules.{name}[{i}]", case.when
        for name, tier in self.exercises.tiers.items():
            for i, point in enumerate(tier.points):
                yield f"{_ROOT}.tiers.{name}.points[{i}]", point.when


class _CompiledRule:
    """A compiled rule. `variables_used`: the names in its conditions and texts, except those in points."""

    def __init__(self, name: str, cases: tuple[Case, ...], grammar: Grammar) -> None:
        self.path, self.cases = f"{_ROOT}.rules.{name}", cases
        self._gives = [grammar.compile(one.gives, f"{self.path}[{i}].gives") for i, one in enumerate(cases)]
        self._points = [
            None if one.point is None else grammar.compile(one.point, f"{self.path}[{i}].point")
            for i, one in enumerate(cases)
        ]
        named = frozenset(key.partition(".")[0] for case in cases for key in case.when)
        self.variables_used = named.union(*[one.variables_used for one in self._gives])

    def choose(self, variables: Mapping[str, Any]) -> int:
        """Return the number of the case that applies. Raises RuleError."""
        otherwise = next((i for i, case in enumerate(self.cases) if not case.when), None)
        fits = [i for i, case in enumerate(self.cases) if case.when and holds(case.when, variables)]
        if len(fits) > 1:
            message = (
                f"this case and the one at [{fits[0]}] both apply with {self._describe(variables)}; make "
                "one of them narrower"
            )
            raise RuleError(f"{self.path}[{fits[1]}]", message)
        if not fits and otherwise is None:
            message = (
                f"no case applies with {self._describe(variables)}; add one, or one without a condition for "
                "all the rest"
            )
            raise RuleError(self.path, message)
        return fits[0] if fits else otherwise or 0

    def _describe(self, variables: Mapping[str, Any]) -> str:
        names = dict.fromkeys(name for case in self.cases for name in case.when)
        return ", ".join(f"{name} {_find_value(name, variables)!r}" for name in names)

    def gives(self, place: int, variables: Mapping[str, Any]) -> str:
        return self._gives[place].render(variables)

    def make_point(self, place: int, variables: Mapping[str, Any]) -> str | None:
        point = self._points[place]
        return None if point is None else point.render(variables)


class _CompiledTier:
    """A compiled tier."""

    def __init__(self, name: str, tier: Tier, grammar: Grammar) -> None:
        self.name, self.tier, self._grammar = name, tier, grammar
        path = f"{_ROOT}.tiers.{name}"
        self._question = grammar.compile(tier.question, f"{path}.question")
        self._answers = [grammar.compile(one, f"{path}.answers[{i}]") for i, one in enumerate(tier.answers)]
        self._points = [
            _CompiledPoint(one, f"{path}.points[{i}]", grammar) for i, one in enumerate(tier.points)
        ]
        self._picture = None if tier.picture is None else grammar.compile(tier.picture, f"{path}.picture")
        self._mistake = None if tier.mistake is None else grammar.compile(tier.mistake, f"{path}.mistake")
        self._things = [_CompiledThing(one, f"{path}.draw[{i}]", grammar) for i, one in enumerate(tier.draw)]
        texts = [self._question, *self._answers, self._picture, self._mistake, *self._points, *self._things]
        self._named = frozenset[str]().union(*[one.variables_used for one in texts if one is not None])

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The rules that the tier's texts need, in the order of evaluation."""
        return self._grammar.order_rules(self._named)

    @cached_property
    def variables_used(self) -> frozenset[str]:
        """The dimensions that an exercise depends on."""
        used = self._named.union(*[self._grammar.rules[name].variables_used for name in self.rules])
        return used & frozenset(self._grammar.space.names)

    def make(self, values: Values, chosen: dict[str, int] | None = None) -> Exercise:
        """Return the exercise. `chosen` gets the number of the case that each rule chose. Raises RuleError
        and TemplateError."""
        variables: dict[str, Any] = {
            name: ValueWithFields(entry.value, entry.fields) for name, entry in values.items()
        }
        points = []
        for name in self.rules:
            rule = self._grammar.rules[name]
            place = rule.choose(variables)
            if chosen is not None:
                chosen[name] = place
            variables[name] = rule.gives(place, variables)
            points.append((rule, place))
        told = [rule.make_point(place, variables) for rule, place in points]
        rules = told + [point.render(variables) for point in self._points if point.is_general]
        told += [point.render(variables) for point in self._points]
        made = Exercise(
            tier=self.name,
            concepts={name: values[name].value for name in self.tier.concepts},
            question=self._question.render(variables),
            answers=tuple(dict.fromkeys(one.render(variables) for one in self._answers)),
            points=tuple(dict.fromkeys(one for one in told if one)),
            rules=tuple(dict.fromkeys(one for one in rules if one)),
            picture=None if self._picture is None else self._describe_picture(variables),
            mistake=(None if self._mistake is None else self._mistake.render(variables)) or None,
            drawing=tuple(thing for one in self._things if (thing := one.make(variables)) is not None),
        )
        return made if self.tier.send == "words" else self._with_drawing(made)

    def _with_drawing(self, made: Exercise) -> Exercise:
        """Return the exercise with the mark of its drawing, if the space has the drawing."""
        image = self._grammar.space.pictures.get(make_drawing_name(made))
        return made if image is None else msgspec.structs.replace(made, picture=image.mark)

    def _describe_picture(self, variables: Mapping[str, Any]) -> str:
        """Return the words of the picture, or the mark of the image file that they name."""
        assert self._picture is not None
        said = self._picture.render(variables)
        image = self._grammar.space.pictures.get(said)
        return said if image is None else image.mark


class _CompiledPoint:
    def __init__(self, point: Point, path: str, grammar: Grammar) -> None:
        self._when, self._text = point.when, grammar.compile(point.text, path)
        self.variables_used = self._text.variables_used | {key.partition(".")[0] for key in point.when}
        self.is_general = not self._text.variables_used  # the same for every exercise

    def render(self, variables: Mapping[str, Any]) -> str | None:
        return self._text.render(variables) if holds(self._when, variables) else None


class _CompiledThing:
    def __init__(self, thing: Thing, path: str, grammar: Grammar) -> None:
        self._path = path
        said = {key: text for key, text in msgspec.structs.asdict(thing).items() if text}
        self._texts = {key: grammar.compile(text, f"{path}.{key}") for key, text in said.items()}
        self.variables_used = frozenset().union(*[text.variables_used for text in self._texts.values()])

    def make(self, variables: Mapping[str, Any]) -> Thing | None:
        """Return the thing to draw; None if it is left out. Raises RuleError if it cannot be drawn."""
        made = Thing(**{key: text.render(variables) for key, text in self._texts.items()})
        if not made.thing:
            return None
        if wrong := find_thing_problem(made):
            raise RuleError(f"{self._path}.{wrong[0]}", wrong[1])
        return made


def holds(when: When, variables: Mapping[str, Any]) -> bool:
    """Return whether conditions hold for these values."""
    return all(
        _tag_kind(_find_value(name, variables)) in [_tag_kind(one) for one in wanted]
        for name, wanted in when.items()
    )


def _find_value(name: str, variables: Mapping[str, Any]) -> Any:
    """Return the value of a dimension, a field or a rule; None if the value has no such field."""
    dimension, _, field = name.partition(".")
    value = variables[dimension]
    if field:
        return value.fields.get(field)
    return str(value)


def _tag_kind(value: Any) -> tuple[str, Any]:
    """Return a value with its type, since true equals 1 in Python."""
    if isinstance(value, list | dict):
        return "other", None
    return (
        "bool" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"
    ), value


def _locate_problems(path: str, error: TemplateError) -> Iterator[Problem]:
    """Yield the problems of a text, at its path."""
    if not error.problems:
        yield Problem(path, error.summary)
    for problem in error.problems:
        yield Problem(path, problem.message)
