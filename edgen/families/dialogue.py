"""A finished conversation of any roles about a scenario of any dimensions, as a record.

A dimension's value is a text, or an object with the text as its `value` where its entry says more of itself. The end
marker, which no Turn holds, is not in the record either: `ended_by` names who spoke it. `events` are there where the
protocol tells of any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from edgen.core.values import Event, Role, Scenario, Turn
from edgen.families import crwiz_log
from edgen.families.base import (
    Family,
    FiledRecord,
    Provenance,
    Recorded,
    filed_index,
    filed_record,
    filed_turns,
    read_values,
    write_values,
)
from edgen.space.model import Space


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element of a shard. `roles` are those that speak, in the order of their first turns."""

    id: str
    scenario: dict[str, Any]
    roles: tuple[Role, ...]
    conversation: tuple[Turn, ...]
    provenance: Provenance
    outcome: dict[str, Any] | None = None
    events: tuple[Event, ...] = ()
    probability: float | None = None
    ended_by: Role | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


class Dialogue(Family):
    """The layout for every space that is not Education Dialogue's."""

    name = "dialogue"
    schema = "dialogue"
    tags: ClassVar[tuple[str, ...]] = ("dialogue",)
    precedence = 100

    def fits(self, space: Space) -> bool:
        """Any space at all."""
        return True

    def record(self, recorded: Recorded) -> bytes:
        """The record of a conversation."""
        conversation = recorded.conversation
        return _encode(
            Record(
                id=recorded.id,
                scenario=write_values(recorded.scenario),
                roles=tuple(dict.fromkeys(turn.role for turn in conversation.turns)),
                conversation=conversation.turns,
                provenance=recorded.provenance,
                outcome=conversation.outcome,
                events=conversation.events,
                probability=conversation.probability,
                ended_by=conversation.ended_by,
            )
        )

    def read(self, data: bytes) -> Recorded:
        """What a record says."""
        record = _decode(data)
        scenario = Scenario(record.provenance.scenario, *read_values(record.scenario))
        return Recorded.of(record, scenario, record.conversation)

    def begins_anew(self, turn: Any) -> bool:
        """Who speaks when the clock lets them may speak twice in a row: a turn with a time of its own."""
        data = turn.get("data") if isinstance(turn, dict) else None
        return isinstance(data, dict) and type(data.get("time")) in (int, float)

    def recognizes(self, record: Any) -> bool:
        """An object with a scenario or with roles, or CRWIZ's log of a room."""
        return isinstance(record, dict) and (
            crwiz_log.is_log(record) or "roles" in record or isinstance(record.get("scenario"), dict)
        )

    def schema_of(self, record: Any) -> str:
        """A log has a schema of its own."""
        return crwiz_log.SCHEMA if crwiz_log.is_log(record) else self.schema

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """What does not go together in a log."""
        return crwiz_log.findings(record) if crwiz_log.is_log(record) else iter(())

    def read_file(self, record: Any) -> FiledRecord:
        """A record with any turns about any scenario, or CRWIZ's log of a room."""
        if not isinstance(record, dict):
            raise ValueError("no object")
        if crwiz_log.is_log(record):
            return crwiz_log.read(record)
        if not isinstance(record.get("scenario"), dict):
            raise ValueError("no scenario")
        scenario = Scenario(filed_index(record), *read_values(record["scenario"]))
        return filed_record(record, scenario, filed_turns(record), marked=False)


DIALOGUE = Dialogue()
