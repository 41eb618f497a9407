"""Messages between head and workers: plain tuples of edgen's values, sent in batches."""

from __future__ import annotations

from typing import Any, NamedTuple

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request, TaskId
from edgen.protocols.task import Settled, Spent

LEASE = 5.0  # seconds since the last word from the head in which a worker may begin a call
PATIENCE = 10.0  # seconds after which a silent worker is given up
LINGER = 1.0  # maximum seconds that a worker waits for something to send

Unit = tuple[int, TaskId]


class Failure(NamedTuple):
    """A CallError; exceptions with keywords do not survive pickling."""

    kind: str
    message: str
    status: int | None
    retry_after: float | None
    unsent: bool

    @classmethod
    def of(cls, error: CallError) -> Failure:
        """Return the error in this form."""
        return cls(str(error.kind), error.message, error.status, error.retry_after, error.unsent)

    @property
    def error(self) -> CallError:
        """The error."""
        return CallError(
            FailureKind(self.kind),
            self.message,
            status=self.status,
            retry_after=self.retry_after,
            unsent=self.unsent,
        )


class Take(NamedTuple):
    """To a worker: work on a unit. `stored`: its replies by key."""

    unit: Unit
    stored: dict[bytes, Reply]


class Call(NamedTuple):
    """To a worker: make one attempt at the server of a backend."""

    number: int
    backend: str
    server: str
    request: Request


class Answered(NamedTuple):
    """To a worker: the stored reply to a unit's request, or why there is none."""

    unit: Unit
    reply: Reply | Failure


class Asked(NamedTuple):
    """From a worker: the open request of a unit. `replayed`: replies used from the ledger since the last.
    `refused`: why the previous reply was unusable."""

    unit: Unit
    request: Request
    key: bytes
    replayed: int
    refused: str


class Called(NamedTuple):
    """From a worker: the result of an attempt."""

    number: int
    reply: Reply | Failure


class Ended(NamedTuple):
    """From a worker: the outcome of a unit; `settled` None: the service refused its last request."""

    unit: Unit
    settled: Settled | None
    failure: Failure | None
    group: int
    spent: Spent
    replayed: int
    refused: str


class Broken(NamedTuple):
    """From a worker: an error that stops the run. `fault`: a bug's traceback, empty for an edgen error."""

    message: str
    fault: str


Message = Any
