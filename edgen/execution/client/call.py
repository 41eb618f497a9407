"""The state of one call, and its answer."""

from __future__ import annotations

import msgspec

from edgen.core.values import Address, Reply, Request
from edgen.execution.client.retry import Excused


class Answer(msgspec.Struct, frozen=True):
    """A reply with its costs."""

    reply: Reply  # reply of the service
    latency: float  # seconds of the attempt that was answered
    tries: int  # network attempts
    charged_tokens: int  # tokens as counted; the maximum without counts
    cost_usd: float | None  # US dollars; None without a price
    held: int | None = None  # id of its outstanding note, to be removed when it is stored


class EstimateTooLowError(Exception):
    """A call's maximum use rose above its reservation while the call waited."""


UNSEEN = Request(Address(-1, 0), (), 0)
"""Placeholder for a request that only a worker has seen."""


class Call(Excused, kw_only=True):
    """A call in progress."""

    request: Request  # request that it makes
    key: bytes  # digest of everything that shapes the answer
    began: float = 0.0  # start of the call, in seconds of the loop's clock
    most: tuple[int, float] = (0, 0.0)  # maximum tokens and US dollars of the present attempt
    held: int | None = None  # id of the present attempt's note in the ledger; None without a note
    tries: int = 0  # attempts so far
    failed_connections: int = 0  # of these, failed connections
    latency: float = 0.0  # seconds of the last attempt
    sent: bool = False  # whether the present attempt was sent
    keep: bool  # the answer holds its place until it is stored
