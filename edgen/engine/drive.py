"""Drives tasks online: a bounded set of workers, each running one task's generator at a time.

A worker takes the next task, feeds it from the ledger where the ledger knows the answer and from the
backend where not, stores every answer before the task sees it, and settles the outcome. A bad answer
is data; only bugs raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from edgen.engine.line import Line
from edgen.engine.tally import Tally
from edgen.engine.task import Settled, Spent, Task, Tasks
from edgen.errors import FATAL, CallError, EdgenError, FailureKind, ProviderError
from edgen.ledger import Ledger, Outcome
from edgen.limits import Admission, AdmissionClosed
from edgen.model import Reply, Request, Status

GRACE = 30.0  # seconds that calls in flight are given to end once the run is to stop
MOST_WAITING = 16  # workers that may wait for one, as far as more workers are made for that
MOST_WORKERS = 8192
SLACK = 256  # workers beyond the calls in flight: their answers wait for the disk


class Driver:
    """Runs tasks until they are all settled or something stops the run."""

    def __init__(
        self,
        tasks: Tasks,
        lines: Mapping[str, Line],
        ledger: Ledger,
        fingerprint: str,
        tally: Tally,
        *,
        grace: float = GRACE,
    ) -> None:
        self.tally = tally
        self._tasks = tasks
        self._lines = lines
        self._ledger = ledger
        self._fingerprint = fingerprint
        self._grace = grace
        self._stop_after = tasks.job.limits.stop_after_failures
        # Those that failed since the last answer. What several of one index wait for fails for all of them.
        self._failed_in_a_row: set[int] = set()
        self._simulated = False
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

    def stop(self, reason: EdgenError) -> None:
        """Admit nothing more; calls in flight may end. The first reason counts."""
        if self._reason is not None:
            return
        self._reason = reason
        self._stopping.set()
        for admission in self._admissions:
            admission.close()
        for task in list(self._backing_off):
            task.cancel()

    def hurry(self) -> None:
        """End the wait for calls in flight."""
        self._grace = 0.0

    async def run(self, units: Iterator[tuple[int, int]]) -> None:
        """Work through (index, replicate) pairs. Raises the reason if the run was stopped."""
        count = self._tasks.job.limits.in_flight * len(self._admissions) + SLACK
        if self._tasks.shares:  # most of a scenario's replicates wait for what the first of them asks
            count = min(count * min(self._tasks.job.replicates, MOST_WAITING), max(count, MOST_WORKERS))
        workers = [asyncio.create_task(self._work(units)) for _ in range(count)]
        everybody = asyncio.gather(*workers)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            either: set[asyncio.Future[Any]] = {everybody, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not everybody.done():
                await self._let_end(everybody)
        finally:
            for task in (*workers, stopping):
                task.cancel()
            await asyncio.gather(*workers, stopping, return_exceptions=True)
        if everybody.done() and not everybody.cancelled():
            everybody.result()  # a worker's bug, if there was one
        if self._reason is not None:
            raise self._reason

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
            except EdgenError as error:
                self.stop(error)
                return

    async def _do(self, index: int, replicate: int) -> None:
        task = self._tasks.task(index, replicate)
        protocol = task.protocol
        known = self._ledger.replies(index, replicate)
        spent = Spent()
        step: Callable[[Any], Request] = protocol.send
        given: Any = None
        role = "default"
        try:
            while True:
                try:
                    request = step(given)
                except StopIteration as end:
                    result = end.value
                    break
                role = request.role
                line = self._lines[role]
                key = line.key(request)
                stored = known.get(key) if known else None
                try:
                    if stored is not None:
                        given = stored
                    elif self._tasks.shares:
                        given = await self._ask_once(line, request, key)
                    else:
                        given = await self._ask(line, request, key)
                except CallError as failure:
                    # The protocol may know better than to fail: what it asked last may be what is wrong.
                    step, given = protocol.throw, failure
                    continue
                if stored is not None:
                    self.tally.replayed += 1
                spent.add(given, key, request.role, line.kind, line.backend.model)
                step = protocol.send
        except CallError as failure:
            self._failed(index, replicate, task, failure, spent, role)
            return
        finally:
            protocol.close()
        if spent.simulated and not self._simulated:
            self._simulated = True
            self._ledger.set_fact("simulated", self._fingerprint)
        self._note(index, replicate, task, task.settled(result, spent), spent)

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
        tally = self.tally
        answer = await line.ask(request, self._on_retry, self._on_attempt)
        reply = answer.reply
        await self._ledger.store(
            request.address,
            key,
            reply,
            answer.latency,
            answer.tries,
            charged_tokens=answer.charged_tokens,
            cost_usd=answer.cost_usd,
        )
        self._failed_in_a_row.clear()
        tally.made += 1
        if reply.usage is not None:
            tally.prompt_tokens += reply.usage.prompt_tokens
            tally.completion_tokens += reply.usage.completion_tokens
        if answer.cost_usd is not None:
            tally.cost_usd = (tally.cost_usd or 0.0) + answer.cost_usd
        return reply

    def _on_retry(self, _failure: CallError, _wait: float) -> None:
        self.tally.retried += 1
        task = asyncio.current_task()
        if task is not None:
            self._backing_off.add(task)
            if self._reason is not None:
                task.cancel()

    def _on_attempt(self) -> None:
        if self._backing_off:
            self._backing_off.discard(asyncio.current_task())

    def _failed(
        self, index: int, replicate: int, task: Task, failure: CallError, spent: Spent, role: str
    ) -> None:
        if failure.kind in FATAL:
            which = "" if role == "default" else f"Backend {role}: "
            self.stop(ProviderError(f"{which}{advice(failure)} {_GO_ON}"))
            return
        self._failed_in_a_row.add(index)
        settled = Settled(Status.FAILED, str(failure.kind), failure.message)
        self._note(index, replicate, task, settled, spent)
        if len(self._failed_in_a_row) >= self._stop_after:
            self.stop(
                ProviderError(
                    f"{len(self._failed_in_a_row)} scenarios in a row got no answer, the last with "
                    f"{_clause(failure)}. The run stopped rather than go on for nothing. See what is wrong with "
                    f"`edgen doctor JOB`. {_GO_ON}"
                )
            )

    def _note(self, index: int, replicate: int, task: Task, settled: Settled, spent: Spent) -> None:
        outcome = Outcome(
            index, replicate, settled.status, settled.reason, settled.detail, task.group, spent.key
        )
        self._ledger.settle(outcome, self._fingerprint, settled.record)
        self.tally.settle(settled.status, settled.reason)


_GO_ON = "Then start the same command again: it goes on where it stopped."
_ADVICE = {
    FailureKind.AUTHENTICATION: "The key is missing or not accepted: check the environment variable that the job names.",
    FailureKind.PERMISSION: "The key may not use this model or service: check its project and permissions.",
    FailureKind.QUOTA: "The account's quota or credit is used up: raise it, or wait until it is renewed.",
    FailureKind.NOT_FOUND: "The model or the path does not exist there: check `model` and `base_url` in the job.",
    FailureKind.BAD_REQUEST: "The request as it stands is not taken: check the backend's parameters and `extra_body`.",
    FailureKind.CONTEXT_OVERFLOW: "The prompt is too long for the model: shorten the template, or give it more context.",
}


def advice(failure: CallError) -> str:
    """A failure, and what a person can do about it."""
    what = _ADVICE.get(failure.kind, "Check that the service runs and that `base_url` is right.")
    return f"The service refused: {_clause(failure)}. {what}"


def _clause(failure: CallError) -> str:
    return str(failure).rstrip(" .?!")
