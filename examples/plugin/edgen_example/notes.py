"""A family: a record is a topic and a list of lines, each the first letter of who speaks and what is said."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgen.core.values import Conversation, Scenario, Turn
from edgen.families.base import Family, Provenance, Recorded
from edgen.space.model import Space


class Note(msgspec.Struct, frozen=True):
    """One record."""

    id: str
    about: dict[str, str]
    lines: tuple[tuple[str, str], ...]
    provenance: Provenance


class Notes(Family):
    name = "notes"
    schema = str(Path(__file__).with_name("notes.schema.json"))

    def fits(self, space: Space) -> bool:
        return "topic" in space.names and not any(dimension.fields for dimension in space.dimensions)

    def record(self, recorded: Recorded) -> bytes:
        lines = tuple((turn.role, turn.text) for turn in recorded.turns)
        return msgspec.json.encode(
            Note(recorded.id, dict(recorded.scenario.values), lines, recorded.provenance)
        )

    def read(self, data: bytes) -> Recorded:
        note = msgspec.json.decode(data, type=Note)
        turns = tuple(Turn(role, text) for role, text in note.lines)
        return Recorded(
            note.id, Scenario(note.provenance.scenario, note.about), Conversation(turns), note.provenance
        )


FAMILY = Notes()
