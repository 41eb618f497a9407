"""Checks of a space's conditions: circles, impossible values, dimensions without any possible value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice

import msgspec

from edgen.core.errors import Problem
from edgen.core.yaml_values import shorten_word, suggest_name
from edgen.space.cells import AllowedCells
from edgen.space.model import Combination, Dimension, Space

_MOST = 100  # problems reported of one kind


def find_condition_problems(space: Space, paths: Mapping[str, str]) -> list[Problem]:
    """Return every problem of the conditions of a space with valid entries. `paths`: the path of each
    dimension's entries in the file."""
    problems = [*islice(_find_unknown(space, paths), _MOST)]
    if not problems:
        problems = [*_find_circles(space, paths)]
    if not problems:
        problems = [*_find_dead_ends(space, paths)]
    return problems or [*islice(_find_impossible_values(space, paths), _MOST)]


def order_by_dependency(space: Space) -> list[int]:
    """Return the places of the dimensions, each after those that its conditions name. Call it only for
    conditions without a circle."""
    places = {dimension.name: place for place, dimension in enumerate(space.dimensions)}
    found: dict[int, None] = {}

    def add(place: int) -> None:
        for name in list_parents(space.dimensions[place]):
            add(places[name])
        found.setdefault(place)

    for place in range(len(space.dimensions)):
        add(place)
    return list(found)


def list_parents(dimension: Dimension) -> tuple[str, ...]:
    """Return the names of the dimensions in the conditions of this one."""
    return tuple(dict.fromkeys(name for entry in dimension.entries for name in entry.when))


def _find_unknown(space: Space, paths: Mapping[str, str]) -> Iterator[Problem]:
    """Yield conditions on unknown dimensions and values."""
    values = {dimension.name: frozenset(dimension.values) for dimension in space.dimensions}
    for path, combination, own in _iterate_combinations(space, paths):
        yield from _find_unknown_in(combination, values, own, path)


def _iterate_combinations(
    space: Space, paths: Mapping[str, str]
) -> Iterator[tuple[str, Combination, str | None]]:
    """Yield every condition and exclusion with its path, and the dimension that has the condition."""
    for dimension in space.dimensions:
        for i, entry in enumerate(dimension.entries):
            if entry.when:
                yield f"{paths[dimension.name]}[{i}].when", entry.when, dimension.name
    for i, combination in enumerate(space.exclude):
        yield f"$.exclude[{i}]", combination, None


def _find_unknown_in(
    combination: Combination, values: Mapping[str, frozenset[str]], own: str | None, path: str
) -> Iterator[Problem]:
    for name, wanted in combination.items():
        where = f"{path}.{shorten_word(name)}"
        if name == own:
            yield Problem(where, "a condition is on other dimensions, not on its own")
        elif name not in values:
            yield Problem(where, f"there is no dimension {shorten_word(name)}{suggest_name(name, values)}")
        else:
            for value in wanted:
                if value not in values[name]:
                    message = (
                        f"{name} has no value "
                        f"{shorten_word(repr(value))}{suggest_name(value, sorted(values[name]))}"
                    )
                    yield Problem(where, message)


def _find_circles(space: Space, paths: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a circle of conditions, if there is one."""
    try:
        TopologicalSorter({one.name: list_parents(one) for one in space.dimensions}).prepare()
    except CycleError as found:
        circle = found.args[1][:0:-1]
        start = circle.index(min(circle, key=space.names.index))
        circle = [*circle[start:], *circle[: start + 1]]
        place = next(i for i, entry in enumerate(space[circle[0]].entries) if circle[1] in entry.when)
        message = f"these conditions form a circle ({' → '.join(circle)}); remove one of them"
        yield Problem(f"{paths[circle[0]]}[{place}].when", message)


def _find_dead_ends(space: Space, paths: Mapping[str, str]) -> Iterator[Problem]:
    """Yield dimensions that have no possible value for some values of the others."""
    for dimension in space.dimensions:
        names = list_parents(dimension)
        if not names or any(not entry.when and entry.weight > 0 for entry in dimension.entries):
            continue
        above = _with_all_above(space, names)
        known = {one.name for one in above}
        exclude = tuple(combination for combination in space.exclude if combination.keys() <= known)
        within = msgspec.structs.replace(space, dimensions=above, exclude=exclude)
        cells = AllowedCells(within, [entry for entry in dimension.entries if entry.weight > 0])
        if cells.count:
            places = cells.positions(0)
            shown = ", ".join(
                f"{one.name} {one.entries[places[cells.places[one.name]]].value!r}"
                for one in above
                if one.name in names
            )
            message = (
                f"no value of {dimension.name} is possible with {shown}; add one for that case, or one without "
                "a condition"
            )
            yield Problem(paths[dimension.name], message)


def _with_all_above(space: Space, names: Sequence[str]) -> tuple[Dimension, ...]:
    """Return these dimensions and all on which they depend through conditions."""
    found = set(names)
    waiting = list(names)
    while waiting:
        more = [name for name in list_parents(space[waiting.pop()]) if name not in found]
        found.update(more)
        waiting += more
    return tuple(dimension for dimension in space.dimensions if dimension.name in found)


def _find_impossible_values(space: Space, paths: Mapping[str, str]) -> Iterator[Problem]:
    """Yield values that occur in no allowed cell."""
    cells = AllowedCells(space)
    if cells.count is None:
        return
    if cells.count == 0:
        yield Problem("$.exclude", "everything is ruled out: no combination of values is left")
        return
    for one, (dimension, classes) in enumerate(zip(space.dimensions, cells.classes, strict=True)):
        for places in classes:
            for place in () if cells.is_possible({one: places[0]}) else places:
                value = shorten_word(repr(dimension.entries[place].value))
                message = f"{value} can never occur: conditions and exclusions rule it out everywhere"
                yield Problem(f"{paths[dimension.name]}[{place}]", message)
