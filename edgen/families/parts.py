"""The values of records: a conversation with all that a record holds, and one as a file has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from edgen.core.values import END_MARKER, AnswerTime, Conversation, Event, Role, Scenario, Turn, Usage
from edgen.reading import are_plain
from edgen.validation.speech import Speech, read_speech

_SUFFIX = f" {END_MARKER}"


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of a record. `usage` is the sum over all its calls, `attempts` their number.

    If several templates and models worked on it, `template_sha256` is a digest over all of them and `model`
    the first role's; `templates` and `models` name each. `flags` are detectors' findings that were accepted;
    `branch` is the turn, from 0, at which it left replicate 0; `times` are those of people's answers.
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
    times: tuple[AnswerTime, ...] = ()


class Recorded(msgspec.Struct, frozen=True):
    """A finished conversation with everything in its record. The conversation's repairs, flags and branch
    equal its provenance's."""

    id: str
    scenario: Scenario
    conversation: Conversation
    provenance: Provenance

    @classmethod
    def of(cls, record: Any, scenario: Scenario, turns: tuple[Turn, ...]) -> Recorded:
        """Build the values of a record with `id`, `probability`, `ended_by` and `provenance`, and optional
        `outcome` and `events`."""
        made: Provenance = record.provenance
        conversation = Conversation(
            turns,
            record.probability,
            record.ended_by,
            made.repairs,
            made.flags,
            made.branch,
            getattr(record, "outcome", None),
            getattr(record, "events", ()),
        )
        return cls(record.id, scenario, conversation, made)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns, without the end marker."""
        return self.conversation.turns


class FiledRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a file of any origin.

    `id` is None and the scenario's index -1 if the record lacks them. `speech` holds the spoken parts of its
    turns, and `entries` counts the turns as written. Records with the same `cluster` come from one source and
    depend on each other; None if unknown.
    """

    id: str | None
    scenario: Scenario
    speech: Speech
    entries: int
    ended_by: Role | None
    probability: float | None
    simulated: bool
    repairs: tuple[str, ...]
    outcome: dict[str, Any] | None = None
    events: tuple[Event, ...] = ()
    cluster: str | None = None

    @classmethod
    def of(cls, recorded: Recorded) -> FiledRecord:
        """Build the value of one of edgen's own records."""
        conversation = recorded.conversation
        return cls(
            id=recorded.id,
            scenario=recorded.scenario,
            speech=_speech_of(conversation),
            entries=len(conversation.turns),
            ended_by=conversation.ended_by,
            probability=conversation.probability,
            simulated=recorded.provenance.simulated,
            repairs=recorded.provenance.repairs,
            outcome=conversation.outcome,
            events=conversation.events,
        )


def make_verbatim_record(
    identifier: str | None,
    scenario: Scenario,
    turns: tuple[Turn, ...],
    *,
    outcome: dict[str, Any] | None = None,
    cluster: str | None = None,
) -> FiledRecord:
    """Return the value of a record whose texts stay as they are: they have no debris of edgen's layouts and
    no end markers. Turns without a text are left out. Raises ValueError if nothing is left."""
    said = tuple(turn for turn in turns if turn.text.strip())
    if not said:
        raise ValueError("no turn with a text")
    return FiledRecord(
        id=identifier,
        scenario=scenario,
        speech=Speech(said, "absent", None, ()),
        entries=len(turns),
        ended_by=None,
        probability=None,
        simulated=False,
        repairs=(),
        outcome=outcome,
        cluster=cluster,
    )


class TurnScene(msgspec.Struct, frozen=True):
    """The context of a turn in a conversation with several parts: its first turn, from 0, the scenario with
    its values, and the role's knowledge, in lines."""

    begin: int
    scenario: Scenario
    brief: str


class Scenes(ABC):
    """Scenes of conversations on one space. `note` describes them for a card."""

    note: ClassVar[str] = ""

    @abstractmethod
    def of(
        self, role: Role, scenario: Scenario, turns: Sequence[Turn], outcome: Mapping[str, Any] | None
    ) -> dict[int, TurnScene]:
        """Return the scene of each answering turn of a role, by its place. `turns` may stop anywhere."""

    def responses(self, turn: Turn) -> tuple[Turn, ...]:
        """Return the responses to the turn before a turn: with it, unless it was given to another one."""
        return (turn, *turn.alternatives)


def with_marker(conversation: Conversation) -> tuple[Turn, ...]:
    """Return the turns, with the end marker in the last one if there was one."""
    turns = conversation.turns
    if conversation.ended_by is None:
        return turns
    return (*turns[:-1], msgspec.structs.replace(turns[-1], text=turns[-1].text + _SUFFIX))


def _speech_of(conversation: Conversation) -> Speech:
    """Return `read_speech` of the turns with the marker. Most turns are plain and need no parsing."""
    turns, ended_by = conversation.turns, conversation.ended_by
    if are_plain([turn.text for turn in turns]):
        return (
            Speech(turns, "absent", None, ())
            if ended_by is None
            else Speech(turns, "suffix", turns[-1].role, ())
        )
    return read_speech(with_marker(conversation))


def without_marker(turns: tuple[Turn, ...], ended_by: Role | None) -> tuple[Turn, ...]:
    """Return the turns as before `with_marker`."""
    if ended_by is None:
        return turns
    return (*turns[:-1], msgspec.structs.replace(turns[-1], text=turns[-1].text.removesuffix(_SUFFIX)))
