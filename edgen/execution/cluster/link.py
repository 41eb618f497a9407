"""A worker as the head sees it, and the rollouts that run there."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from edgen.execution.client.model_client import ModelClient
from edgen.execution.cluster.messages import Asked, Ended, Failure, Permit, Question, Unit
from edgen.execution.cluster.wire import Wire
from edgen.protocols.task import Settled, Spent
from edgen.store.ledger.facts import WorkerCounts

_LOST = Failure("server_error", "the worker that made the call was lost", None, None, unsent=False)


class WorkerLostError(Exception):
    """The worker of a unit died or is silent."""


class WorkerLink:
    """One worker: its actor, its connection, and who waits for its messages. `calls`: what the head waits for
    by number, attempts at calls and answers to questions. `local`: its node's servers, by node-local backend;
    None until it has begun. `beat`: the moment of its last sign of life, by its own clock."""

    def __init__(self, actor: Any, number: int) -> None:
        self.actor, self.number = actor, number
        self.units: dict[Unit, RemoteRollout] = {}
        self.calls: dict[int, asyncio.Future[Any]] = {}
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

    def ask(self, message: Permit | Question) -> asyncio.Future[Any]:
        """Let the worker make one attempt, or ask a server about itself; return the future of what comes of
        it, a reply or a value, or a CallError. Raises CallError if the worker is lost."""
        if self.lost or self.wire is None:
            raise CallError(FailureKind.SERVER_ERROR, "the worker was lost", unsent=True)
        waiting = self.calls[message.number] = asyncio.get_running_loop().create_future()
        self.wire.send(message)
        return waiting

    def take(self, number: int, value: Any, failure: Failure | None) -> None:
        """Take what came of an attempt or a question."""
        waiting = self.calls.pop(number, None)
        if waiting is None or waiting.done():  # its task was cancelled
            return
        if failure is None:
            waiting.set_result(value)
        else:
            waiting.set_exception(failure.error)

    def end(self) -> None:
        """End every wait for the worker, which is lost."""
        if self.lost:
            return
        self.lost = True
        if self.wire is not None:
            self.wire.close()
        for rollout in self.units.values():
            rollout.put(None)
        for waiting in self.calls.values():
            if not waiting.done():
                waiting.set_exception(_LOST.error)
        self.calls.clear()


class RemoteRollout:
    """The view of a rollout that calls and the recorder of outcomes need, with the worker that runs it and
    the worker's messages about it. `got`: the reply that the worker took."""

    __slots__ = (
        "_message", "_there", "_waiting", "client", "fresh", "got", "group", "key", "last", "link", "refused", "request",
        "settled", "spent", "unit",
    )  # fmt: skip

    client: ModelClient
    key: bytes
    settled: Settled

    def __init__(self, link: WorkerLink, unit: Unit) -> None:
        self.link, self.unit = link, unit
        self.request: Request | None = None
        self.last: tuple[Request, Reply] | None = None
        self.got: Reply | None = None
        self.refused, self.fresh, self.group = "", 0, 0
        self.spent = Spent()
        self._message: Asked | Ended | None = None
        self._there = False
        self._waiting: asyncio.Future[None] | None = None

    def put(self, message: Asked | Ended | None) -> None:
        """Leave a message of the worker; its loss, None, is the last one."""
        if not (self._there and message is not None):
            self._message, self._there = message, True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def next(self) -> Asked | Ended | None:
        """Return the worker's next message, as soon as there is one, and take what it says; None once the
        worker is lost."""
        if not self._there:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
            self._waiting = None
        message, self._message = self._message, None
        self._there = message is None  # a lost worker stays lost
        if isinstance(message, Asked):
            self.request, self.key, self.refused = message.request, message.key, message.refused
        elif message is not None:
            if message.failure is None:
                self.request = None
            self.refused, self.spent, self.group = message.refused, message.spent, message.group
            if message.settled is not None:
                self.settled = message.settled
        return message
