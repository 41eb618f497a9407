"""A rollout that runs at a worker, as the head sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from edgen.core.values import Reply, Request
from edgen.execution.client.model_client import ModelClient
from edgen.execution.cluster.messages import Asked, Ended, Unit
from edgen.protocols.task import Settled, Spent

if TYPE_CHECKING:
    from edgen.execution.cluster.pool import WorkerLink


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
