"""What a protocol is: a plain generator that yields requests, is sent replies, and returns a result.

It does no I/O and reads no clock, so whoever drives it is exchangeable: the online engine, a
provider's batch API, a test that replays a list. A call that failed for good is thrown into it as
CallError; a protocol that has no use for that lets it through.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from edgen.config import Branch, Selfplay
from edgen.errors import CallError, FailureKind
from edgen.model import (
    Address,
    Conversation,
    Message,
    Rejection,
    RejectionReason,
    Reply,
    Request,
    Scenario,
    Turn,
)
from edgen.transcript.abroad import NO_WORDS, OwnWords

Result = Conversation | Rejection
Conversing = Generator[Request, Reply, Result]
T = TypeVar("T")

_NO_MORE_ROOM = (FailureKind.BAD_REQUEST, FailureKind.CONTEXT_OVERFLOW)


class Prompting(Protocol):
    """What a protocol needs of a template: variables in, messages out."""

    def messages(self, variables: Mapping[str, Any]) -> tuple[Message, ...]: ...


class Rules(msgspec.Struct, frozen=True):
    """`asks`: how often one answer is asked for before the last one counts as rejected. `words`: a job's own for
    the two sides, by which replies are read."""

    asks: int
    seed: int
    selfplay: Selfplay = Selfplay()
    branch: Branch | None = None
    words: OwnWords = NO_WORDS


# Scenario, replicate, the templates by what they are for, the rules.
Start = Callable[[Scenario, int, Mapping[str, Prompting], Rules], Conversing]


def call_seed(seed: int, address: Address) -> int:
    """The seed of one call, in [0, 2**31): a pure function of the job's seed and the address."""
    place = f"{seed}/{address.scenario}/{address.replicate}/{address.step}/{address.attempt}"
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=4).digest(), "big") >> 1


def ask(
    first: Address,
    messages: tuple[Message, ...],
    rules: Rules,
    read: Callable[[Reply], T | Rejection],
    role: str = "default",
) -> Generator[Request, Reply, T | Rejection]:
    """Ask until `read` makes something of an answer; the last rejection if it never does.

    Every ask starts afresh, never with the wreck in the prompt; an answer that was cut off is asked
    for with twice the room.
    """
    scale = 1
    result: T | Rejection = Rejection(RejectionReason.EMPTY, "it was never asked")
    for attempt in range(rules.asks):
        address = Address(first.scenario, first.replicate, first.step, attempt)
        try:
            reply = yield Request(
                address, messages, seed=call_seed(rules.seed, address), role=role, max_tokens_scale=scale
            )
        except CallError as failure:
            if scale > 1 and failure.kind in _NO_MORE_ROOM:
                return result  # the model has no more room to give: it stays cut off
            raise
        result = read(reply)
        if not isinstance(result, Rejection):
            return result
        if result.reason is RejectionReason.TRUNCATED:
            scale *= 2
    return result


def transcript_of(turns: Iterable[Turn]) -> str:
    """A conversation as a judge is shown it: a line a turn, no end marker."""
    return "\n".join([f"{turn.role}: {turn.text}" for turn in turns])
