"""The page of all runs, and its live figures."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from edgen.api.runs import RunFacts
from edgen.web.answers import SOURCES, html_page
from edgen.web.rendering import render
from edgen.web.sources import IndexedRun

_EVERY = 1.0  # seconds between two looks at the runs


async def runs(request: web.Request) -> web.Response:
    """Show every run and how it stands."""
    found = await asyncio.to_thread(request.app[SOURCES].runs)
    return html_page(render("runs.html.j2", runs=[_run_row(run, facts) for run, facts in found]))


def _run_row(run: IndexedRun, facts: RunFacts) -> dict[str, Any]:
    """Return what a list says of a run, as plain values."""
    row: dict[str, Any] = {"slug": run.slug, "name": facts.name, "run": facts.run, "problem": facts.problem}
    status = facts.status
    if status is None:
        return {**row, "state": "unreadable"}
    work = facts.work
    return {
        **row,
        "state": status.state,
        "planned": status.planned,
        "accepted": status.accepted,
        "rejected": sum(status.rejected.values()),
        "reasons": dict(sorted(status.rejected.items(), key=lambda one: -one[1])),
        "failed": sum(status.failed.values()),
        "pending": status.pending,
        "calls": status.calls.made,
        "tokens": status.tokens.prompt + status.tokens.completion,
        "cost_usd": status.cost_usd,
        "per_minute": None if work is None else round(work.calls_per_minute),
        "stopped": status.stopped.detail if isinstance(status.stopped, msgspec.Struct) else None,
    }


async def events(request: web.Request) -> web.StreamResponse:
    """Send how the runs stand, at each change, as server-sent events."""
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await answer.prepare(request)
    before = b""
    with contextlib.suppress(ConnectionResetError, ClientConnectionResetError):
        while True:
            found = await asyncio.to_thread(request.app[SOURCES].runs)
            data = msgspec.json.encode([_run_row(run, facts) for run, facts in found])
            await answer.write(b": alive\n\n" if data == before else b"data: " + data + b"\n\n")
            before = data
            await asyncio.sleep(_EVERY)
    return answer
