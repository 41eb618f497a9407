"""Layouts of spaces: dimensions and roles that a domain names, and edgen's support for spaces with them.

A domain declares a layout under an entry point of `edgen.space_layouts`. A space has a layout if it has all
of its dimensions, possibly with others. edgen's own layouts come first, and the first one has the usual
roles.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal

import msgspec

from edgen.core import registry


class LaidOutDimension(msgspec.Struct, frozen=True, kw_only=True):
    """A dimension of a layout."""

    name: str  # as in scenarios and templates
    list: str  # the key of its list in a file of the layout
    help: str  # one sentence on the list, for the reference of space files
    fields: Mapping[str, str] = {}
    """A sentence about each text that an entry may state besides its value. In any space with the dimension,
    columns and variables have its bare name: `level`, not `topic.level`."""
    shown: str = ""
    """The label of its value where a conversation is printed; empty: its name in words."""
    leaks: Literal["value", "parts", "clause"] = "value"
    """The part of a value that leaks if a role says it without seeing the value: the whole value, each part
    of `a/b`, or its clause, without the words that join it to a sentence: `gets rude` in `and gets rude
    otherwise`."""


class Agreement(msgspec.Struct, frozen=True):
    """A check whether the roles of a scenario want the same, with words for the result."""

    check: Callable[[Mapping[str, str]], bool | None]
    """Takes the scenario's values; returns None if they do not decide."""
    same: str  # a clause for True
    different: str  # a clause for False


class SpaceLayout(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Dimensions and roles that a domain names, with a short form of space files: a list for each
    dimension."""

    name: str  # of its entry point
    title: str  # of the form of files, for people
    dimensions: tuple[LaidOutDimension, ...]  # in order
    roles: Mapping[str, tuple[str, ...]]
    """The dimensions that each role sees, for a file without roles."""
    strata: tuple[tuple[str, ...], ...] = ()
    """Groups of dimensions by which conversations are usually compared; empty: each dimension separately."""
    groups: Mapping[str, tuple[str, ...]] = {}
    """Names of groups of dimensions, for `split: {by: NAME}`."""
    phrases: Mapping[str, tuple[str, ...]] = {}
    """Names of groups of dimensions whose values form one phrase, in this order, for a page's table."""
    agreement: Agreement | None = None
    """The check whether its roles want the same, for the choice of conversations that a report shows."""
    templates: Mapping[str, str] = {}
    """Shipped templates of the turns of each role, by its name in lower case; others have the general one."""
    simulated: bool = False
    """Whether the simulator has its own dialogue for these dimensions, instead of the general one."""

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of the dimensions."""
        return frozenset(one.name for one in self.dimensions)

    @functools.cached_property
    def leaks(self) -> dict[str, str]:
        """The part of each dimension's values that leaks."""
        return {one.name: one.leaks for one in self.dimensions}

    @functools.cached_property
    def lists(self) -> dict[str, str]:
        """The key of each dimension's list."""
        return {one.name: one.list for one in self.dimensions}

    @functools.cached_property
    def fields(self) -> dict[str, str]:
        """The dimension of each field that has a bare name."""
        return {field: one.name for one in self.dimensions for field in one.fields}


@functools.cache
def list_layouts() -> tuple[SpaceLayout, ...]:
    """Return all layouts, edgen's own first."""
    found: list[SpaceLayout] = registry.find_all("space_layout")
    return tuple(sorted(found, key=lambda one: registry.find_plugin("space_layout", one.name) is not None))


def find_layout(names: Collection[str]) -> SpaceLayout | None:
    """Return the first layout whose dimensions are all among these; None if there is none."""
    return next((one for one in list_layouts() if one.names.issubset(names)), None)


def make_space_mark() -> str:
    """Return a pattern for the line that marks a space file: its dimensions, or a layout's first list."""
    keys = ("dimensions", *(one.dimensions[0].list for one in list_layouts()))
    return rf"^(?:{'|'.join(map(re.escape, keys))})\s*:"


@functools.cache
def map_bare_fields() -> dict[str, str]:
    """Return the dimension of each field that has a bare name, of all layouts, in any space."""
    return {field: dimension for one in reversed(list_layouts()) for field, dimension in one.fields.items()}


def name_field(dimension: str, field: str, names: Collection[str]) -> str:
    """Return the name of an entry's field among a scenario's columns: `topic.grade`, or its bare name where a
    layout declares one, unless one of the dimensions `names` has this name."""
    bare = map_bare_fields().get(field) == dimension and field not in names
    return field if bare else f"{dimension}.{field}"
