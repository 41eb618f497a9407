"""The page of all runs, and its live figures."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from edgen.api.runs import RunFacts, add_up_runs
from edgen.core.errors import EdgenError
from edgen.runtime.budget_status import read_budget_status
from edgen.store.ledger import LedgerReader
from edgen.store.people.mailbox import has_mailbox
from edgen.store.run_folder import RunFolder
from edgen.web.answers import SOURCES, answer_html
from edgen.web.guard import VISITOR
from edgen.web.rendering import render
from edgen.web.sources import IndexedRun
from edgen.web.starting import STARTER

_EVERY = 1.0  # seconds between two looks at the runs
_MINUTES = 60  # minutes in the chart
_RECENT = 300.0  # seconds over which the speed is measured
_MOST_REPLIES = 50_000  # most replies that the first look at a run reads for its chart


class CallsByMinute:
    """The calls of a run by minute, over the last hour, and its speed."""

    def __init__(self, run: RunFolder) -> None:
        self._minutes: dict[int, int] = {}
        self._looks: deque[tuple[float, int, int]] = deque()
        self._lock = threading.Lock()
        since = time.time() - _MINUTES * 60
        with contextlib.suppress(EdgenError, OSError):
            for _, arm in run.list_begun_arms():
                with LedgerReader(arm.ledger) as ledger:
                    for moment in ledger.list_reply_times(since, _MOST_REPLIES):
                        self._count(moment, 1)

    def _count(self, moment: float, calls: int) -> None:
        minute = int(moment // 60)
        self._minutes[minute] = self._minutes.get(minute, 0) + calls

    def note_counts(self, now: float, made: int, settled: int) -> None:
        """Note the number of calls and of settled conversations at present."""
        with self._lock:
            if self._looks and self._looks[-1][1] > made:  # the run began anew
                self._looks.clear()
            if self._looks and made > self._looks[-1][1]:
                self._count(now, made - self._looks[-1][1])
            self._looks.append((now, made, settled))
            while len(self._looks) > 2 and self._looks[1][0] < now - _RECENT:
                self._looks.popleft()
            oldest = int(now // 60) - _MINUTES
            self._minutes = {minute: calls for minute, calls in self._minutes.items() if minute > oldest}

    def list_minutes(self, now: float) -> list[int]:
        """Return the calls of each of the last 60 minutes."""
        last = int(now // 60)
        return [self._minutes.get(minute, 0) for minute in range(last - _MINUTES + 1, last + 1)]

    def compute_seconds_left(self, pending: int) -> float | None:
        """Return the seconds until everything is settled at the present speed; None if unknown."""
        if len(self._looks) < 2:
            return None
        (first, _, before), (last, _, settled) = self._looks[0], self._looks[-1]
        done = settled - before
        return None if done <= 0 or last <= first else pending * (last - first) / done


def _find_pulse(run: IndexedRun) -> CallsByMinute:
    if run.pulse is None:
        run.pulse = CallsByMinute(RunFolder(run.path))
    pulse: CallsByMinute = run.pulse
    return pulse


async def show_runs(request: web.Request) -> web.Response:
    """Show every run with its status, and every data set."""
    rows, totals = await asyncio.to_thread(_look, request.app)
    starter = request.app[STARTER]
    return answer_html(
        render(
            "runs.html.j2",
            runs=rows,
            totals=totals,
            data=request.app[SOURCES].data,
            started=starter.list_shown_runs(),
            jobs=list(await asyncio.to_thread(starter.list_jobs)),
            token=request[VISITOR].token,
        )
    )


def _look(app: web.Application) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of all runs, and their totals."""
    found = app[SOURCES].list_runs()
    rows = [_run_row(run, facts) for run, facts in found]
    return rows, msgspec.to_builtins(add_up_runs([facts for _, facts in found]))


def _run_row(run: IndexedRun, facts: RunFacts) -> dict[str, Any]:
    """Return the row of a run in the list, as plain values."""
    row: dict[str, Any] = {"slug": run.slug, "name": facts.name, "run": facts.run, "problem": facts.problem}
    status = facts.status
    if status is None:
        return {**row, "state": "unreadable", "divided": False}
    work, now, pulse = facts.work, time.time(), _find_pulse(run)
    rundir = RunFolder(run.path)
    divided = not rundir.begun and bool(rundir.partitions())  # they are not merged yet
    pulse.note_counts(now, status.calls.made, status.planned - status.pending)
    minutes = pulse.list_minutes(now)
    left = pulse.compute_seconds_left(status.pending) if status.state == "running" else None
    return {
        **row,
        "state": status.state,
        "divided": divided,
        "planned": status.planned,
        "accepted": status.accepted,
        "rejected": sum(status.rejected.values()),
        "reasons": ", ".join(
            f"{reason} {count:,}"
            for reason, count in sorted(status.rejected.items(), key=lambda one: -one[1])
        ),
        "failed": sum(status.failed.values()),
        "pending": status.pending,
        "calls": status.calls.made,
        "tokens": status.tokens.prompt + status.tokens.completion,
        "cost_usd": status.cost_usd,
        "cap": _describe_cap(run.path),
        "asks_people": has_mailbox(run.path),
        "in_flight": None if divided else _count_in_flight(run.path) if status.state == "running" else 0,
        "per_minute": None if work is None else round(work.calls_per_minute),
        "left": None if left is None else _format_duration(left),
        "stopped": status.stopped.detail if isinstance(status.stopped, msgspec.Struct) else None,
        "minutes": minutes if any(minutes) else [],
        "points": list_points(minutes),
    }


def list_points(minutes: list[int]) -> str:
    """Return the corners of a chart, 59 wide and 100 high, in SVG's format."""
    most = max(*minutes, 1)
    return " ".join(f"{place},{100 - count * 100 / most:.1f}" for place, count in enumerate(minutes))


def _describe_cap(path: Any) -> str | None:
    """Return the cap on costs of a run's job or its shared budget, in words; None without one."""
    budget = read_budget_status(RunFolder(path).job)
    caps = () if budget is None else budget.caps
    return (
        ", ".join(f"{one.used:,.4g} of {one.most:,.4g} {one.unit} {one.period}".strip() for one in caps)
        or None
    )


def _count_in_flight(path: Any) -> int | None:
    """Return the number of calls that a run has reserved and not settled; None if unknown."""
    try:
        count = 0
        for _, arm in RunFolder(path).list_begun_arms():
            with LedgerReader(arm.ledger) as ledger:
                count += ledger.count_in_flight()
    except (EdgenError, OSError):
        return None
    return count


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


async def send_events(request: web.Request) -> web.StreamResponse:
    """Send the status of the runs at each change, as server-sent events."""
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await answer.prepare(request)
    before = b""
    with contextlib.suppress(ConnectionResetError, ClientConnectionResetError):
        while True:
            data = await asyncio.to_thread(_describe_state, request.app) or before
            await answer.write(b": alive\n\n" if data == before else b"data: " + data + b"\n\n")
            before = data
            await asyncio.sleep(_EVERY)
    return answer


def _describe_state(app: web.Application) -> bytes:
    """Return the status of the runs as JSON; empty if they cannot be read at the moment."""
    try:
        rows, totals = _look(app)
    except (EdgenError, OSError):
        return b""
    return msgspec.json.encode({"runs": rows, "totals": totals, "started": app[STARTER].list_shown_runs()})
