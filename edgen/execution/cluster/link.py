"""The head's view of a worker, and of the rollouts that run there."""

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
    """One worker: its actor, its connection, and the waiters for its messages.

    `calls`: waiters for results of attempts and answers to questions, by number. `local`: addresses of the
    servers on its node, by node-local backend; None until it has started. `beat`: time of its last sign of
    life, in seconds of the worker's clock.
    """

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
        """True while the worker can be given work."""
        return self.wire is not None and self.local is not None and not self.lost

    @property
    def name(self) -> str:
        """The worker's node and process, for messages."""
        return f"{self.node}/{self.pid}"

    @property
    def stand(self) -> WorkerCounts:
        """The worker's counts so far."""
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
        """Let the worker make one attempt, or ask a server about itself. Return a future for the message with
        the result, or for a CallError. Raises CallError if the worker is lost."""
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            self.send(message)
        except WorkerLostError:
            raise CallError(FailureKind.SERVER_ERROR, "the worker was lost", unsent=True) from None
        self.calls[message.number] = waiting
        return waiting

    def permit(self, permit: Permit, waiter: Waiter[Any], *, first: bool) -> None:
        """Send a permit, as `ask` does; the `waiter` gets the result. `first`: give the unit to the worker
        with the permit, for its first request. Raises WorkerLostError."""
        if self.lost or self.wire is None:
            raise WorkerLostError
        self.wire.send(StartUnit(permit.unit, {}, permit) if first and permit.unit is not None else permit)
        self.calls[permit.number] = waiter

    def take(self, message: AttemptResult | FirstReply | ServerAnswer) -> None:
        """Pass the result of an attempt or a question to its waiter."""
        waiting = self.calls.pop(message.number, None)
        if waiting is None or waiting.done():  # its task was cancelled
            return
        if isinstance(message, FirstReply) or message.failure is None:
            waiting.set_result(message)
        else:
            waiting.set_exception(message.failure.error)

    def end(self) -> None:
        """Mark the worker as lost, and end every wait for it."""
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
    """A unit at a worker, with the interface of a rollout for calls and the recorder of outcomes.

    `message`: the worker's, if not yet taken. `lost`: the worker is lost. `busy`: `message` must wait until
    the present call's reply is stored. `got`: the reply that the worker has. `hear`: called when a message
    has arrived or the worker is lost.
    """

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
        """Set the worker's message, and call `hear`."""
        self.message = message
        self.hear(self)

    def lose(self) -> None:
        """Note that the worker is lost, and drop its last message."""
        self.message, self.lost = None, True
        self.hear(self)

    def take(self) -> OpenRequest | UnitOutcome:
        """Return the message, and update the rollout from it."""
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
