"""A finished conversation as a record of Google's Education Dialogue data set (ED).

The first two keys are ED's own, with its spelling and order; edgen's come behind them. What the space says of a
topic beyond ED's five texts, its subject and level, stands last, and only where there is any. The end marker, which no Turn holds, stands again as the suffix of the last turn, as in most of ED.
"""

from __future__ import annotations

import msgspec

from edgen.model import END_MARKER, Conversation, Role, Scenario, Turn, Usage


class BackgroundInfo(msgspec.Struct, frozen=True):
    """The scenario in ED's words ("prefrences" is ED's spelling)."""

    topic: str
    student_prefrences: str
    teacher_prefrences: str
    student_reactions: str
    teacher_reactions: str


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a record comes from. `usage` adds up all calls that it rests on, `attempts` counts them.

    Where several templates and models worked on it, `template_sha256` is a digest over all of them and
    `model` the teacher's; `templates` and `models` name each. `flags` are detectors' findings that were let stand;
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


class More(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a scenario holds beyond ED's five texts."""

    subject: str | None = None
    level: str | None = None


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element of a shard."""

    background_info: BackgroundInfo
    conversation: tuple[Turn, ...]
    id: str
    probability: float | None
    ended_by: Role | None
    provenance: Provenance
    scenario: More | None = None


def record_id(name: str, scenario: int, replicate: int) -> str:
    """`quickstart-000137-r0`."""
    return f"{name}-{scenario:06d}-r{replicate}"


def make_record(name: str, scenario: Scenario, conversation: Conversation, provenance: Provenance) -> Record:
    """The record of a conversation, the end marker back in its place."""
    turns = conversation.turns
    if conversation.ended_by is not None:
        last = turns[-1]
        turns = (*turns[:-1], Turn(last.role, f"{last.text} {END_MARKER}"))
    return Record(
        background_info=BackgroundInfo(
            topic=scenario.topic,
            student_prefrences=scenario.student_preference,
            teacher_prefrences=scenario.teacher_preference,
            student_reactions=scenario.student_reaction,
            teacher_reactions=scenario.teacher_reaction,
        ),
        conversation=turns,
        id=record_id(name, provenance.scenario, provenance.replicate),
        probability=conversation.probability,
        ended_by=conversation.ended_by,
        provenance=provenance,
        scenario=more_of(scenario),
    )


def more_of(scenario: Scenario) -> More | None:
    """What the scenario holds beyond ED's five texts; None if it holds nothing more."""
    more = More(scenario.subject, scenario.level)
    return None if more == More() else more


def spoken(record: Record) -> tuple[Turn, ...]:
    """What was said, without the end marker that `make_record` put behind it."""
    turns = record.conversation
    if record.ended_by is None:
        return turns
    last = turns[-1]
    return (*turns[:-1], Turn(last.role, last.text.removesuffix(END_MARKER).rstrip()))


encode = msgspec.json.Encoder().encode
