"""What kind of conversation it is: what a record of it looks like on disk, and how one is read back.

A family owns a layout with its JSON Schema. Whoever goes through a run's conversations asks the family for
`Recorded` values and knows no layout. `read(record(x)) == x`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import msgspec

from edgen.core.values import END_MARKER, Conversation, Role, Scenario, Turn, Usage
from edgen.space.model import Space

_SUFFIX = f" {END_MARKER}"


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a record comes from. `usage` adds up all calls that it rests on, `attempts` counts them.

    Where several templates and models worked on it, `template_sha256` is a digest over all of them and
    `model` the first role's; `templates` and `models` name each. `flags` are detectors' findings that were let stand;
    `branch` is the turn, from 0, at which it left replicate 0.
    """

    scenario: int
    seed: int
    replicate: int
    protocol: str
    backend: str
    model: str
    simulated: bool
    template_sha256: str
    space_sha256: str
    attempts: int
    finish_reason: str
    usage: Usage
    repairs: tuple[str, ...]
    flags: tuple[str, ...] = ()
    branch: int | None = None
    models: dict[str, str] | None = None
    templates: dict[str, str] | None = None


class Recorded(msgspec.Struct, frozen=True):
    """A finished conversation with all that a record holds. What the conversation says of its repairs, flags and
    branch is what its provenance says."""

    id: str
    scenario: Scenario
    conversation: Conversation
    provenance: Provenance

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What was said, without the end marker."""
        return self.conversation.turns


class Family:
    """A kind of conversation. `name` is that of its entry point, `tags` what a card calls its conversations, `schema` the file of its JSON Schema in validators/,
    `measures` the names of those that only conversations of this kind have. `precedence`: of edgen's own that fit a space,
    the lowest is taken."""

    name: ClassVar[str]
    schema: ClassVar[str]
    tags: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[tuple[str, ...]] = ()
    precedence: ClassVar[int] = 0

    @abstractmethod
    def fits(self, space: Space) -> bool:
        """Whether conversations about this space can be recorded so."""

    def vocabulary(self, space: Space) -> dict[str, frozenset[str]]:
        """What the space lets a record hold, by the keys that the record's scenario has."""
        return {one.name: frozenset(one.values) for one in space.dimensions}

    @abstractmethod
    def record(self, recorded: Recorded) -> bytes:
        """The record, as JSON."""

    @abstractmethod
    def read(self, data: bytes) -> Recorded:
        """What a record holds. Raises ValueError or msgspec's errors where it is none."""


def record_id(name: str, scenario: int, replicate: int) -> str:
    """`quickstart-000137-r0`."""
    return f"{name}-{scenario:06d}-r{replicate}"


def with_marker(conversation: Conversation) -> tuple[Turn, ...]:
    """The turns, the last of them with the end marker if somebody spoke it."""
    turns = conversation.turns
    if conversation.ended_by is None:
        return turns
    return (*turns[:-1], Turn(turns[-1].role, turns[-1].text + _SUFFIX))


def without_marker(turns: tuple[Turn, ...], ended_by: Role | None) -> tuple[Turn, ...]:
    """The turns as they were before `with_marker`."""
    if ended_by is None:
        return turns
    return (*turns[:-1], Turn(turns[-1].role, turns[-1].text.removesuffix(_SUFFIX)))


def write_values(scenario: Scenario, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Each dimension's value as JSON: the text, or an object with the text as its `value` and the entry's fields.
    Those named in `without` are left out where they have no fields."""
    written: dict[str, Any] = {}
    for name, value in scenario.values.items():
        fields = scenario.fields.get(name)
        if fields:
            written[name] = {"value": value, **fields}
        elif name not in without:
            written[name] = value
    return written


def read_values(written: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The values and the fields that `write_values` wrote."""
    values, fields = {}, {}
    for name, said in written.items():
        if isinstance(said, dict):
            more = dict(said)
            values[name], fields[name] = str(more.pop("value")), more
        else:
            values[name] = str(said)
    return values, fields
