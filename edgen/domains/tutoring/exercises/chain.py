"""The exercises of a session: the first is the scenario's own, each next one shares a value with the one
before.

Which comes next depends on (seed, index of the scenario, number of the exercise) and on those before it
alone.
"""

from __future__ import annotations

import random
from typing import Any

from edgen.domains.tutoring.exercises.grammar import Grammar, Values
from edgen.domains.tutoring.exercises.model import Exercise
from edgen.plugin import Scenario
from edgen.space.model import Entry

_TRIES = 40  # draws before all that are left are gone through
_MOST_KEPT = 10_000  # exercises, and lists of them, that are kept

Cell = tuple[Entry, ...]  # an entry for each concept of a tier


class ExercisePool:
    """All exercises of a space, made when they are wanted and kept."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._made: dict[Any, Exercise] = {}
        self._cells: dict[Any, list[Cell]] = {}

    def list_cells(self, tier: str, rest: Values) -> list[Cell]:
        """Return the values of a tier's concepts that go with those of the other dimensions."""
        key = tier, *([entry.value for entry in rest.values()] if self.grammar.cells.linked else ())
        if key not in self._cells:
            if len(self._cells) >= _MOST_KEPT:
                self._cells.clear()
            self._cells[key] = [
                *self.grammar.list_allowed_entries(self.grammar.tiers[tier].tier.concepts, rest)
            ]
        return self._cells[key]

    def make_exercise(self, tier: str, cell: Cell, rest: Values) -> Exercise:
        """Return the exercise of these values. Raises SpaceError where the grammar makes none."""
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
        """Return the next exercise of a tier, which shares a value with the last one where one of these is
        left; None where none is left at all."""
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
