"""A space as frozen values: its dimensions with their entries, and the roles with what each may know."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from edgen.space.exercises.model import Exercises
from edgen.space.knowledge import Knowledge

Combination = dict[str, tuple[str, ...]]  # of values: one of these, of each of these dimensions


class Entry(msgspec.Struct, frozen=True):
    """One value of a dimension. `weight` is relative to the others of the dimension; `fields` is what the entry
    says of itself besides. `when`: it occurs with these values of other dimensions only."""

    value: str
    weight: float = 1.0
    fields: dict[str, Any] = {}
    when: Combination = {}


class Dimension(msgspec.Struct, frozen=True):
    """One thing that scenarios vary in. `name` is what templates call it, `label` what people read."""

    name: str
    entries: tuple[Entry, ...]
    label: str | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """The values in their order."""
        return tuple(entry.value for entry in self.entries)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that any entry has, in order of first appearance."""
        return tuple(dict.fromkeys(name for entry in self.entries for name in entry.fields))

    def entry(self, value: str) -> Entry:
        """The first entry of that value, which there must be."""
        return next(entry for entry in self.entries if entry.value == value)


class SpaceRole(msgspec.Struct, frozen=True):
    """Who speaks in the conversations of a space, and the dimensions that it may know."""

    name: str
    sees: tuple[str, ...]


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """What scenarios are drawn from. With `duplicates: keep` a value may be listed more than once, and each copy
    is an entry of its own. What matches one of `exclude` does not occur. `exercises`: the grammar of those that its values
    make, None where they make none. `knowledge`: the file of facts about what they name."""

    name: str
    description: str | None = None
    source: str | None = None
    duplicates: Literal["refuse", "keep"] = "refuse"
    dimensions: tuple[Dimension, ...]
    roles: tuple[SpaceRole, ...]
    exclude: tuple[Combination, ...] = ()
    exercises: Exercises | None = None
    knowledge: Knowledge | None = None

    def __getitem__(self, name: str) -> Dimension:
        for dimension in self.dimensions:
            if dimension.name == name:
                return dimension
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, in their order."""
        return tuple(dimension.name for dimension in self.dimensions)

    @property
    def product(self) -> int:
        """The product of the sizes: how many cells there are where nothing is ruled out."""
        return math.prod(len(dimension.entries) for dimension in self.dimensions)

    @property
    def conditional(self) -> bool:
        """Whether conditions or exclusions rule anything out."""
        return bool(self.exclude) or any(entry.when for one in self.dimensions for entry in one.entries)

    def replace_entries(self, name: str, entries: tuple[Entry, ...]) -> Space:
        """The space with other entries in one dimension."""
        dimensions = tuple(
            msgspec.structs.replace(one, entries=entries) if one.name == name else one
            for one in self.dimensions
        )
        return msgspec.structs.replace(self, dimensions=dimensions)
