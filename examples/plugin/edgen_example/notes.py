"""A family: a record is a topic and a list of lines, each the speaker's first letter and a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from edgen.plugin import Family, Provenance, Recorded, Scenario, Space, Turn


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record."""

    id: str
    about: dict[str, str]
    lines: tuple[tuple[str, str], ...]
    provenance: Provenance
    probability: float | None = None
    ended_by: str | None = None
    events: tuple[dict[str, Any], ...] = ()


class Notes(Family):
    name = "notes"
    schema = str(Path(__file__).with_name("notes.schema.json"))

    def fits(self, space: Space) -> bool:
        return "topic" in space.names and not any(dimension.fields for dimension in space.dimensions)

    def record(self, recorded: Recorded) -> bytes:
        made = recorded.conversation
        return msgspec.json.encode(
            Note(
                id=recorded.id,
                about=dict(recorded.scenario.values),
                lines=tuple((turn.role, turn.text) for turn in made.turns),
                provenance=recorded.provenance,
                probability=made.probability,
                ended_by=made.ended_by,
                events=made.events,
            )
        )

    def read(self, data: bytes) -> Recorded:
        note = msgspec.json.decode(data, type=Note)
        turns = tuple(Turn(role, text) for role, text in note.lines)
        return Recorded.of(note, Scenario(note.provenance.scenario, note.about), turns)


FAMILY = Notes()
