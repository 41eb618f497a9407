"""The values that pass between edgen's parts: frozen, free of I/O, the same words everywhere.

A Scenario is drawn; a protocol turns it into Requests and is sent Replies; it returns a Conversation or a Rejection;
the engine stores that as an Outcome.
"""

from __future__ import annotations

import enum
from typing import Any, Literal

import msgspec

Role = str
ROLES = ("Teacher", "Student")  # of Education Dialogue
END_MARKER = "[end of conversation]"


class Scenario(msgspec.Struct, frozen=True):
    """One draw from a space: the value of each dimension, in the space's order. `index` counts from 0.

    `fields` is what entries say of themselves besides their value, by dimension; a dimension of which the drawn entry
    says nothing more is not in it.
    """

    index: int
    values: dict[str, str]
    fields: dict[str, dict[str, Any]] = {}

    def __getitem__(self, dimension: str) -> str:
        return self.values[dimension]

    def field(self, dimension: str, name: str) -> Any:
        """What the drawn entry of a dimension says under `name`, None if nothing."""
        return self.fields.get(dimension, {}).get(name)

    def as_row(self) -> dict[str, Any]:
        """Every value and field by a flat name: `topic`, `topic.grade`. A topic's `subject` and `level` go by their
        bare names, unless a dimension has the name."""
        row: dict[str, Any] = {"index": self.index, **self.values}
        for dimension, fields in self.fields.items():
            for name, said in fields.items():
                bare = dimension == "topic" and name in ("subject", "level") and name not in self.values
                row[name if bare else f"{dimension}.{name}"] = said
        return row


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one side said, without the end marker and never empty. `labels` are what it does by saying so, as
    `Hint`; `data` is what else is known of it; `alternatives` are what else could have been said in its place."""

    role: Role
    text: str
    labels: tuple[str, ...] = ()
    data: dict[str, Any] = {}
    alternatives: tuple[Turn, ...] = ()

    def __hash__(self) -> int:
        return hash((self.role, self.text, self.labels, self.alternatives))  # `data` is a mapping


Event = dict[str, Any]
"""Something that happened besides what was said: `event` is its kind, `time` the seconds since the conversation began,
`turn` the number of the next turn to be said; more keys by kind."""


class Conversation(msgspec.Struct, frozen=True):
    """A conversation as read: at least two turns, both roles present.

    `probability` is that the student understood, in [0, 1], or None where the reply gives no such number. `ended_by` is
    who spoke the end marker, None if nobody did. `repairs` names, in order of first use and without repetition, what
    the reader mended; `flags` what a detector found and let stand. `branch` is the turn, counted from 0, at which it
    left replicate 0; None if it did not. `outcome` is what it came to, where its protocol says so. `events` are what
    happened besides turns, in the order of their times.
    """

    turns: tuple[Turn, ...]
    probability: float | None = None
    ended_by: Role | None = None
    repairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    branch: int | None = None
    outcome: dict[str, Any] | None = None
    events: tuple[Event, ...] = ()


class RejectionReason(enum.StrEnum):
    """Why an answer is no conversation."""

    EMPTY = "empty"  # nothing but white space
    REFUSED = "refused"  # the model declined, or the service blocked it
    TRUNCATED = "truncated"  # cut off by a token limit
    NO_TURNS = "no_turns"  # no line that a role speaks
    ONE_SPEAKER = "one_speaker"  # turns, but all by one side
    TOO_SHORT = "too_short"  # fewer than two turns
    INVALID = "invalid"  # read, but the record breaks the schema
    # a turn of self-play
    SPEAKS_FOR_OTHER = "speaks_for_other"  # a side writes the other's lines
    TWO_TURNS = "two_turns"  # more than one turn in one reply
    LEAKED_SECRET = "leaked_secret"  # noqa: S105 - a side says word for word what it cannot know
    LOOP = "loop"  # a side repeats itself
    NO_ACTIONS = "no_actions"  # a turn that was to say what it does, and does not
    NO_LABELS = "no_labels"  # units that were to be labelled, and are not, or with labels that there are not
    NOT_OFFERED = "not_offered"  # neither one of the utterances that were offered nor one that may be said
    NO_BRANCH = "no_branch"  # the conversation ended before the turn at which others were to leave it
    GATE = "gate"  # a conversation that does not meet one of the job's gates
    # a comparison
    UNREAD = "unread"  # a judge's answers name neither side
    IDENTICAL = "identical"  # both sides say the same, so there is nothing to judge
    NO_RESPONSES = "no_responses"  # they do not part in two turns of the teacher


class Rejection(msgspec.Struct, frozen=True, omit_defaults=True):
    """The model answered, and the answer is no conversation. `detail` is a short clause; `of` is which of several of its
    reason's kind, as the name of a gate."""

    reason: RejectionReason
    detail: str
    of: str = ""

    @property
    def code(self) -> str:
        """The reason as ledgers and counts have it: `truncated`, `gate:short`."""
        return f"{self.reason}:{self.of}" if self.of else str(self.reason)


class Message(msgspec.Struct, frozen=True):
    """One message of a request, in the Chat Completions sense."""

    role: Literal["system", "user", "assistant"]
    content: str


TaskId = int | str
"""Tells apart what is made of one scenario: the number of a replicate, or a text that names what is compared or
labelled. Schedulers and ledgers pass it on, compare and order it (numbers before texts), and read nothing in it."""


class Address(msgspec.Struct, frozen=True):
    """Which call of which task: all numbers count from 0."""

    scenario: int
    task: TaskId
    step: int = 0
    attempt: int = 0


class Request(msgspec.Struct, frozen=True):
    """One model call to be made.

    `role` names the backend of the job that answers it. `seed` is in [0, 2**31), a pure function of the job's seed and
    the address. `max_tokens_scale` multiplies the backend's max_tokens, so that an answer that was cut off is asked
    again with more room. `protocol` is who asks, for the simulator; it shapes no model's answer. `schema` is the JSON
    Schema that the answer has to fit, as JSON; None where there is none. `logprobs` is how many likely tokens the
    service is to tell at each place of its answer; None where log probabilities are not asked for. `alike` are further
    calls that will ask the very same, but for address and seed. `choices` is how many answers one call is to bring.
    """

    address: Address
    messages: tuple[Message, ...]
    seed: int
    role: str = "default"
    max_tokens_scale: int = 1
    protocol: str = ""
    schema: bytes | None = None
    logprobs: int | None = None
    alike: tuple[Request, ...] = ()
    choices: int = 1


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens as the service counted them. Of the prompt's, some were read from the service's prompt cache, and some
    written to it."""

    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


FinishReason = Literal["stop", "length", "content_filter", "other"]


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A token of an answer, with its log probability (natural logarithm, at most 0). `top` are the most likely tokens in
    its place, the most likely first; the one that was said may be among them."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Reply(msgspec.Struct, frozen=True):
    """A raw answer. `text` may be anything a model can write, the empty string included.

    `refusal` holds the service's words when it refused outside the text (a refusal field, a block reason). `usage` is
    None where the service did not count. `simulated`: no model wrote this. `text` and `refusal` hold no lone
    surrogates: adapters replace them. `tokens` are those of the answer, in their order; None where the service tells
    none. Some services count thoughts and marks among them that are no part of the text. `others` are the further
    answers of a call that asked for several; `usage` is then that of the whole call.
    """

    text: str
    finish_reason: FinishReason = "stop"
    refusal: str | None = None
    usage: Usage | None = None
    model: str | None = None
    simulated: bool = False
    tokens: tuple[Token, ...] | None = None
    others: tuple[Reply, ...] = ()


class Status(enum.StrEnum):
    """How a conversation's work ended."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"
