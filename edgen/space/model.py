"""A space as immutable values: dimensions with entries, and roles with what each may know."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from edgen.space.knowledge import Knowledge

Combination = dict[str, tuple[str, ...]]  # one of these values of each of these dimensions


class Entry(msgspec.Struct, frozen=True):
    """One value of a dimension. `weight` is relative to the others of the dimension; `fields` are its further
    fields. `when`: it only occurs with these values of other dimensions."""

    value: str
    weight: float = 1.0
    fields: dict[str, Any] = {}
    when: Combination = {}


class Dimension(msgspec.Struct, frozen=True):
    """One dimension of scenarios. Templates call it `name`, people read `label`."""

    name: str
    entries: tuple[Entry, ...]
    label: str | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """The values in order."""
        return tuple(entry.value for entry in self.entries)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that any entry has, in order of first appearance."""
        return tuple(dict.fromkeys(name for entry in self.entries for name in entry.fields))

    def entry(self, value: str) -> Entry:
        """Return the first entry of an existing value."""
        return next(entry for entry in self.entries if entry.value == value)


class SpaceRole(msgspec.Struct, frozen=True):
    """A speaker in a space's conversations, and the dimensions that it may know."""

    name: str
    sees: tuple[str, ...]


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """A space that scenarios are drawn from."""

    name: str
    description: str | None = None
    source: str | None = None
    duplicates: Literal["refuse", "keep"] = "refuse"
    """With `keep`, a value may be listed more than once, each copy being a separate entry."""
    dimensions: tuple[Dimension, ...]
    roles: tuple[SpaceRole, ...]
    exclude: tuple[Combination, ...] = ()
    """Combinations that do not occur."""
    sections: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The sections of domains, by key (see `edgen.space.section`)."""
    knowledge: Knowledge | None = None
    """The file of facts on its values."""

    def __getitem__(self, name: str) -> Dimension:
        for dimension in self.dimensions:
            if dimension.name == name:
                return dimension
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions in order."""
        return tuple(dimension.name for dimension in self.dimensions)

    @property
    def product(self) -> int:
        """The product of the sizes: the number of cells if nothing is ruled out."""
        return math.prod(len(dimension.entries) for dimension in self.dimensions)

    @property
    def conditional(self) -> bool:
        """True if conditions or exclusions rule anything out."""
        return bool(self.exclude) or any(entry.when for one in self.dimensions for entry in one.entries)

    def replace_entries(self, name: str, entries: tuple[Entry, ...]) -> Space:
        """Return the space with other entries in one dimension."""
        dimensions = tuple(
            msgspec.structs.replace(one, entries=entries) if one.name == name else one
            for one in self.dimensions
        )
        return msgspec.structs.replace(self, dimensions=dimensions)
