"""The values that pass between edgen's parts: immutable, free of I/O, with the same names everywhere.

A Scenario is drawn; a protocol turns it into Requests and is sent Replies; it returns a Conversation or a
Rejection; the engine stores that as an Outcome. A family makes a record of a Conversation with its
Provenance.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

Role = str
ROLES = ("Teacher", "Student")  # roles of a space that names none
END_MARKER = "[end of conversation]"
_SUFFIX = f" {END_MARKER}"

MAX_ANSWER = 32 * 1024 * 1024  # maximum bytes of one answer of a service
MAX_TEXT = 1_000_000  # maximum characters of one text of a template or of a rendered message


class Scenario(msgspec.Struct, frozen=True):
    """One draw from a space: the value of each dimension, in the space's order. `index` counts from 0.

    `fields` holds the drawn entries' further fields, by dimension; dimensions without any are omitted.
    """

    index: int
    values: dict[str, str]
    fields: dict[str, dict[str, Any]] = {}

    def __getitem__(self, dimension: str) -> str:
        return self.values[dimension]

    def field(self, dimension: str, name: str) -> Any:
        """Return the field `name` of a dimension's drawn entry, None if missing."""
        return self.fields.get(dimension, {}).get(name)

    def in_order(self, names: Iterable[str]) -> Scenario:
        """Return the scenario with its dimensions in this order."""
        values = {name: self.values[name] for name in names}
        return Scenario(self.index, values, {one: self.fields[one] for one in values if one in self.fields})

    def as_row(self) -> dict[str, Any]:
        """Return every value and field by a flat name: `topic`, `topic.grade` (see `name_field`)."""
        from edgen.core.space_layouts import name_field  # it finds layouts, which `Reply` and others need not

        row: dict[str, Any] = {"index": self.index, **self.values}
        for dimension, fields in self.fields.items():
            for name, said in fields.items():
                row[name_field(dimension, name, self.values)] = said
        return row


class ValueWithFields(str):
    """A scenario's value in a template, with its entry's fields as attributes."""

    __slots__ = ("fields",)
    fields: Mapping[str, Any]

    def __new__(cls, value: str, fields: Mapping[str, Any]) -> ValueWithFields:
        new = super().__new__(cls, value)
        new.fields = fields
        return new


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side's turn, without the end marker and never empty. `labels` are its acts, such as `Hint`; `data`
    is further information; `alternatives` are other responses that could replace it."""

    role: Role
    text: str
    labels: tuple[str, ...] = ()
    data: dict[str, Any] = {}
    alternatives: tuple[Turn, ...] = ()

    def __hash__(self) -> int:
        return hash((self.role, self.text, self.labels, self.alternatives))  # `data` is a mapping


Event = dict[str, Any]
"""An event besides the turns: `event` is its kind, `time` the seconds since the conversation began, `turn`
the number of the next turn; more keys by kind."""


class Conversation(msgspec.Struct, frozen=True):
    """A parsed conversation: at least two turns, both roles present."""

    turns: tuple[Turn, ...]  # with at least one of each role
    probability: float | None = None
    """Probability of the event that its family names (`probability_clause`), in [0, 1]; None if the reply
    gives no such number."""
    ended_by: Role | None = None
    """The speaker of the end marker; None if there was none."""
    repairs: tuple[str, ...] = ()
    """The reader's fixes, in order of first use and without repetition."""
    flags: tuple[str, ...] = ()
    """Findings of a detector that were accepted."""
    branch: int | None = None
    """The turn, counted from 0, at which it left replicate 0; None if it did not."""
    outcome: dict[str, Any] | None = None
    """Its result, if its protocol states one."""
    events: tuple[Event, ...] = ()
    """Events besides turns, by time. Each has `event` (its kind), `time` (seconds since the start), `turn`
    (the number of the next turn, from 0), and more keys by kind."""


class RejectionReason(enum.StrEnum):
    """A reason, given by edgen's own parts, why an answer is not a conversation."""

    EMPTY = "empty"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    NO_TURNS = "no_turns"
    ONE_SPEAKER = "one_speaker"
    TOO_SHORT = "too_short"
    INVALID = "invalid"
    # a turn of self-play
    SPEAKS_FOR_OTHER = "speaks_for_other"
    TWO_TURNS = "two_turns"
    LEAKED_SECRET = "leaked_secret"  # noqa: S105 - no password
    LOOP = "loop"
    PLACEHOLDER = "placeholder"
    ECHO = "echo"
    NO_BRANCH = "no_branch"
    # labels and gates of a job
    NO_LABELS = "no_labels"
    GATE = "gate"
    # a comparison
    UNREAD = "unread"
    IDENTICAL = "identical"
    NO_RESPONSES = "no_responses"


_OWN_REASONS: dict[str, RejectionReason] = {str(one): one for one in RejectionReason}


def is_reason_name(reason: object) -> bool:
    """Return whether a value is a short name for a reason: a letter, then up to 39 letters, digits and _."""
    return isinstance(reason, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,39}", reason) is not None


def _read_reason(reason: str) -> str:
    """Return a reason as `RejectionReason` has it, or the name that a protocol gives. Raises ValueError for
    anything else."""
    if isinstance(reason, RejectionReason):
        return reason
    if not is_reason_name(reason):
        raise ValueError(
            f"a rejection has an invalid reason: {reason!r}; use up to 40 lower-case letters, "
            "digits and _, a letter first, as in no_answer"
        )
    return _OWN_REASONS.get(reason, reason)


_MOST_DETAIL = 2_000  # characters of a rejection's detail


class Rejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of an answer that is not a conversation. Raises ValueError unless the reason is a short
    name."""

    reason: str
    """A `RejectionReason`, or a reason that the protocol declares under `reasons`."""
    detail: str  # a short clause
    of: str = ""  # one of several of the same reason, such as the name of a gate

    def __post_init__(self) -> None:
        if (reason := _read_reason(self.reason)) is not self.reason:
            msgspec.structs.force_setattr(self, "reason", reason)
        if isinstance(self.detail, str) and len(self.detail) > _MOST_DETAIL:
            from edgen.core.text import limit_length  # most rejections need none

            msgspec.structs.force_setattr(self, "detail", limit_length(self.detail, _MOST_DETAIL))

    @property
    def code(self) -> str:
        """The reason in ledgers and counts: `truncated`, `gate:short`."""
        return f"{self.reason}:{self.of}" if self.of else str(self.reason)


class Message(msgspec.Struct, frozen=True):
    """One message of a request, in the Chat Completions sense."""

    role: Literal["system", "user", "assistant"]
    content: str


TaskId = int | str
"""The task of a scenario: the number of a replicate, or a text that names what is compared or labelled.
Schedulers and ledgers pass it on, compare and order it (numbers before texts), and do not interpret it."""


class Address(msgspec.Struct, frozen=True):
    """The address of a call within a task: all numbers count from 0."""

    scenario: int
    task: TaskId
    step: int = 0
    attempt: int = 0


class Request(msgspec.Struct, frozen=True):
    """One model call to be made."""

    address: Address  # of the call in the run
    messages: tuple[Message, ...]  # of the prompt
    seed: int
    """In [0, 2**31), a pure function of the job's seed and the address."""
    role: str = "default"
    """Names the backend of the job that answers it."""
    max_tokens_scale: int = 1
    """More than 1 after a truncated answer: the retry has the room of the backend's `retry_max_tokens`."""
    protocol: str = ""
    """The requesting protocol, for the simulator; it does not shape a model's answer."""
    schema: bytes | None = None
    """The JSON Schema of the answer, as JSON; None without one."""
    prose: tuple[Message, ...] = ()
    """The messages that ask for the same without the schema, for a service that takes none; empty: the schema
    is required, or there is none."""
    logprobs: int | None = None
    """How many likely tokens the service returns at each place; None without log probabilities."""
    same_prompt: tuple[Request, ...] = ()
    """Further calls that differ only in address and seed."""
    choices: int = 1
    """Number of answers of one call."""
    speakers: tuple[tuple[str, ...], ...] = ()
    """The roles of a requested whole conversation, each with synonyms, for the simulator."""
    scene: Any = None
    """The scenario with its space and the role that speaks (`edgen.space.model.Scene`), for the simulator. It
    shapes no model's answer."""
    other_form: bool = False
    """True if it repeats in words a request that had a schema before, without other changes."""
    one_of_several: bool = False
    """Several answers to this prompt are wanted: the seed is sent where the service takes one, so that no two
    requests are identical."""
    retry_reason: str = ""
    """Why the previous answer to the same request was unusable; empty at the first attempt."""
    view: Any = None
    """The view for a person who answers it (an `edgen.core.people.requests.View`); without one,
    `edgen.protocols.views` makes it from the messages. It shapes no model's answer."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens as counted by the service. Part of the prompt's tokens may be read from the service's prompt
    cache, or written to it."""

    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


FinishReason = Literal["stop", "length", "content_filter", "other"]


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A token of an answer, with its log probability (natural logarithm, at most 0). `top` are the likeliest
    tokens in its place, in order; the chosen one may be among them."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class AnswerTimes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times of a person's answer, in seconds since the epoch by the clocks of edgen's processes, in this
    order: `asked`, first `seen`, `typed` (the writing began), given (`at`). `seconds`: from seen to given. A
    time is None if it was not recorded, such as the first key without JavaScript."""

    at: float
    seconds: float | None = None
    asked: float | None = None
    seen: float | None = None
    typed: float | None = None


class AnswerTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times of a person's answer, as in `AnswerTimes`: seconds since the epoch, by the clocks of edgen's
    processes."""

    role: str  # that the person plays
    step: int  # of the call's address
    attempt: int  # of the call's address
    answered: float  # when it was given
    seconds: float | None = None  # from seen to given; None if unknown, as below
    asked: float | None = None  # when it was asked for
    seen: float | None = None  # when the person first saw the request
    typed: float | None = None  # when its writing began


class Reply(msgspec.Struct, frozen=True):
    """A raw answer."""

    text: str
    """Any text that a model can write, including the empty string; no lone surrogates."""
    finish_reason: FinishReason = "stop"  # why the answer ended
    refusal: str | None = None
    """The service's words if it refused outside the text (a refusal field, a block reason); no lone
    surrogates."""
    usage: Usage | None = None
    """None if the service did not count; of the whole call if it asked for several answers."""
    model: str | None = None  # as the service names it
    simulated: bool = False
    """True if no model wrote it."""
    tokens: tuple[Token, ...] | None = None
    """The tokens of the answer, in order; None if the service returns none. Some services include thoughts
    and marks that are not in the text."""
    others: tuple[Reply, ...] = ()
    """The further answers of a call that asked for several."""
    given: AnswerTimes | None = None
    """The time at which a person gave it; None for the answer of a model."""


class Status(enum.StrEnum):
    """The final state of a conversation's work."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of a record."""

    scenario: int  # index of the scenario
    seed: int  # seed of the job
    replicate: int  # from 0
    protocol: str  # name of the protocol
    backend: str  # of the first role
    model: str  # of the first role
    simulated: bool  # no model wrote it
    template_sha256: str  # of the template; of several, a digest over all
    space_sha256: str  # of the space's content
    attempts: int  # number of its calls
    finish_reason: str  # of the last answer
    usage: Usage  # the sum over its calls
    repairs: tuple[str, ...]  # the reader's fixes
    flags: tuple[str, ...] = ()  # detectors' findings that were accepted
    branch: int | None = None  # turn, from 0, at which it left replicate 0; None if it did not
    models: dict[str, str] | None = None  # by role, if several models worked on it
    templates: dict[str, str] | None = None  # digests by use, if there are several
    times: tuple[AnswerTime, ...] = ()  # of people's answers


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


def with_marker(conversation: Conversation) -> tuple[Turn, ...]:
    """Return the turns, with the end marker in the last one if there was one."""
    turns = conversation.turns
    if conversation.ended_by is None:
        return turns
    return (*turns[:-1], msgspec.structs.replace(turns[-1], text=turns[-1].text + _SUFFIX))


def without_marker(turns: tuple[Turn, ...], ended_by: Role | None) -> tuple[Turn, ...]:
    """Return the turns as before `with_marker`."""
    if ended_by is None:
        return turns
    return (*turns[:-1], msgspec.structs.replace(turns[-1], text=turns[-1].text.removesuffix(_SUFFIX)))
