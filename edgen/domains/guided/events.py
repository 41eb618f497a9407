"""Events of a guided conversation as values: choices, states, sub-tasks, hints, the end, answers.

`events` may have any origin: incomplete entries are skipped. Times are seconds since the start. Turns are
counted from 0, and an event has the number of the next turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from edgen.plugin import Reply
from edgen.plugin.families import Role

Event = dict[str, Any]  # an event, as in `Conversation.events`
ACTS = ("Request", "Interaction", "Action", "Update")
"""The four types of dialogue acts (Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020)."""
_BY_WORD = {act.casefold(): act for act in ACTS}


class UtteranceChoice(NamedTuple):
    """An utterance of the guided role."""

    by: str  # an offered `state`, a `fixed` reply, or `free` text
    state: str | None  # name of the state or the reply; None for free text
    utterance: str  # the text
    followed: bool | None  # a hint named it; None without a hint
    time: float  # seconds of the conversation's clock
    turn: int  # number of the next turn, from 0


class Span(NamedTuple):
    """A stretch of a conversation in one sub-task, half open, in seconds and turns."""

    name: str
    start: float
    end: float
    first_turn: int
    end_turn: int


class ConversationEnd(NamedTuple):
    """The reason for the end, and whether the task succeeded; None if not applicable."""

    reason: str
    success: bool | None


class Answers(NamedTuple):
    """A role's answers to the questionnaire: ratings and texts by item."""

    role: Role
    token: str | None
    ratings: dict[str, float]
    texts: dict[str, str]


class GuidedEvents:
    """The events of one conversation. `turns` is its number of turns."""

    def __init__(self, events: Sequence[Event], turns: int) -> None:
        self.events = [one for one in events if isinstance(one.get("event"), str)]
        self.turns = turns

    def __bool__(self) -> bool:
        """Return whether a role was guided at all."""
        return any(one["event"] in ("offered", "chosen", "state") for one in self.events)

    def of(self, kind: str) -> Iterator[Event]:
        """Yield the events of one kind."""
        return (one for one in self.events if one["event"] == kind)

    @cached_property
    def choices(self) -> list[UtteranceChoice]:
        """The utterances of the guided role, in order."""
        return [
            UtteranceChoice(
                one["by"], read_text(one, "state"), read_text(one, "utterance") or "", read_truth(one, "followed_hint"),
                read_time(one), read_turn(one),
            )
            for one in self.of("chosen")
            if read_text(one, "by")
        ]  # fmt: skip

    @cached_property
    def transitions(self) -> list[tuple[str, str]]:
        """The state changes: from and to."""
        pairs = ((read_text(one, "from"), read_text(one, "to")) for one in self.of("state"))
        return [(old, new) for old, new in pairs if old and new]

    @cached_property
    def offered(self) -> list[tuple[str, tuple[str, ...]]]:
        """The offered utterances by state, by name."""
        found = []
        for one in self.of("offered"):
            options = one.get("options")
            names = (
                [read_text(o, "state") for o in options if isinstance(o, dict)]
                if isinstance(options, list)
                else []
            )
            if state := read_text(one, "state"):
                found.append((state, tuple(name for name in names if name)))
        return found

    @cached_property
    def end(self) -> ConversationEnd | None:
        """The end; None if unknown."""
        last = next(reversed([*self.of("end")]), None)
        reason = read_text(last, "reason") if last is not None else None
        return ConversationEnd(reason, read_truth(last, "success")) if last is not None and reason else None

    @property
    def duration(self) -> float:
        """Seconds until the end, or until the last event except questionnaires."""
        ends = [read_time(one) for one in self.of("end")]
        return ends[-1] if ends else max((read_time(one) for one in self.events), default=0.0)

    @cached_property
    def subtasks(self) -> list[Span]:
        """The sub-tasks in order, with one stretch per visit."""
        changes = [*self.of("subtask")]
        spans: list[Span] = []
        if changes and (before := read_text(changes[0], "from")):
            spans.append(Span(before, 0.0, read_time(changes[0]), 0, read_turn(changes[0])))
        ends = [*((read_time(one), read_turn(one)) for one in changes[1:]), (self.duration, self.turns)]
        for one, (end, end_turn) in zip(changes, ends, strict=False):  # without changes: one end of nothing
            start, first_turn = read_time(one), read_turn(one)
            if name := read_text(one, "to"):
                spans.append(Span(name, start, max(end, start), first_turn, max(end_turn, first_turn)))
        return spans

    @cached_property
    def answers(self) -> list[Answers]:
        """The answers to the questionnaire, one entry per role."""
        found = []
        for one in self.of("questionnaire"):
            said = one.get("answers")
            if (role := read_text(one, "role")) is None or not isinstance(said, dict):
                continue
            ratings = {item: float(value) for item, value in said.items() if type(value) in (int, float)}
            texts = {item: value for item, value in said.items() if isinstance(value, str)}
            found.append(Answers(role, read_text(one, "token"), ratings, texts))
        return found


def acts_of(labels: Sequence[str]) -> list[str]:
    """Return the types of dialogue acts among a turn's labels, in the spelling of ACTS."""
    return [act for label in labels if (act := _BY_WORD.get(label.casefold()))]


def read_text(event: Mapping[str, Any], key: str) -> str | None:
    """Return an event's text under a key, None if it is not a text."""
    value = event.get(key)
    return value if isinstance(value, str) else None


def read_truth(event: Mapping[str, Any], key: str) -> bool | None:
    """Return an event's truth value under a key; None if it is not one."""
    value = event.get(key)
    return value if isinstance(value, bool) else None


def read_time(event: Mapping[str, Any]) -> float:
    """Return the seconds of the event, 0 if missing."""
    value: Any = event.get("time")
    return float(value) if type(value) in (int, float) and value >= 0 else 0.0


def read_turn(event: Mapping[str, Any]) -> int:
    """Return the next turn at the event, 0 if missing."""
    value = event.get("turn")
    return value if type(value) is int and value >= 0 else 0


LONGEST = 86_400  # seconds in a day


class _Timed(msgspec.Struct):
    seconds: Annotated[float, Meta(ge=0, le=LONGEST)]


def read_seconds(reply: Reply) -> float | None:
    """Return the seconds of an answer, in [0, LONGEST]; None if they were not measured and the text is no
    JSON object with a valid number of them."""
    if reply.given is not None and reply.given.seconds is not None:
        return min(max(reply.given.seconds, 0.0), LONGEST)
    try:
        return msgspec.json.decode(reply.text, type=_Timed).seconds
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
