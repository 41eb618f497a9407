"""One call: its course, and its answer."""

from __future__ import annotations

import msgspec

from edgen.core.values import Reply, Request
from edgen.execution.client.retry import Excused


class Answer(msgspec.Struct, frozen=True):
    """A reply with its costs: seconds of its attempt, network attempts, charged tokens (as counted, or the
    maximum) and US dollars. `held`: the id of its outstanding note, to be removed when it is stored."""

    reply: Reply
    latency: float
    tries: int
    charged_tokens: int
    cost_usd: float | None
    held: int | None = None


class EstimateTooLowError(Exception):
    """A call can take more than was reserved, as found while it waited."""


class Call(Excused, kw_only=True):
    """A call in progress: the moment when it began, attempts so far, those with failed connections
    (`knocks`), seconds of the last one; of the present attempt its maximum use, its id in the ledger, and
    whether it was sent. `keep`: its answer holds its place until stored."""

    request: Request
    key: bytes
    began: float = 0.0
    most: tuple[int, float] = (0, 0.0)
    held: int | None = None
    tries: int = 0
    knocks: int = 0
    latency: float = 0.0
    sent: bool = False
    keep: bool
