"""One call: its course, and its answer."""

from __future__ import annotations

import msgspec

from edgen.core.values import Address, Reply, Request
from edgen.execution.client.retry import Excused


class Answer(msgspec.Struct, frozen=True):
    """A reply with its costs."""

    reply: Reply  # reply of the service
    latency: float  # seconds of its attempt
    tries: int  # network attempts
    charged_tokens: int  # as counted, or the maximum
    cost_usd: float | None  # US dollars; None without a price
    held: int | None = None  # id of its outstanding note, to be removed when it is stored


class EstimateTooLowError(Exception):
    """A call can take more than was reserved, as found while it waited."""


UNSEEN = Request(Address(-1, 0), (), 0)
"""Stands for the request of a call by a worker, which alone has seen it."""


class Call(Excused, kw_only=True):
    """A call in progress."""

    request: Request  # request that it makes
    key: bytes  # digest of everything that shapes the answer
    began: float = 0.0  # moment of its begin, by the monotonic clock
    most: tuple[int, float] = (0, 0.0)  # maximum tokens and US dollars of the present attempt
    held: int | None = None  # id of the present attempt in the ledger; None without one
    tries: int = 0  # attempts so far
    knocks: int = 0  # of these, failed connections
    latency: float = 0.0  # seconds of the last attempt
    sent: bool = False  # whether the present attempt was sent
    keep: bool  # its answer holds its place until stored
