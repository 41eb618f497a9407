"""The general layout: a finished conversation of any roles on a scenario of any dimensions.

A dimension's value is a text, or an object with the text as its `value` if its entry has more fields. Records
hold no end marker: `ended_by` names the role that ended the conversation. `events` exist if the protocol has
any.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from edgen.core.values import Provenance, Recorded, Role, Scenario, Turn
from edgen.families.base import (
    FamilyBySpace,
    FiledRecord,
    make_filed_record,
    read_filed_index,
    read_filed_turns,
    read_values,
    write_values,
)
from edgen.families.reader import ReportWords
from edgen.validation.layout import LayoutChecks


class DialogueRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record of a conversation: one element of a shard."""

    id: str  # unique in the run
    scenario: dict[str, Any]  # its values by dimension
    roles: tuple[Role, ...]  # speakers, in the order of their first turns
    conversation: tuple[Turn, ...]  # its turns
    provenance: Provenance  # origin of the conversation
    outcome: dict[str, Any] | None = None  # its result, if its protocol states one
    events: tuple[dict[str, Any], ...] = ()  # what happened besides turns
    probability: float | None = None  # of its family's event; None if unknown
    ended_by: Role | None = None  # the role that ended the conversation; None if none did


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(DialogueRecord).decode


class Dialogue(LayoutChecks, ReportWords, FamilyBySpace):
    """The layout for every space that no other family fits."""

    name = "dialogue"
    schema = "dialogue"
    tags: ClassVar[tuple[str, ...]] = ("dialogue",)
    precedence = 100

    def record(self, recorded: Recorded) -> bytes:
        """Return the record of a conversation."""
        conversation = recorded.conversation
        return _encode(
            DialogueRecord(
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
        """Read a record."""
        record = _decode(data)
        scenario = Scenario(record.provenance.scenario, *read_values(record.scenario))
        return Recorded.of(record, scenario, record.conversation)

    def begins_anew(self, turn: Any) -> bool:
        """Return whether a turn has a time: roles that speak by the clock may speak twice in a row."""
        data = turn.get("data") if isinstance(turn, dict) else None
        return isinstance(data, dict) and type(data.get("time")) in (int, float)

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value is an object with a scenario or with roles."""
        return isinstance(record, dict) and ("roles" in record or isinstance(record.get("scenario"), dict))

    def read_file(self, record: Any) -> FiledRecord:
        """Read a record with any turns on any scenario. Raises ValueError with the reason if it is
        invalid."""
        if not isinstance(record, dict):
            raise ValueError("no object")
        if not isinstance(record.get("scenario"), dict):
            raise ValueError("no scenario")
        scenario = Scenario(read_filed_index(record), *read_values(record["scenario"]))
        return make_filed_record(record, scenario, read_filed_turns(record), marked=False)


DIALOGUE = Dialogue()
