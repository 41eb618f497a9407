"""Supervision of work on ledgers: report each change and, several times a second, the state, until the work
ends or is stopped cleanly.

Meanwhile `FolderWatch` checks that the run's folder is still the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.core.errors import EdgenError, StoppedError, UselessError
from edgen.core.registry import list_foreign_plugins
from edgen.core.system import is_hangup
from edgen.core.text import round_usd
from edgen.core.version import __version__
from edgen.execution.client.admission import Admission
from edgen.execution.client.server_queue import Lane
from edgen.execution.progress import (
    Activity,
    Event,
    Events,
    Flow,
    Snapshot,
    StatusEvent,
    Title,
    UsageCounts,
    add_usage,
    count_usage_before,
)
from edgen.execution.session import Charged, RunSession, make_signal_error
from edgen.runtime.control import Control
from edgen.runtime.deadline import Deadline
from edgen.runtime.loop_watch import watch_loop
from edgen.store.ledger import OPEN, Ledger, describe_lost_replies, sum_charges_at
from edgen.store.locks import FolderWatch
from edgen.store.run_folder import RunFolder

_LOOK_EVERY = 0.25  # seconds
_RATE_EVERY = 1.0
_BATCHES_EVERY = 5.0


def start_event(snapshot: Snapshot, kept: int) -> StatusEvent:
    """Return the first event: the amount of work."""
    planned = snapshot.counts.planned
    facts: dict[str, Any] = {"planned": planned, "pending": planned - kept, "kept": kept}
    facts |= {"pid": os.getpid(), "host": socket.gethostname(), "edgen": __version__}
    return StatusEvent("start", facts=_with_arm(snapshot.title.arm, facts), snapshot=snapshot)


def _with_arm(arm: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {"arm": arm, **facts} if arm else facts


class Monitor:
    """A monitor of one session. Figures that the ledger does not keep (retries by kind, pauses) are of this
    start."""

    def __init__(self, session: RunSession, title: Title, events: Events) -> None:
        self.session = session
        self._title = title
        self._events = events
        self._status = session.ledger.read_status()
        self._before = count_usage_before(self._status)
        self._began = self._looked = time.monotonic()
        self._ended_before = session.counts.ended - session.counts.kept
        self._seen = 0  # number of answers
        self._open: set[tuple[str, str]] = set()  # role and server
        self._rates: dict[tuple[str, str], tuple[int, str]] = {}
        self._retries: Counter[str] = Counter()
        self._next_rate = self._next_batches = 0.0
        self._activity = Activity()
        session.events.listen(lambda event: self._tell(event.name, event.text, **event.facts))

    def start(self) -> None:
        """Report the amount of work."""
        status, tally = self._status, self.session.counts
        known = status.accepted + sum(status.rejected.values())
        same = status.plan.fingerprint == self.session.fingerprint
        self._events.send(start_event(self._make_snapshot(), min(known, tally.planned) if same else 0))
        if count := self.session.ledger.damaged_outcomes:
            self.note(
                f"{self.session.ledger.path}: outcomes of stored answers were damaged in "
                f"{count:,} places. edgen makes them again from the answers, without a call."
            )

    async def watch(self) -> None:
        """Look at intervals until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._look()
            self._send("progress")

    def finish(self) -> None:
        """Look for the last time, before the ledger is closed."""
        self._next_rate = self._next_batches = 0.0
        self._look()
        self._send("finish")

    def say_stage(self, stage: str) -> None:
        """Report a stage after the last answer."""
        self._tell("stage", stage)
        self._send("progress")

    def note(self, text: str) -> None:
        """Report a remark."""
        self._tell("note", text)

    def _tell(self, event: str, text: str = "", /, **facts: Any) -> None:
        self._events.send(Event(event, text, _with_arm(self._title.arm, facts)))

    def _send(self, name: str) -> None:
        self._events.send(StatusEvent(name, snapshot=self._make_snapshot()))

    def _look(self) -> None:
        """Find changes since the last look, and report them."""
        now, tally, admissions = time.monotonic(), self.session.counts, self.session.admissions
        paused = self._activity.paused_seconds
        for role, admission in admissions.items():
            paused += now - self._looked if admission.paused_for > 0 else 0.0
            for server, lane in _name_lanes(admission):
                self._look_at_circuit(role, server, admission, lane)
        last_answer = time.time() if tally.made > self._seen else self._activity.last_answer
        self._seen, self._looked = tally.made, now
        self._activity = msgspec.structs.replace(
            self._activity, paused_seconds=paused, last_answer=last_answer
        )
        if now >= self._next_batches:
            self._next_batches = now + _BATCHES_EVERY
            self._count_batches()
        if now >= self._next_rate:
            self._next_rate = now + _RATE_EVERY
            self._tell_rates(admissions)

    def _look_at_circuit(self, role: str, server: str, admission: Admission, lane: Lane) -> None:
        pause, name = admission.pause_of(lane), (role, server)
        named = {"role": role} | ({"server": server} if server else {})
        left_out = not lane.usable if server else pause > 0
        if left_out and name not in self._open:
            self._open.add(name)
            if server:
                text = f"{server} does not answer; its calls go to the other servers, and it is tried again."
            else:
                text = f"The service asks to wait {pause:.0f} s; nothing is sent to it meanwhile."
            self._tell("circuit_opened", text, **named, seconds=round(pause, 1))
        elif not left_out and name in self._open and lane.usable:
            self._open.discard(name)
            self._tell("circuit_closed", f"Calls go to {server or 'the service'} again.", **named)

    def _tell_rates(self, admissions: dict[str, Admission]) -> None:
        for role, admission in admissions.items():
            for server, lane in _name_lanes(admission):
                rate = (lane.window.size, admission.find_circuit_state(lane))
                if self._rates.get((role, server)) != rate:
                    self._rates[role, server] = rate
                    self._tell(
                        "rate",
                        role=role,
                        **({"server": server} if server else {}),
                        window=lane.window.size,
                        in_flight=lane.running,
                        circuit=rate[1],
                        paused_seconds=round(admission.pause_of(lane), 1),
                    )
        if new := self.session.counts.retried_by - self._retries:
            self._retries = self.session.counts.retried_by.copy()
            self._tell("retries", **dict(new))

    def _count_batches(self) -> None:
        """Count the sent batches in the ledger, which must be open."""
        ledger = self.session.ledger
        try:
            batches = ledger.list_batches(*OPEN)
            requests = sum(ledger.out.read_sums(batch.number)[0] for batch in batches)
        except Exception:  # noqa: BLE001 - an unreadable ledger stops the run, not its figures
            return
        self._activity = msgspec.structs.replace(
            self._activity, batches_out=len(batches), batch_requests_out=requests
        )

    def _make_snapshot(self) -> Snapshot:
        session, tally = self.session, self.session.counts
        flows = tuple(
            Flow(role, server, lane.running, min(lane.window.size, admission.window), not lane.usable)
            for role, admission in session.admissions.items()
            for server, lane in _name_lanes(admission)
        )
        passed = time.monotonic() - self._began
        made = tally.ended - tally.kept - self._ended_before
        return Snapshot(
            title=self._title,
            counts=copy.deepcopy(tally),
            total=add_usage([UsageCounts.of(tally), self._before]),
            activity=msgspec.structs.replace(
                self._activity,
                in_flight=session.scheduler.in_flight,
                timeouts=session.timeouts,
                per_second=made / passed if passed > 0 else 0.0,
                wait=session.scheduler.paused_for,
                flows=flows,
                workers=session.scheduler.workers,
                **self._compute_budget_left(),
            ),
        )

    def _compute_budget_left(self) -> dict[str, Any]:
        """Return the part of the budget that is neither spent nor reserved for outstanding calls."""
        budget, limits = self.session.budget, self.session.limits
        if budget is None:
            return {}
        cost, tokens = limits.max_cost, limits.max_tokens
        spent, aside = budget.spent, budget.reserved
        return {
            "budget_left_usd": None if cost is None else round_usd(max(0.0, cost - spent.cost - aside.cost)),
            "budget_left_tokens": None if tokens is None else max(0, tokens - spent.tokens - aside.tokens),
        }


def _name_lanes(admission: Admission) -> list[tuple[str, Lane]]:
    """Return the names of a service's lanes: addresses if there are several, else ""."""
    several = len(admission.lanes) > 1
    return [(address if several else "", lane) for address, lane in admission.lanes.items()]


_CLOCK_EVERY = 1.0  # seconds between two looks at the wall clock, which may jump
_STAY_EVERY = 0.5  # seconds between two looks at the run's folder


class SupervisedWork(NamedTuple):
    """A session, the title of its work, and its work."""

    session: RunSession
    title: Title
    work: Callable[[Monitor], Awaitable[object]]


async def supervise(parts: Sequence[SupervisedWork], control: Control) -> None:
    """Do the work of all parts at the same time. A signal, the deadline or a missing ledger stops it cleanly,
    a second signal at once. An error that ends one part stops the others cleanly, and is raised."""
    monitors = [Monitor(part.session, part.title, control.events) for part in parts]
    sessions = [part.session for part in parts]
    async with contextlib.AsyncExitStack() as stack:
        watches = [stack.enter_context(FolderWatch(session.ledger.path)) for session in sessions]
        background: list[Coroutine[Any, Any, None]] = []
        stack.callback(_finish, monitors)
        for monitor in monitors:
            monitor.start()
            background.append(monitor.watch())
        background += [_stop_when_gone(presence, monitors) for presence in watches]
        if control.deadline is not None:
            background.append(_stop_in_time(control.deadline, monitors))
        if list_foreign_plugins():
            await stack.enter_async_context(watch_loop())
        for task in background:
            await stack.enter_async_context(_run_in_background(task))
        stack.enter_context(control.interrupts(partial(_on_signal, monitors)))
        try:
            await _work_together(parts, monitors)
        except EdgenError:
            for presence in watches:
                if (gone := presence.check()) is not None:  # the missing ledger explains the error
                    raise gone from None
            raise


def _finish(monitors: Sequence[Monitor]) -> None:
    for monitor in monitors:
        monitor.finish()


async def _work_together(parts: Sequence[SupervisedWork], monitors: Sequence[Monitor]) -> None:
    """Run the work of all parts. Raises the error that ended the first one, after all have ended. A part that
    stops as useless does not stop the others."""
    ended: list[Exception] = []

    async def work(part: SupervisedWork, monitor: Monitor) -> None:
        try:
            await part.work(monitor)
        except Exception as problem:  # noqa: BLE001 - any error is raised when the others have ended
            ended.append(problem)
            if isinstance(problem, UselessError):
                return
            reason = problem if isinstance(problem, EdgenError) else StoppedError("Other work has failed.")
            _stop([other for other in monitors if other is not monitor], reason)

    await asyncio.gather(*(work(*pair) for pair in zip(parts, monitors, strict=True)))
    if ended:
        raise min(ended, key=lambda problem: isinstance(problem, UselessError))


@contextlib.asynccontextmanager
async def _run_in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work concurrently with the body, and end it with the body.

    An error of the body is raised. Without one, an error of the work, which is a bug, is raised at the end.
    """
    task = asyncio.create_task(work)
    try:
        yield
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _stop_in_time(deadline: Deadline, monitors: Sequence[Monitor]) -> None:
    """Stop when the deadline comes. Calls in flight may take their usual time."""
    while (left := deadline.count_seconds_left()) > 0:  # noqa: ASYNC110 - it waits for the time
        await asyncio.sleep(min(left, _CLOCK_EVERY))
    _stop(monitors, deadline.make_reason(), max(one.session.limits.timeout for one in monitors))


async def _stop_when_gone(presence: FolderWatch, monitors: Sequence[Monitor]) -> None:
    """Stop when the ledger is missing. If it was moved, calls in flight are stored; otherwise they are
    lost."""
    while (reason := presence.check()) is None:  # noqa: ASYNC110 - it waits for the time
        await asyncio.sleep(_STAY_EVERY)
    _stop(monitors, reason, None if isinstance(reason, StoppedError) else 0.0)


def _on_signal(monitors: Sequence[Monitor], number: int) -> None:
    if any(monitor.session.scheduler.stopped is None for monitor in monitors):
        _stop(monitors, make_signal_error(number))
    elif not is_hangup(number):  # one closed terminal may send several signals
        for monitor in monitors:
            monitor.session.scheduler.stop_waiting()


def _stop(monitors: Sequence[Monitor], reason: EdgenError, grace: float | None = None) -> None:
    """Begin no new work. `grace`: seconds for calls in flight to end; None: the usual time."""
    going = [monitor for monitor in monitors if monitor.session.scheduler.stopped is None]
    # A call is in flight until its answer is stored.
    admissions = {one for monitor in going for one in monitor.session.admissions.values()}
    running = sum(admission.running + admission.unstored for admission in admissions)
    for monitor in going:
        monitor.session.scheduler.stop(reason, grace)
    if running:
        unpaid = all(monitor.session.unpaid for monitor in going)
        why = "which may still end" if unpaid else "so that paid answers are stored"
        going[0].note(
            f"Stopping: waiting for {running} calls in flight, {why} (another signal stops at once)."
        )


def tell_lost_replies(ledger: Ledger, control: Control) -> None:
    """Warn of a ledger that has lost replies, before they are retried."""
    if ledger.lost_replies:
        control.note(describe_lost_replies(ledger.path, ledger.lost_replies))


def find_use_elsewhere(whole: RunFolder, *own: Path) -> Iterable[Charged]:
    """Return the usage of the shared budget by the run's other ledgers."""
    return [partial(sum_charges_at, path) for path in whole.ledgers() if path not in own]
