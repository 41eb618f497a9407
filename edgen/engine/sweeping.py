"""One round's sweep: every pending task walked from the ledger to its first request without an answer.

What has all its answers is settled; what has not is written to the file of its backend.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Mapping

from edgen.config import backend_name
from edgen.engine.collecting import Collector
from edgen.engine.line import Line
from edgen.engine.tally import Tally
from edgen.engine.task import Tasks
from edgen.engine.walk import Ends, Walk
from edgen.errors import FATAL, RETRYABLE, CallError
from edgen.ledger import OPEN, REPLICATES, Batch, Ledger
from edgen.limits import BudgetExhausted
from edgen.model import Request

_BREATH = 50  # tasks that are walked before others get their turn


class Sweep:
    """One sweep. `collector` makes what collects the requests of a backend; `healthy`: the round before brought
    answers, so failures are no sign of a service that is gone. `short` is what the budget did not cover, if anything;
    `asked` counts the requests written."""

    def __init__(
        self,
        tasks: Tasks,
        lines: Mapping[str, Line],
        ledger: Ledger,
        ends: Ends,
        tally: Tally,
        collector: Callable[[str, Line], Collector],
        *,
        first: bool,
        healthy: bool,
    ) -> None:
        self.short: BudgetExhausted | None = None
        self.asked = 0
        self._tasks = tasks
        self._lines = lines
        self._ledger = ledger
        self._ends = ends
        self._tally = tally
        self._attempts = tasks.job.limits.attempts
        self._collector = collector
        self._first = first
        self._healthy = healthy
        self._waiting = bool(ledger.out.batches(*OPEN))
        self._shared: set[bytes] = set()  # asked in this round, where tasks ask one another's requests
        self._collectors: dict[str, Collector] = {}

    async def run(self, pending: array[int]) -> list[Batch]:
        """Sweep through units; `pending` keeps those that still wait. Returns the batches made, ready to be sent."""
        left = 0
        try:
            for count, unit in enumerate(pending):
                if count % _BREATH == 0:
                    await asyncio.sleep(0)
                if await self._advance(*divmod(unit, REPLICATES)):
                    pending[left] = unit
                    left += 1
            for collector in self._collectors.values():
                await collector.close()
        finally:
            for collector in self._collectors.values():
                collector.abandon()
        del pending[left:]
        await self._ledger.flush()
        return [batch for collector in self._collectors.values() for batch in collector.made]

    async def _advance(self, index: int, replicate: int) -> bool:
        """Walk one task as far as the ledger leads; whether it still waits for an answer."""
        walk = Walk(self._tasks.task(index, replicate))
        known = self._ledger.replies(index, replicate)
        try:
            request = walk.start()
            while request is not None:
                line = self._lines[request.role]
                key = line.key(request)
                reply = known.get(key)
                if reply is None and self._tasks.shares:
                    reply = self._ledger.reply(request.address, key)
                if reply is not None:
                    self._tally.replayed += self._first
                    request = walk.answer(reply, key, line)
                    continue
                tries, failure = self._ledger.out.failure(request.address, key) or (0, None)
                if failure is None or (failure.kind in RETRYABLE and tries < self._attempts):
                    try:
                        await self._ask(request, key, line, again=tries > 0)
                    except CallError as problem:  # it cannot be written as a request
                        failure = problem
                    else:
                        return True
                request = walk.fail(failure)
        except CallError as failure:
            self._fail(index, replicate, walk, failure)
            return False
        finally:
            walk.close()
        self._ends.settle(index, replicate, walk)
        return False

    def _fail(self, index: int, replicate: int, walk: Walk, failure: CallError) -> None:
        if failure.kind in FATAL:
            self._ledger.out.forgive(FATAL)  # the run stops because of it; the next start asks again
        if self._healthy:
            self._ends.answered()
        self._ends.fail(index, replicate, walk, failure)

    async def _ask(self, request: Request, key: bytes, line: Line, *, again: bool) -> None:
        """Write a request to the file of its backend, unless it is out. Raises CallError where it cannot be
        written."""
        if key in self._shared or (self._waiting and self._ledger.out.has(request.address, key)):
            return
        name = backend_name(self._tasks.job, request.role)
        collector = self._collectors.get(name)
        if collector is None:
            collector = self._collectors[name] = self._collector(name, line)
        refused = await collector.add(request, key)
        if refused is not None:
            self.short = refused
            return
        self.asked += 1
        self._tally.retried += again
        if self._tasks.shares:
            self._shared.add(key)
