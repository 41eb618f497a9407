"""Online scheduler: a bounded set of workers, each with one task at a time.

A worker takes the next task, requests answers that the ledger lacks, and stores each before the task sees it.
A bad answer is data; only bugs raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any

from edgen.core import registry
from edgen.core.errors import CallError, EdgenError, StoppedError, UselessError
from edgen.core.plugins.faults import find_fault, refuse_value
from edgen.core.values import Address, Reply, Request, TaskId
from edgen.execution.batch.open_batches import open_batches_error
from edgen.execution.client.admission import Admission, AdmissionClosed
from edgen.execution.client.budget import BudgetExhausted
from edgen.execution.client.call import Answer, Call
from edgen.execution.joined_calls import CallPlace, JoinedCalls, share_out
from edgen.execution.rollout import AnyRollout, OutcomeRecorder, run_task
from edgen.execution.scheduler import Work
from edgen.execution.watchdog import Watchdog
from edgen.store.ledger import OPEN
from edgen.store.ledger.facts import WorkerCounts

GRACE = 30.0  # seconds for calls in flight to end once the run stops
UNPAID_GRACE = 3.0  # seconds, if none of them is paid for
MOST_WAITING = 16  # workers that may wait for one, as far as extra workers are created for that
MOST_WORKERS = 8192
_SHARE = 8  # fraction of the calls in flight whose answers may share one commit
SLACK = 256  # extra workers: those that wait for a retry do not block others


class OnlineScheduler:
    """A Scheduler that makes single calls."""

    def __init__(self, work: Work) -> None:
        self.stopped: EdgenError | None = None
        self._work = work
        self._limits = work.tasks.call_settings.limits
        self._grace, self._share = GRACE, _SHARE
        self._recorder = OutcomeRecorder(work, self.stop)
        self._stopping = asyncio.Event()
        self._asking: dict[bytes, asyncio.Future[Reply]] = {}  # running shared requests
        several = any(client.most_choices > 1 for client in work.clients.values())
        self._joined = JoinedCalls(work, self._ask_for) if several else None
        self._asker = self._ask_once if work.tasks.sharers > 1 else self._ask

    @property
    def in_flight(self) -> int:
        """The number of calls running at the backends."""
        return sum(client.in_flight for client in {*self._work.clients.values()})

    @property
    def workers(self) -> Mapping[str, WorkerCounts]:
        """The worker processes: none."""
        return {}

    @property
    def paused_for(self) -> float:
        return max(admission.paused_for for admission in self._admissions)

    @property
    def _admissions(self) -> set[Admission]:
        return {client.admission for client in self._work.clients.values()}

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Admit no more calls; calls in flight may end within `grace` seconds (None: the default), and within
        UNPAID_GRACE if none is paid for. The first reason counts."""
        if self.stopped is not None:
            return
        self.stopped = reason
        if grace is None and isinstance(reason, UselessError):
            grace = self._limits.timeout  # calls in flight are paid for
        if grace is not None:
            self._grace = grace
        self._stopping.set()
        # Hopeless work stops alone: concurrent work continues with the same services.
        alone = isinstance(reason, UselessError) and len(self._work.beside) > 1
        for client in self._work.clients.values():
            client.close(shared=alone)
        for other in () if alone else self._work.beside:
            other.stop(reason, grace)

    def hurry(self) -> None:
        """End the wait for calls in flight, and for a database held by another program."""
        self._grace = 0.0
        self._work.ledger.writer.hurry()

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Run the units; see Scheduler."""
        in_flight, sharers = self._limits.in_flight, self._work.tasks.sharers
        count = in_flight * len(self._admissions) + SLACK
        if sharers > 1:  # most of a scenario's replicates wait for the first one's request
            count = min(count * min(sharers, MOST_WAITING), max(count, MOST_WORKERS))
        # Answers hold their calls' places until stored: this many may wait to share a commit.
        self._work.ledger.writer.enough = max(1, in_flight // self._share)
        everybody = asyncio.create_task(self._run_all(units, count))
        listening = asyncio.create_task(self._listen())
        try:
            await self._wait_until_stopped(everybody)
            await self._let_end(everybody)
        except asyncio.CancelledError:
            # As with any stop, calls in flight are paid for and kept; a second cancellation ends the wait.
            self.stop(StoppedError("The task was cancelled."))
            await self._let_end(everybody)
            raise
        finally:
            for task in (everybody, listening):
                task.cancel()
            await asyncio.gather(everybody, listening, return_exceptions=True)
        if everybody.done() and not everybody.cancelled():
            everybody.result()  # raises a worker's bug
        elif everybody.cancelled() and self.stopped is None:
            self._refuse_cancellation()
        self._recorder.end(silent=any(client.begun > 1 for client in self._work.clients.values()))
        if self.stopped is not None:
            raise self.stopped

    def _refuse_cancellation(self) -> None:
        """Raise for work that was cancelled though nobody stopped it: by a plugin, if one answers calls."""
        for kind in sorted({client.kind for client in self._work.clients.values()}):
            if registry.find_plugin("provider", kind) is not None:
                refuse_value("provider", kind, "cancelled the task that awaits its answer")
        raise RuntimeError("the work was cancelled from inside")

    async def _wait_until_stopped(self, work: asyncio.Future[Any]) -> None:
        """Wait until the work is done, or the run is stopped."""
        stopping = asyncio.create_task(self._stopping.wait())
        either: set[asyncio.Future[Any]] = {work, stopping}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _listen(self) -> None:
        """Stop the run as soon as a service has fallen silent."""
        watchdog = Watchdog(self._work.clients, self._limits)
        clock = asyncio.get_running_loop().time
        while self.stopped is None:
            await asyncio.sleep(watchdog.every)
            if (reason := watchdog.look(clock())) is not None:
                self.stop(reason, grace=0.0)
            for text in watchdog.list_unreachable():
                self._work.events.tell("note", text)

    async def _let_end(self, everybody: asyncio.Future[None]) -> None:
        """Wait for calls in flight until the grace period ends; `hurry` ends it."""
        clock = asyncio.get_running_loop().time
        started = clock()
        while not everybody.done() and clock() - started < self._compute_patience():
            await asyncio.wait({everybody}, timeout=0.1)

    def _compute_patience(self) -> float:
        """Return the grace period of what is in flight now: it is short for calls that cost nothing."""
        at_work = [client for client in self._work.clients.values() if client.in_flight]
        unstored = any(admission.unstored for admission in self._admissions)
        short = at_work and not unstored and all(client.unpaid for client in at_work)
        return min(self._grace, UNPAID_GRACE) if short else self._grace

    async def _run_all(self, units: Iterator[tuple[int, TaskId]], at_once: int) -> None:
        """Run all units, so many at once; begin none once the run is stopped."""
        workers = [asyncio.create_task(self._run_tasks(units)) for _ in range(at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _run_tasks(self, units: Iterator[tuple[int, TaskId]]) -> None:
        for unit in units:
            if self.stopped is not None:
                return
            try:
                await run_task(self._work, self._recorder, unit, self._asker)
            except asyncio.CancelledError:
                if self.stopped is None:
                    raise
                return
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug is raised again
                self.stop_for(error)
                return

    def stop_for(self, error: BaseException) -> None:
        """Stop for an error of a unit. Raises it if it is a bug."""
        if isinstance(error, AdmissionClosed):
            return
        if isinstance(error, BudgetExhausted):
            # Calls in flight are paid for: let them use their full timeout.
            self.stop(error, self._limits.timeout)
        elif isinstance(error, EdgenError):
            self.stop(error)
        elif (fault := find_fault(error)) is not None:
            fault.__cause__ = error
            self.stop(fault)  # calls in flight are paid for and kept
        else:
            raise error

    async def _ask_once(self, rollout: AnyRollout, request: Request) -> Reply:
        """Send a request that several tasks share once, and return its answer to all."""
        key = rollout.key
        if (asked := self._asking.get(key)) is not None:
            return await asyncio.shield(asked)  # a waiter that stops leaves the others waiting
        if (stored := self._work.ledger.read_reply(request.address, key)) is not None:
            return stored
        asked = self._asking[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._ask(rollout, request)
        except BaseException as problem:
            asked.set_exception(problem if isinstance(problem, CallError) else AdmissionClosed())
            asked.exception()  # retrieve it, since there may be no waiter
            raise
        finally:
            del self._asking[key]
        asked.set_result(reply)
        return reply

    def _ask(self, rollout: AnyRollout, request: Request) -> Awaitable[Reply]:
        """Send a request and store the answer; return when it is on disk."""
        if self._joined is not None and rollout.client.most_choices > 1:
            return self._joined.ask(rollout, request)
        return self._ask_for(rollout, request, (CallPlace(request.address, rollout.key),))

    async def _ask_for(
        self,
        rollout: AnyRollout,
        request: Request,
        places: Sequence[CallPlace],
        failed: tuple[Call, CallError] | None = None,
    ) -> Reply:
        """Request an answer for each place, the rollout's own first, and store the results. `failed`: see
        ModelClient.ask."""
        stored: list[tuple[Address, bytes, Reply, int, float | None]] = []

        def store(answer: Answer) -> Awaitable[None]:
            if answer.reply.others:
                shares = share_out(answer, places, rollout.client.charges.compute_most_cost)
                stored.extend((*one.place, one.reply, one.charged_tokens, one.cost_usd) for one in shares)
            else:
                stored.append((*places[0], answer.reply, answer.charged_tokens, answer.cost_usd))
            return self._work.ledger.store_several(stored, answer.latency, answer.tries, answer.held)

        await rollout.client.ask(request, self._on_retry, rollout.key, store, failed)
        self._recorder.note_answer()
        for _, _, reply, _, cost_usd in stored:
            self._work.counts.add_answer(reply.usage, cost_usd)
        return stored[0][2]

    def _on_retry(self, failure: CallError) -> None:
        self._work.counts.retried += 1
        self._work.counts.retried_by[str(failure.kind)] += 1


def make_online_scheduler(work: Work) -> OnlineScheduler:
    """Return the scheduler for single calls. Raises UsageError while batches of the ledger are
    outstanding."""
    if waiting := work.ledger.list_batches(*OPEN):
        raise open_batches_error(waiting)
    return OnlineScheduler(work)
