"""The client for backends that are people: no limits, retries or budget apply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from edgen.core.errors import CallError, FailureKind
from edgen.core.pictures import refuse_pictures
from edgen.core.values import Request
from edgen.execution.client.admission import AdmissionClosed
from edgen.execution.client.backend_calls import complete_once
from edgen.execution.client.call import Answer, Call
from edgen.execution.client.model_client import ModelClient


class PersonClient(ModelClient):
    """A client whose answers come from people. `stand_ins`: clients that answer for a person who left."""

    stand_ins: tuple[ModelClient, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asked: set[asyncio.Task[Any]] = set()  # tasks that wait for a person

    @property
    def in_flight(self) -> int:
        """The number of requests that wait for people."""
        return len(self._asked)

    @property
    def out(self) -> int:
        """Always 0: a person may think for hours, and the watchdog must not take this for a silent
        service."""
        return 0

    def make_plain_call(self, request: Request, key: bytes) -> None:
        """Return None: a call waits for a person."""

    def close(self, *, shared: bool = False) -> None:
        """Begin no more requests, and stop waiting; waiting requests stay in the mailbox."""
        super().close(shared=shared)
        for task in list(self._asked):
            task.cancel()
        for other in self.stand_ins:
            other.close(shared=shared)

    async def ask(
        self,
        request: Request,
        on_retry: Callable[[CallError], None] = lambda _failure: None,
        key: bytes = b"",
        store: Callable[[Answer], Awaitable[None]] | None = None,
        failed: tuple[Call, CallError] | None = None,
    ) -> Answer:
        """Return a person's answer, without cost or time limit. A stand-in answers for a person who left.
        Raises CallError if there is no stand-in."""
        assert failed is None, "a person is asked in a task"
        if self._no_pictures is not None:
            refuse_pictures(request.messages, self._no_pictures)
        if self._closed:
            raise AdmissionClosed
        task = asyncio.current_task()
        assert task is not None, "a call is made in a task"
        clock = asyncio.get_running_loop().time
        started = clock()
        self._asked.add(task)
        try:
            reply = await complete_once(self.backend, self.kind, request)
        except CallError as failure:
            if failure.kind is not FailureKind.LEFT or not self.stand_ins:
                raise
            self._asked.discard(task)
            return await self.stand_ins[0].ask(request, on_retry, key, store)
        finally:
            self._asked.discard(task)
        self.answers += 1
        # 0 tries: the ledger recognizes a person's answer by this.
        answer = Answer(reply, clock() - started, 0, 0, 0.0)
        if store is not None:
            await store(answer)
        return answer
