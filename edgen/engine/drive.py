"""Drives tasks online: a bounded set of workers, each running one task's generator at a time.

A worker takes the next task, feeds it from the ledger where the ledger knows the answer and from the
backend where not, stores every answer before the task sees it, and settles the outcome. A bad answer
is data; only bugs raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from edgen.engine.line import Answer, Line
from edgen.engine.silence import Silence
from edgen.engine.tally import Tally
from edgen.engine.task import Tasks
from edgen.engine.walk import Ends, Walk
from edgen.errors import CallError, EdgenError
from edgen.ledger import Ledger
from edgen.limits import Admission, AdmissionClosed, BudgetExhausted
from edgen.model import Reply, Request

GRACE = 30.0  # seconds that calls in flight are given to end once the run is to stop
MOST_WAITING = 16  # workers that may wait for one, as far as more workers are made for that
MOST_WORKERS = 8192
_SHARE = 8  # the part of the calls in flight whose answers may wait for one commit
SLACK = 256  # workers beyond the calls in flight: those that wait to try again hold up nobody


class Driver:
    """Runs tasks until they are all settled or something stops the run. `say` is told what a person should know
    of meanwhile."""

    def __init__(
        self,
        tasks: Tasks,
        lines: Mapping[str, Line],
        ledger: Ledger,
        fingerprint: str,
        tally: Tally,
        *,
        grace: float = GRACE,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.tally = tally
        self._say = say
        self._tasks = tasks
        self._lines = lines
        self._ledger = ledger
        self._grace = grace
        self._ends = Ends(ledger, fingerprint, tally, self.stop, tasks.job.limits.stop_after_failures)
        self._reason: EdgenError | None = None
        self._stopping = asyncio.Event()
        self._backing_off: set[asyncio.Task[Any]] = set()
        # Shared requests that are being asked now, each with those who wait for the same answer.
        self._asking: dict[bytes, list[asyncio.Future[Reply]]] = {}

    @property
    def stopped(self) -> EdgenError | None:
        """Why the run stops, None while it goes on."""
        return self._reason

    @property
    def in_flight(self) -> int:
        """Calls that the backends work on now."""
        return sum(admission.running for admission in self._admissions)

    @property
    def paused_for(self) -> float:
        """Seconds that a service has asked to wait, 0 if none has."""
        return max(admission.paused_for for admission in self._admissions)

    @property
    def _admissions(self) -> set[Admission]:
        return {line.admission for line in self._lines.values()}

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Admit nothing more; calls in flight may end, in `grace` seconds (None: the usual). The first reason
        counts."""
        if self._reason is not None:
            return
        self._reason = reason
        if grace is not None:
            self._grace = grace
        self._stopping.set()
        for admission in self._admissions:
            admission.close()
        for task in list(self._backing_off):
            task.cancel()

    def hurry(self) -> None:
        """End the wait for calls in flight, and for a database that another program holds."""
        self._grace = 0.0
        self._ledger.writer.hurry()

    async def run(self, units: Iterator[tuple[int, int]]) -> None:
        """Work through (index, replicate) pairs. Raises the reason if the run was stopped."""
        count = self._tasks.job.limits.in_flight * len(self._admissions) + SLACK
        if self._tasks.shares:  # most of a scenario's replicates wait for what the first of them asks
            count = min(count * min(self._tasks.job.replicates, MOST_WAITING), max(count, MOST_WORKERS))
        # Answers hold their calls' places until they are stored: so many may wait for others to share their commit.
        self._ledger.writer.enough = max(1, self._tasks.job.limits.in_flight // _SHARE)
        workers = [asyncio.create_task(self._work(units)) for _ in range(count)]
        everybody = asyncio.gather(*workers)
        stopping = asyncio.create_task(self._stopping.wait())
        listening = asyncio.create_task(self._listen())
        try:
            either: set[asyncio.Future[Any]] = {everybody, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not everybody.done():
                await self._let_end(everybody)
        finally:
            for task in (*workers, stopping, listening):
                task.cancel()
            await asyncio.gather(*workers, stopping, listening, return_exceptions=True)
        if everybody.done() and not everybody.cancelled():
            everybody.result()  # a worker's bug, if there was one
        self._ends.over(silent=any(line.begun > 1 for line in self._lines.values()))
        if self._reason is not None:
            raise self._reason

    async def _listen(self) -> None:
        """Stop the run at once where a service answers nothing any more."""
        limits = self._tasks.job.limits
        silence = Silence(self._lines, limits)
        clock = asyncio.get_running_loop().time
        while self._reason is None:
            await asyncio.sleep(silence.every)
            if (reason := silence.look(clock())) is not None:
                self.stop(reason, grace=0.0)
            for text in silence.gone_away():
                self._say(text)

    async def _let_end(self, everybody: asyncio.Future[list[None]]) -> None:
        """Wait for the workers' calls in flight, as long as the grace lasts; `hurry` ends it."""
        clock = asyncio.get_running_loop().time
        started = clock()
        while not everybody.done() and clock() - started < self._grace:
            await asyncio.wait({everybody}, timeout=0.1)

    async def _work(self, units: Iterator[tuple[int, int]]) -> None:
        for index, replicate in units:
            if self._reason is not None:
                return
            try:
                await self._do(index, replicate)
            except AdmissionClosed:
                return
            except asyncio.CancelledError:
                if self._reason is None:
                    raise
                return
            except BudgetExhausted as error:
                # What is in flight is paid for: it may take as long as calls may.
                self.stop(error, self._tasks.job.limits.timeout)
                return
            except EdgenError as error:
                self.stop(error)
                return

    async def _do(self, index: int, replicate: int) -> None:
        walk = Walk(self._tasks.task(index, replicate))
        known = self._ledger.replies(index, replicate)
        try:
            request = walk.start()
            while request is not None:
                line = self._lines[request.role]
                key = line.key(request)
                reply = known.get(key) if known else None
                if reply is not None:
                    self.tally.replayed += 1
                else:
                    try:
                        reply = await (self._ask_once if self._tasks.shares else self._ask)(
                            line, request, key
                        )
                    except CallError as failure:
                        request = walk.fail(failure)
                        continue
                request = walk.answer(reply, key, line)
        except CallError as failure:
            self._ends.fail(index, replicate, walk, failure)
            return
        finally:
            walk.close()
        self._ends.settle(index, replicate, walk)

    async def _ask_once(self, line: Line, request: Request, key: bytes) -> Reply:
        """Ask what several tasks may want to know: whoever comes first asks, the others get the answer."""
        if (waiting := self._asking.get(key)) is not None:
            answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            waiting.append(answer)
            return await answer
        if (stored := self._ledger.reply(request.address, key)) is not None:
            return stored
        waiting = self._asking[key] = []
        try:
            reply = await self._ask(line, request, key)
        except BaseException as problem:
            told = problem if isinstance(problem, CallError) else AdmissionClosed()
            for other in waiting:
                if not other.done():
                    other.set_exception(told)
            raise
        finally:
            del self._asking[key]
        for other in waiting:
            if not other.done():
                other.set_result(reply)
        return reply

    async def _ask(self, line: Line, request: Request, key: bytes) -> Reply:
        """Ask and store. Returns when the answer is on the disk."""
        store = partial(self._store, request, key)
        return (await line.ask(request, self._on_retry, self._on_attempt, key, store)).reply

    async def _store(self, request: Request, key: bytes, answer: Answer) -> None:
        tally, reply = self.tally, answer.reply
        await self._ledger.store(
            request.address,
            key,
            reply,
            answer.latency,
            answer.tries,
            charged_tokens=answer.charged_tokens,
            cost_usd=answer.cost_usd,
            held=answer.held,
        )
        self._ends.answered()
        tally.made += 1
        if reply.usage is not None:
            tally.prompt_tokens += reply.usage.prompt_tokens
            tally.completion_tokens += reply.usage.completion_tokens
        if answer.cost_usd is not None:
            tally.cost_usd = (tally.cost_usd or 0.0) + answer.cost_usd

    def _on_retry(self, failure: CallError, _wait: float) -> None:
        self.tally.retried += 1
        self.tally.retried_by[str(failure.kind)] += 1
        task = asyncio.current_task()
        if task is not None:
            self._backing_off.add(task)
            if self._reason is not None:
                task.cancel()

    def _on_attempt(self) -> None:
        if self._backing_off:
            self._backing_off.discard(asyncio.current_task())
