"""The values of records in files of any origin: a conversation, and the scenes of its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from edgen.core.values import Conversation, Event, Recorded, Role, Scenario, Turn, with_marker
from edgen.reading import are_plain
from edgen.validation.speech import Speech, read_speech


class FiledRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a file of any origin."""

    id: str | None  # None if the record has none
    scenario: Scenario  # its index is -1 if the record has no number
    speech: Speech  # the spoken parts of its turns
    entries: int  # number of turns as written
    ended_by: Role | None  # the speaker of the end marker; None without one
    probability: float | None  # of its family's event; None if unknown
    simulated: bool  # no model wrote it
    repairs: tuple[str, ...]  # the reader's fixes
    outcome: dict[str, Any] | None = None  # its result, if known
    events: tuple[Event, ...] = ()  # what happened besides turns
    cluster: str | None = None
    """The source of the record: records with the same source depend on each other. None if unknown."""

    @classmethod
    def of(cls, recorded: Recorded) -> FiledRecord:
        """Return the value of one of edgen's own records."""
        conversation = recorded.conversation
        return cls(
            id=recorded.id,
            scenario=recorded.scenario,
            speech=_read_speech_of_turns(conversation),
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
    """Return the value of a record whose texts are kept unchanged, without a search for end markers or for
    remains of edgen's layouts. Turns without a text are left out. Raises ValueError if no turn has a text."""
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
    """The context of a turn in a conversation of several parts. `begin` is the place of the part's first
    turn, counted from 0; `scenario` has the part's values; `brief` is the role's knowledge, a line per
    fact."""

    begin: int
    scenario: Scenario
    brief: str


class Scenes(ABC):
    """The scenes of conversations on one space. `note` describes them for a card."""

    note: ClassVar[str] = ""

    @abstractmethod
    def of(
        self, role: Role, scenario: Scenario, turns: Sequence[Turn], outcome: Mapping[str, Any] | None
    ) -> dict[int, TurnScene]:
        """Map the place of each answering turn of a role to its scene. `turns` may be an incomplete
        conversation."""

    def responses(self, turn: Turn) -> tuple[Turn, ...]:
        """Return the possible responses to the turn before `turn`, without those given to another turn."""
        return (turn, *turn.alternatives)


def _read_speech_of_turns(conversation: Conversation) -> Speech:
    """Return the spoken parts of a conversation with its end marker. Plain turns, which are most, need no
    parsing."""
    turns, ended_by = conversation.turns, conversation.ended_by
    if are_plain([turn.text for turn in turns]):
        return (
            Speech(turns, "absent", None, ())
            if ended_by is None
            else Speech(turns, "suffix", turns[-1].role, ())
        )
    return read_speech(with_marker(conversation))
