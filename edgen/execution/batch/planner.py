"""One round of batches: every pending task is run from the ledger to its first request without an answer.

What has all its answers is settled; what has not is written to the file of its backend.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator

from edgen.core.errors import most_attempts
from edgen.core.values import Reply, Request, TaskId
from edgen.execution.batch.writer import RequestWriter
from edgen.execution.client.budget import BudgetExhausted
from edgen.execution.client.model_client import ModelClient
from edgen.execution.rollout import OutcomeRecorder, Rollout, run_task
from edgen.execution.scheduler import Work
from edgen.store.ledger import OPEN, Batch

_BREATH = 50  # tasks that are run before others get their turn


class WaitingTasks:
    """(scenario, task) of each task that waits for answers, in little memory: they are as many as the run has
    conversations."""

    def __init__(self, units: Iterable[tuple[int, TaskId]]) -> None:
        self._scenarios = array("q")
        self._tasks: list[TaskId] = []
        for scenario, task in units:
            self._scenarios.append(scenario)
            # The same few names come with every scenario: one object for each is enough.
            self._tasks.append(sys.intern(task) if isinstance(task, str) else task)

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[tuple[int, TaskId]]:
        return zip(self._scenarios, self._tasks, strict=True)

    def __setitem__(self, place: int, unit: tuple[int, TaskId]) -> None:
        self._scenarios[place], self._tasks[place] = unit

    def cut(self, count: int) -> None:
        """Keep the first `count` alone."""
        del self._scenarios[count:], self._tasks[count:]


class RoundPlanner:
    """Plans one round. `make_writer` makes what writes the requests of a backend. `short` is what the budget did not
    cover, if anything; `asked` counts the requests written."""

    def __init__(
        self, work: Work, recorder: OutcomeRecorder, make_writer: Callable[[ModelClient], RequestWriter]
    ) -> None:
        self.short: BudgetExhausted | None = None
        self.asked = 0
        self._work = work
        self._recorder = recorder
        self._make_writer = make_writer
        self._shares = work.tasks.sharers > 1
        self._attempts = work.tasks.call_settings.limits.attempts
        self._open = bool(work.ledger.out.batches(*OPEN))
        self._shared: set[bytes] = set()  # asked in this round, where tasks ask one another's requests
        self._writers: dict[str, RequestWriter] = {}

    async def run(self, pending: WaitingTasks) -> list[Batch]:
        """Go through units; `pending` keeps those that still wait. Returns the batches made, ready to be sent."""
        left = 0
        try:
            for count, unit in enumerate(pending):
                if count % _BREATH == 0:
                    await asyncio.sleep(0)
                if not await run_task(self._work, self._recorder, unit, self._ask):
                    pending[left] = unit
                    left += 1
            for writer in self._writers.values():
                await writer.close()
        finally:
            for writer in self._writers.values():
                writer.abandon()
        pending.cut(left)
        await self._work.ledger.flush()
        return [batch for writer in self._writers.values() for batch in writer.made]

    async def _ask(self, rollout: Rollout, request: Request) -> Reply | None:
        """Have a request asked in this round, unless it has failed for good, or another task's answer serves."""
        ledger, key = self._work.ledger, rollout.key
        if self._shares and (reply := ledger.reply(request.address, key)) is not None:
            self._work.counts.replayed += 1
            return reply
        tries, failure = ledger.out.failure(request.address, key) or (0, None)
        if failure is not None and tries >= most_attempts(failure.kind, self._attempts):
            raise failure
        if key in self._shared or (self._open and ledger.out.has(request.address, key)):
            return None
        await self._write(rollout.client, request, key, again=tries > 0)
        return None

    async def _write(self, client: ModelClient, request: Request, key: bytes, *, again: bool) -> None:
        """Write a request to the file of its backend. Raises CallError where it cannot be written."""
        writer = self._writers.get(client.name)
        if writer is None:
            writer = self._writers[client.name] = self._make_writer(client)
        refused = await writer.add(request, key)
        if refused is not None:
            self.short = refused
            return
        self.asked += 1
        self._work.counts.retried += again
        if self._shares:
            self._shared.add(key)
