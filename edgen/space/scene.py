"""A scenario as the simulator knows it besides its prompt: values, labels, roles and phrases of the space.

A model never sees it. A request of a role holds what that role sees.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

import msgspec

from edgen.core.pictures import pictures_in
from edgen.core.space_layouts import find_layout
from edgen.core.text import compile_later
from edgen.core.values import Scenario
from edgen.space.model import PICTURE, Space
from edgen.space.phrases import PHRASES
from edgen.space.phrases import Phrases, persona_of, phrases_of


class SpaceBook:
    """A space as the simulator speaks of it, made once for a job."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @cached_property
    def phrases(self) -> Phrases:
        """The space's phrases."""
        return phrases_of(self.space)

    @cached_property
    def persona(self) -> frozenset[str]:
        """The dimensions that say how a role is."""
        return persona_of(self.space)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of each dimension, as it stands inside a sentence."""
        return {one.name: _fit_inside_sentence(one.name, one.label) for one in self.space.dimensions}

    @cached_property
    def persona_labels(self) -> frozenset[str]:
        """The labels of these, as briefs have them."""
        return frozenset(self.space[name].label or name.replace("_", " ") for name in self.persona)

    @cached_property
    def sees(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each role."""
        return {role.name: role.sees for role in self.space.roles}

    @cached_property
    def speaks(self) -> bool:
        """True if talk follows the space's values: not where the simulator has another one for its layout."""
        layout = find_layout(self.space.names)
        if layout is None or not layout.simulated:
            return True
        return PHRASES in self.space.sections and bool(self.phrases.roles)

    @cached_property
    def facts(self) -> dict[str, str]:
        """A sentence of the knowledge file for each of its entries, by the entry's first text."""
        known = self.space.knowledge
        if known is None or not known.text:
            return {}
        value = known.value
        entries = (
            value if isinstance(value, list) else [{"key": key, "about": one} for key, one in value.items()]
        )
        return dict(_facts(entries))


def _facts(entries: Collection[Any]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        texts = (
            [one for one in entry.values() if isinstance(one, str) and one] if isinstance(entry, dict) else []
        )
        if len(texts) > 1:
            about = max(texts[1:], key=len)
            yield texts[0], f"{texts[0]}: {about}"


_CLAUSE = compile_later(r"(?:how|what|who|which|why|when|where|whether)\b", re.IGNORECASE)


def _fit_inside_sentence(name: str, label: str | None) -> str:
    """Return a label for the middle of a sentence, after an article: a clause gives way to the dimension's
    name, and an abbreviation keeps its capitals."""
    if label is None or _CLAUSE.match(label):
        return name.replace("_", " ")
    label = re.sub(r"(?i)^(?:the|an?) ", "", label)
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


def _without_pictures(scenario: Scenario) -> Scenario:
    """Return the scenario without the fields that are pictures, which nobody can say."""
    fields = {
        name: {key: said for key, said in own.items() if key != PICTURE or not pictures_in(str(said))}
        for name, own in scenario.fields.items()
    }
    return msgspec.structs.replace(scenario, fields=fields)


class Scene:
    """A scenario, and the role that speaks; None: one writer speaks for all roles. Two are equal if they are
    of the same space, scenario and role, so that requests can be keys."""

    __slots__ = ("book", "role", "scenario")

    def __init__(self, book: SpaceBook, scenario: Scenario, role: str | None = None) -> None:
        self.book, self.role = book, role
        self.scenario = _without_pictures(scenario) if book.space.pictures else scenario

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, int, str | None]:
        return self.book.space.name, self.scenario.index, self.role

    def list_visible(self, role: str) -> tuple[str, ...]:
        """Return the dimensions of which this role may speak: all that it sees."""
        return self.book.sees.get(role, tuple(self.scenario.values))
