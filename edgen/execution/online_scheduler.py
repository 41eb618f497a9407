"""A scheduler for single calls: a bounded set of workers, each with one task at a time.

A worker takes the next task, requests answers that the ledger lacks, and stores each before the task sees it.
A bad answer is data; only bugs raise. `Watchdog` finds services that have been silent for too long.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from edgen.config import Limits
from edgen.core.errors import CallError, EdgenError, ProviderError, StoppedError, UselessError
from edgen.core.plugins.cancelling import refuse_cancellation
from edgen.core.plugins.faults import find_fault
from edgen.core.values import Address, Reply, Request, TaskId
from edgen.execution.client.admission import Admission, AdmissionClosed
from edgen.execution.client.budget import BudgetExhausted
from edgen.execution.client.call import Answer, Call
from edgen.execution.client.model_client import ModelClient
from edgen.execution.client.person_client import PersonClient
from edgen.execution.failure_texts import (
    make_backend_prefix,
    make_silence_error,
    make_unreachable_error,
    write_away_note,
)
from edgen.execution.joined_calls import CallPlace, JoinedCalls, SharedCalls, split_choices
from edgen.execution.open_batches import open_batches_error
from edgen.execution.rollout import (
    AnyRollout,
    OutcomeRecorder,
    run_task,
)
from edgen.execution.scheduler import Work
from edgen.store.ledger import OPEN
from edgen.store.ledger.facts import WorkerCounts

GRACE = 30.0  # seconds that calls in flight may take after the run stops
UNPAID_GRACE = 3.0  # the same if none of them costs money
MOST_WAITING = 16  # maximum factor of extra workers, for replicates that wait for a shared request
MOST_WORKERS = 8192
_SHARE = 8  # 1/_SHARE of the calls in flight may share one commit
SLACK = 256  # maximum of extra workers, in place of those that wait for a retry


class OnlineScheduler:
    """A Scheduler that makes single calls."""

    def __init__(self, work: Work) -> None:
        self.stopped: EdgenError | None = None
        self._work = work
        self._limits = work.tasks.call_settings.limits
        self._grace, self._share = GRACE, _SHARE
        self._recorder = OutcomeRecorder(work, self.stop)
        self._stopping = asyncio.Event()
        several = any(client.most_choices > 1 for client in work.clients.values())
        self._joined = JoinedCalls(work, self._ask_for) if several else None
        self._asker = SharedCalls(work, self._ask).ask if work.tasks.sharers > 1 else self._ask
        self._workers = Workers()

    @property
    def in_flight(self) -> int:
        """The number of calls running at the backends."""
        return sum(client.in_flight for client in {*self._work.clients.values()})

    @property
    def workers(self) -> Mapping[str, WorkerCounts]:
        """The worker processes; always empty."""
        return {}

    @property
    def paused_for(self) -> float:
        return max(admission.paused_for for admission in self._admissions)

    @property
    def _admissions(self) -> set[Admission]:
        return {client.admission for client in self._work.clients.values()}

    def stop(self, reason: EdgenError, grace: float | None = None) -> None:
        """Admit no more calls. Calls in flight get `grace` seconds (None: the default); at most UNPAID_GRACE
        if none costs money. Only the first reason counts."""
        if self.stopped is not None:
            return
        self.stopped = reason
        if grace is None and isinstance(reason, UselessError):
            grace = self._limits.timeout  # calls in flight are paid for
        if grace is not None:
            self._grace = grace
        self._stopping.set()
        # Useless answers stop only this scheduler: concurrent ones continue with the same services.
        alone = isinstance(reason, UselessError) and len(self._work.schedulers) > 1
        for client in self._work.clients.values():
            client.close(shared=alone)
        for other in () if alone else self._work.schedulers:
            other.stop(reason, grace)

    def stop_waiting(self) -> None:
        """End the wait for calls in flight, and for a database locked by another program."""
        self._grace = 0.0
        self._work.ledger.writer.stop_waiting()

    async def run(self, units: Iterator[tuple[int, TaskId]]) -> None:
        """Run the units; see Scheduler."""
        in_flight, sharers = self._limits.in_flight, self._work.tasks.sharers
        count = in_flight * len(self._admissions) + SLACK
        if sharers > 1:  # most replicates of a scenario wait for a request of the first
            count = min(count * min(sharers, MOST_WAITING), max(count, MOST_WORKERS))
        # Answers hold their calls' places until stored, so only this many wait for a common commit.
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
            refuse_cancellation(client.kind for client in self._work.clients.values())
        self._recorder.end(silent=any(client.begun > 1 for client in self._work.clients.values()))
        if self.stopped is not None:
            raise self.stopped

    async def _wait_until_stopped(self, work: asyncio.Future[Any]) -> None:
        """Wait until the work is done, or the run is stopped."""
        stopping = asyncio.create_task(self._stopping.wait())
        either: set[asyncio.Future[Any]] = {work, stopping}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _listen(self) -> None:
        """Stop the run when a service has fallen silent. Report unreachable services and changed models."""
        watchdog = Watchdog(self._work.clients, self._limits)
        clock = asyncio.get_running_loop().time
        try:
            while self.stopped is None:
                await asyncio.sleep(watchdog.every)
                if (reason := watchdog.check(clock())) is not None:
                    self.stop(reason, grace=0.0)
                for text in (*watchdog.list_unreachable(), *watchdog.list_other_models()):
                    self._work.events.tell("note", text)
        finally:
            for text in watchdog.list_other_models():
                self._work.events.tell("note", text)

    async def _let_end(self, everybody: asyncio.Future[None]) -> None:
        """Wait for calls in flight until the grace period ends; `stop_waiting` ends it."""
        clock = asyncio.get_running_loop().time
        started = clock()
        while not everybody.done() and clock() - started < self._compute_patience():
            await asyncio.wait({everybody}, timeout=0.1)

    def _compute_patience(self) -> float:
        """Return the grace period for the calls now in flight, in seconds; it is short if none costs
        money."""
        at_work = [client for client in self._work.clients.values() if client.in_flight]
        unstored = any(admission.unstored for admission in self._admissions)
        short = at_work and not unstored and all(client.unpaid for client in at_work)
        return min(self._grace, UNPAID_GRACE) if short else self._grace

    async def _run_all(self, units: Iterator[tuple[int, TaskId]], at_once: int) -> None:
        """Run all units, at most `at_once` at a time; begin none after the run is stopped."""
        # Some calls wait from the start, for the places that one commit frees. Where tasks wait for each
        # other's requests, or for people, whose requests hold no places, all workers are needed.
        spare = max(0, SLACK - self._limits.in_flight // self._share)
        shared = self._joined is not None or self._work.tasks.sharers > 1
        by_people = any(isinstance(client, PersonClient) for client in self._work.clients.values())
        await self._workers.run(units, self._run_tasks, at_once, 0 if shared or by_people else spare)

    async def _run_tasks(self, units: Iterator[tuple[int, TaskId]]) -> None:
        try:
            for unit in units:  # reads the ledger, which may fail as a task may
                if self.stopped is not None:
                    return
                await run_task(self._work, self._recorder, unit, self._asker)
        except asyncio.CancelledError:
            if self.stopped is None:
                raise
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a bug is raised again
            self.stop_for(error)

    def stop_for(self, error: BaseException) -> None:
        """Stop the run for an error of a unit. Raises the error if it is a bug."""
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

    def _ask(self, rollout: AnyRollout, request: Request) -> Awaitable[Reply]:
        """Send a request and store the answer; return the reply once it is on disk."""
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
                shares = split_choices(answer, places, rollout.client.charges.compute_most_cost)
                stored.extend((*one.place, one.reply, one.charged_tokens, one.cost_usd) for one in shares)
            else:
                stored.append((*places[0], answer.reply, answer.charged_tokens, answer.cost_usd))
            return self._work.ledger.store(stored, answer.latency, answer.tries, answer.held)

        await rollout.client.ask(request, self._on_retry, rollout.key, store, failed)
        self._recorder.note_answer()
        for _, _, reply, _, cost_usd in stored:
            self._work.counts.add_answer(reply.usage, cost_usd)
        return stored[0][2]

    def _on_retry(self, failure: CallError) -> None:
        self._work.counts.retried += 1
        self._work.counts.retried_by[str(failure.kind)] += 1
        self._workers.note_retry()


def make_online_scheduler(work: Work) -> OnlineScheduler:
    """Return the scheduler for single calls. Raises UsageError while batches of the ledger are
    outstanding."""
    if waiting := work.ledger.list_batches(*OPEN):
        raise open_batches_error(waiting)
    return OnlineScheduler(work)


# -- workers

T = TypeVar("T")

Run = Callable[[Iterator[T]], Coroutine[Any, Any, None]]  # runs units until none is left


class Workers:
    """A set of workers, each a task that takes units from a common iterator. It grows by one when a worker's
    call begins to wait for a retry."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._spare = 0
        self._run_rest: Callable[[], Coroutine[Any, Any, None]]
        self._ended: asyncio.Future[asyncio.Task[None]]

    def note_retry(self) -> None:
        """Start a spare worker, if one is left. Called by a worker."""
        if self._spare:
            self._spare -= 1
            self._start(self._run_rest())

    async def run(self, units: Iterator[T], run: Run[T], at_once: int, spare: int) -> None:
        """Run all units, at most `at_once` at a time, of which `spare` only in place of others. The first
        error of a worker, or its cancellation, cancels the others."""
        # A worker for each of the first units: small runs have far fewer of these than workers.
        first = [*itertools.islice(units, at_once - spare)]
        self._spare = spare if len(first) == at_once - spare else 0
        self._run_rest = lambda: run(units)
        self._ended = asyncio.get_running_loop().create_future()
        for unit in first:
            self._start(run(itertools.chain([unit], units)))
        try:
            if first:
                (await self._ended).result()
        finally:
            self._spare = 0
            rest = [*self._tasks]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        """End the wait at the first error, and when no worker is left."""
        self._tasks.discard(task)
        failed = task.cancelled() or task.exception() is not None
        if (failed or not self._tasks) and not self._ended.done():
            self._ended.set_result(task)


# -- silent services

_LOOKS = 40  # checks within limits.give_up_after
_OFTEN = 1.0  # maximum seconds between two checks
START = 60.0  # seconds to wait for a service that has not answered yet
_STALL = 5  # checks: a longer gap between two is this process's delay, not the service's


class Watchdog:
    """A watcher of the clients, each for itself, since one of two backends may be dead.

    A single unanswered call may be the fault of its prompt, which the retry policy handles. So silence counts
    only if a call was begun after the last answer, and another call is unanswered as well, for at least the
    time of an attempt.

    Time counts while a client has calls in flight or waiting for a retry, unless the service asked to wait.
    Waits for a turn, the rates or the budget do not count.

    An unreachable service (by its circuit) is silent even without calls. If it has never answered, it gets at
    most `START` seconds: a wrong address is more likely than a restart.
    """

    def __init__(self, clients: Mapping[str, ModelClient], limits: Limits) -> None:
        self._give_up_after = limits.give_up_after
        self._attempt = min(limits.timeout, limits.give_up_after)  # seconds
        self.every = min(_OFTEN, limits.give_up_after / _LOOKS)  # seconds
        self._heard = {role: _ClientSilence(client) for role, client in clients.items()}
        self._looked: float | None = None

    def check(self, now: float) -> ProviderError | None:
        """Check the clients, every `every` seconds; `now`: seconds of any one clock. Return the error that
        stops the run; None if there is none."""
        passed = 0.0 if self._looked is None else min(now - self._looked, self.every * _STALL)
        self._looked = now
        for role, heard in self._heard.items():
            # Two checks early rather than late.
            silent, several = (seconds + 2 * self.every for seconds in heard.measure_silence(passed))
            admission = heard.client.admission
            if admission.unreachable:
                patience = self.find_patience(admission)
                if admission.refused_for + 2 * self.every > patience:
                    error = make_silence_error if admission.answered else make_unreachable_error
                    return error(role, heard.client, patience)
            elif silent > self._give_up_after and several > self._attempt:
                return make_silence_error(role, heard.client, self._give_up_after)
        return None

    def find_patience(self, admission: Admission) -> float:
        """Return how many seconds a service may be unreachable before the run stops."""
        return self._give_up_after if admission.answered else min(START, self._give_up_after)

    def list_unreachable(self) -> Iterator[str]:
        """Yield notes on services that have become unreachable, once each."""
        for role, heard in self._heard.items():
            unreachable = heard.client.admission.unreachable
            if unreachable and not heard.told:
                yield write_away_note(role, heard.client, self.find_patience(heard.client.admission))
            heard.told = unreachable

    def list_other_models(self) -> Iterator[str]:
        """Yield notes on services that name another model than before, once each."""
        for role, heard in self._heard.items():
            if (other := heard.client.servers.other_model) and not heard.told_model:
                heard.told_model = True
                yield f"{make_backend_prefix(role)}{other}"


class _ClientSilence:
    """A client's state: its signs of life at the last check, the seconds since they changed, and how many of
    these more than one call was unanswered."""

    def __init__(self, client: ModelClient) -> None:
        self.client = client
        self.told = False  # whether it was reported as unreachable
        self.told_model = False  # whether its change of model was reported
        self._signs = client.signs_of_life
        self._silent = self._several = 0.0

    def measure_silence(self, passed: float) -> tuple[float, float]:
        """Return the seconds of silence, and of several calls' silence, after another `passed` seconds."""
        client = self.client
        if (signs := client.signs_of_life) != self._signs:
            self._signs, self._silent, self._several = signs, 0.0, 0.0
        elif client.out and not client.admission.paused_for and not client.admission.unreachable:
            self._silent += passed
            if client.begun > 1 or (client.begun and client.out > 1):
                self._several += passed
        return self._silent, self._several
