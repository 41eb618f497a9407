"""What a protocol is: a plain generator that yields requests, is sent replies, and returns a result.

It does no I/O and reads no clock, so whoever drives it is exchangeable: the online engine, a
provider's batch API, a test that replays a list. A call that failed for good is thrown into it as
CallError; a protocol that has no use for that lets it through.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

import msgspec

from edgen.model import Address, Conversation, Message, Rejection, Reply, Request, Scenario

Result = Conversation | Rejection
Conversing = Generator[Request, Reply, Result]


class Prompting(Protocol):
    """What a protocol needs of a template: variables in, messages out."""

    def messages(self, variables: Mapping[str, Any]) -> tuple[Message, ...]: ...


class Rules(msgspec.Struct, frozen=True):
    """`asks`: how often one scenario is asked for before its last answer counts as rejected."""

    asks: int
    seed: int


Start = Callable[[Scenario, int, Prompting, Rules], Conversing]


def call_seed(seed: int, address: Address) -> int:
    """The seed of one call, in [0, 2**31): a pure function of the job's seed and the address."""
    place = f"{seed}/{address.scenario}/{address.replicate}/{address.step}/{address.attempt}"
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=4).digest(), "big") >> 1
