"""A worker as the head sees it, and the rollouts that run there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from edgen.execution.client.model_client import ModelClient
from edgen.execution.client.server_queue import Waiter
from edgen.execution.cluster.messages import (
    AttemptResult,
    CallFailure,
    FirstReply,
    OpenRequest,
    Permit,
    ServerAnswer,
    ServerQuestion,
    StartUnit,
    Unit,
    UnitOutcome,
)
from edgen.execution.cluster.wire import Wire
from edgen.protocols.parts import Settled
from edgen.store.ledger.facts import WorkerCounts

_LOST = CallFailure("server_error", "the worker that made the call was lost", None, None, unsent=False)


class WorkerLostError(Exception):
    """The worker of a unit died or is silent."""


class WorkerLink:
    """One worker: its actor, its connection, and who waits for its messages. `calls`: what the head waits for
    by number, attempts at calls and answers to questions. `local`: its node's servers, by node-local backend;
    None until it has begun. `beat`: the moment of its last sign of life, by its own clock."""

    def __init__(self, actor: Any, number: int) -> None:
        self.actor, self.number = actor, number
        self.units: dict[Unit, RemoteRollout] = {}
        self.calls: dict[int, Waiter[Any]] = {}
        self.local: dict[str, str] | None = None
        self.lost, self.beat = False, 0.0
        self.wire: Wire | None = None
        self.arrived = asyncio.Event()
        self.pid, self.node = 0, ""
        self.counts: Counter[str] = Counter()

    @property
    def ready(self) -> bool:
        """True while it can be given work."""
        return self.wire is not None and self.local is not None and not self.lost

    @property
    def name(self) -> str:
        """Its node and process, for people."""
        return f"{self.node}/{self.pid}"

    @property
    def stand(self) -> WorkerCounts:
        """Its counts so far."""
        counts = self.counts
        return WorkerCounts(
            len(self.calls), counts["answers"], counts["failures"], counts["ended"], self.lost
        )

    def send(self, message: Any) -> None:
        """Queue a message. Raises WorkerLostError."""
        if self.lost or self.wire is None:
            raise WorkerLostError
        self.wire.send(message)

    def ask(self, message: Permit | ServerQuestion) -> asyncio.Future[Any]:
        """Let the worker make one attempt, or ask a server about itself; return the future of the message
        that says what came of it, or of a CallError. Raises CallError if the worker is lost."""
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            self.send(message)
        except WorkerLostError:
            raise CallError(FailureKind.SERVER_ERROR, "the worker was lost", unsent=True) from None
        self.calls[message.number] = waiting
        return waiting

    def permit(self, permit: Permit, waiter: Waiter[Any], *, first: bool) -> None:
        """Do what `ask` does for a waiter; `first`: for the first request of a unit. Raises
        WorkerLostError."""
        if self.lost or self.wire is None:
            raise WorkerLostError
        self.wire.send(StartUnit(permit.unit, {}, permit) if first and permit.unit is not None else permit)
        self.calls[permit.number] = waiter

    def take(self, message: AttemptResult | FirstReply | ServerAnswer) -> None:
        """Take what came of an attempt or a question."""
        waiting = self.calls.pop(message.number, None)
        if waiting is None or waiting.done():  # its task was cancelled
            return
        if isinstance(message, FirstReply) or message.failure is None:
            waiting.set_result(message)
        else:
            waiting.set_exception(message.failure.error)

    def end(self) -> None:
        """End every wait for the worker, which is lost."""
        if self.lost:
            return
        self.lost = True
        if self.wire is not None:
            self.wire.close()
        calls, self.calls = self.calls, {}
        for waiting in calls.values():
            if not waiting.done():
                waiting.set_exception(_LOST.error)
        for rollout in [*self.units.values()]:
            rollout.lose()


class RemoteRollout:
    """A unit at a worker, as calls and the recorder of outcomes see a rollout. `message`: the worker's that
    nobody has taken yet; `lost`: no other follows. `busy`: its present call, or the way of the reply to the
    disk, has to end before `message` is taken. `got`: the reply that the worker took. `hear` is called when a
    message came, or the worker was lost."""

    __slots__ = (
        "busy", "checksums", "client", "fresh", "got", "group", "hear", "key", "last", "last_key", "link",
        "lost", "message", "refused", "request", "settled", "simulated", "unit",
    )  # fmt: skip

    client: ModelClient
    key: bytes
    settled: Settled

    def __init__(self, link: WorkerLink, unit: Unit, hear: Callable[[RemoteRollout], None]) -> None:
        self.link, self.unit, self.hear = link, unit, hear
        self.request: Request | None = None
        self.last: tuple[Request, Reply] | None = None
        self.got: Reply | None = None
        self.refused, self.fresh, self.group = "", 0, 0
        self.last_key: bytes | None = None
        self.simulated = False
        self.checksums: tuple[int, int] | None = None
        self.message: OpenRequest | UnitOutcome | None = None
        self.lost = self.busy = False

    def put(self, message: OpenRequest | UnitOutcome) -> None:
        """Leave a message of the worker."""
        self.message = message
        self.hear(self)

    def lose(self) -> None:
        """Note that the worker is lost. What it sent last is not used."""
        self.message, self.lost = None, True
        self.hear(self)

    def take(self) -> OpenRequest | UnitOutcome:
        """Return the message, and take what it says."""
        message, self.message = self.message, None
        assert message is not None, "a message came"
        self.refused = message.refused
        if message.first is not None and self.last is not None:
            self.last = message.first, self.last[1]
        if isinstance(message, OpenRequest):
            self.request, self.key = message.request, message.key
            return message
        if message.failure is None:
            self.request = None
        self.last_key, self.simulated = message.last_key, message.simulated
        self.group, self.checksums = message.group, message.checksums
        if message.settled is not None:
            self.settled = message.settled
        return message
