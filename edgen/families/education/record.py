"""A finished conversation as a record of Google's Education Dialogue data set (ED).

The first two keys are ED's own, with its spelling and order; edgen's come behind them. What the space says of a
topic beyond ED's five texts, its subject and level, stands last, and only where there is any. A space with more
dimensions, or with other fields, has all that is more there: a text for a dimension, an object with its `value` where
the entry says more of itself, and always the topic, by which such a record is known. The end marker, which no Turn
holds, stands again as the suffix of the last turn, as in most of ED.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.core.values import Conversation, Role, Scenario, Turn
from edgen.families.base import (
    Family,
    Provenance,
    Recorded,
    read_values,
    with_marker,
    without_marker,
    write_values,
)
from edgen.space.education import DIMENSIONS, TOPIC_FIELDS, education_scenario, is_education
from edgen.space.model import Space


class BackgroundInfo(msgspec.Struct, frozen=True):
    """The scenario in ED's words ("prefrences" is ED's spelling)."""

    topic: str
    student_prefrences: str
    teacher_prefrences: str
    student_reactions: str
    teacher_reactions: str


# The dimension that stands under each key.
_KEYS = {
    "topic": "topic",
    "student_prefrences": "student_preference",
    "teacher_prefrences": "teacher_preference",
    "student_reactions": "student_reaction",
    "teacher_reactions": "teacher_reaction",
}


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element of a shard."""

    background_info: BackgroundInfo
    conversation: tuple[Turn, ...]
    id: str
    probability: float | None
    ended_by: Role | None
    provenance: Provenance
    scenario: dict[str, Any] | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


class Education(Family):
    """ED's layout."""

    name = "education"
    schema = "conversation"
    tags = ("education", "education-dialogue")
    measures = ("adherence", "answers", "probability")

    def fits(self, space: Space) -> bool:
        """A space with ED's dimensions and roles, whatever it has besides."""
        return is_education(space)

    def vocabulary(self, space: Space) -> dict[str, frozenset[str]]:
        """The values of ED's dimensions, in its spelling."""
        return {key: frozenset(space[dimension].values) for key, dimension in _KEYS.items()}

    def record(self, recorded: Recorded) -> bytes:
        """The record of a conversation, the end marker back in its place."""
        conversation, scenario = recorded.conversation, recorded.scenario
        return _encode(
            Record(
                background_info=BackgroundInfo(**{key: scenario[name] for key, name in _KEYS.items()}),
                conversation=with_marker(conversation),
                id=recorded.id,
                probability=conversation.probability,
                ended_by=conversation.ended_by,
                provenance=recorded.provenance,
                scenario=_write_more(scenario),
            )
        )

    def read(self, data: bytes) -> Recorded:
        """What a record says, the end marker taken off."""
        record = _decode(data)
        made = record.provenance
        conversation = Conversation(
            without_marker(record.conversation, record.ended_by),
            record.probability,
            record.ended_by,
            made.repairs,
            made.flags,
            made.branch,
        )
        return Recorded(record.id, _scenario(record), conversation, made)


def _write_more(scenario: Scenario) -> dict[str, Any] | None:
    """What the scenario holds beyond ED's five texts; None if it holds nothing more."""
    fields = scenario.fields
    topics = {*fields} <= {"topic"} and {*fields.get("topic", {})} <= {*TOPIC_FIELDS}
    if len(scenario.values) == len(DIMENSIONS) and topics:
        return dict(fields["topic"]) if fields else None
    more = write_values(scenario, without=DIMENSIONS)
    return {"topic": scenario["topic"]} | more


def _scenario(record: Record) -> Scenario:
    about, more = record.background_info, record.scenario or {}
    values = {name: getattr(about, key) for key, name in _KEYS.items()}
    if "topic" not in more:
        return education_scenario(record.provenance.scenario, values, more.get("subject"), more.get("level"))
    others, fields = read_values(more)
    return Scenario(record.provenance.scenario, values | others, fields)


EDUCATION = Education()
