"""Requests to pages. Each function reads what a page shows; nothing is written and no run is locked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from edgen.api.runs import RunFacts
from edgen.core.errors import EdgenError, UsageError
from edgen.evaluation.data_sets.one_conversation import ConversationDetails, find_conversations
from edgen.preferences.pair_lines import pair_lines
from edgen.store.conversation_index import ORDERS, Found, Query
from edgen.store.run_folder import RunFolder
from edgen.web.guard import Route
from edgen.web.people import SOURCES
from edgen.web.rendering import STATIC, render
from edgen.web.sources import IndexedRun

PAGE = 50  # conversations of a page
_MOST_PAGE = 10**6
_EVERY = 1.0  # seconds between two looks at the runs


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status)


def _problem(message: str, status: int) -> web.Response:
    return _html(render("problem.html.j2", message=message), status)


async def runs(request: web.Request) -> web.Response:
    """Show every run and how it stands."""
    found = await asyncio.to_thread(request.app[SOURCES].runs)
    return _html(render("runs.html.j2", runs=[_run_row(run, facts) for run, facts in found]))


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


def _run_of(request: web.Request) -> IndexedRun | None:
    return request.app[SOURCES].find(request.match_info["run"])


async def browse(request: web.Request) -> web.Response:
    """Show a run's conversations: searched, filtered, sorted, by the page."""
    run = await asyncio.to_thread(_run_of, request)
    if run is None:
        return _problem("There is no such run here; it may have been moved or removed.", 404)
    index = await asyncio.to_thread(run.index)
    if index is None:
        if run.problem is not None:
            return _problem(f"This run cannot be read: {run.problem}", 409)
        return _html(render("building.html.j2", run=run), 202)
    query, page = _read_query(request)
    found = await asyncio.to_thread(index.find, query, page, PAGE)
    return _html(render("browse.html.j2", run=run, **_browse_facts(query, page, found)))


def _read_query(request: web.Request) -> tuple[Query, int]:
    """Return the choice and the page that an address asks for; what it cannot mean is left out."""
    facets: dict[str, list[str]] = {}
    for pair in request.query.getall("is", []):
        name, colon, value = pair.partition(":")
        if colon:
            facets.setdefault(name, []).append(value)
    order = request.query.get("order", "place")
    page = request.query.get("page", "0")
    return (
        Query(
            words=request.query.get("q", "")[:500],
            facets={name: tuple(values) for name, values in facets.items()},
            order=order if order in ORDERS else "place",
        ),
        min(int(page), _MOST_PAGE) if page.isascii() and page.isdecimal() and len(page) < 8 else 0,
    )


def address(query: Query, page: int = 0) -> str:
    """Return the query part of the address of a choice of conversations."""
    pairs = [("q", query.words)] if query.words else []
    pairs += [("is", f"{name}:{value}") for name, values in query.facets.items() for value in values]
    pairs += [("order", query.order)] if query.order != "place" else []
    pairs += [("page", str(page))] if page else []
    return f"?{urlencode(pairs)}"


def _browse_facts(query: Query, page: int, found: Found) -> dict[str, Any]:
    def toggled(name: str, value: str) -> str:
        chosen = {key: list(values) for key, values in query.facets.items()}
        own = chosen.setdefault(name, [])
        (own.remove if value in own else own.append)(value)
        kept = {key: tuple(values) for key, values in chosen.items() if values}
        return address(msgspec.structs.replace(query, facets=kept))

    facets = [
        {
            "name": name,
            "chosen": name in query.facets,
            "values": [
                {
                    "value": value,
                    "count": count,
                    "on": value in query.facets.get(name, ()),
                    "to": toggled(name, value),
                }
                for value, count in values
            ],
        }
        for name, values in found.facets.items()
    ]
    pages = max(1, -(-found.total // PAGE))
    return {
        "query": query,
        "found": found,
        "facets": facets,
        "orders": ORDERS,
        "page": page,
        "pages": pages,
        "before": address(query, page - 1) if page else None,
        "after": address(query, page + 1) if page + 1 < pages else None,
        "hidden": [(name, value) for name, values in query.facets.items() for value in values],
    }


async def conversation(request: web.Request) -> web.Response:
    """Show one conversation, or all of one scenario side by side, with all that the run knows of it."""
    run = await asyncio.to_thread(_run_of, request)
    if run is None:
        return _problem("There is no such run here; it may have been moved or removed.", 404)
    named = request.match_info["id"]
    try:
        shown, pairs, rollouts, notes = await asyncio.to_thread(
            find_conversations, RunFolder(run.path), named
        )
    except UsageError as problem:
        return _problem(str(problem), 404)
    index = await asyncio.to_thread(run.index)
    before = after = None
    if index is not None and not named.isdecimal():
        before, after = await asyncio.to_thread(index.neighbours, named)
    return _html(
        render(
            "conversation.html.j2",
            run=run,
            named=named,
            several=len(shown) > 1,
            shown=[_conversation_facts(one) for one in shown],
            scenario=_scenario_rows(shown),
            pairs=[line for line in pair_lines(pairs, rollouts) if line[0]],
            notes=notes,
            before=before,
            after=after,
        )
    )


def _scenario_rows(shown: Sequence[ConversationDetails]) -> list[tuple[str, str]]:
    from edgen.core.text import value_in_words

    row = shown[0].scenario.as_row() if shown else {}
    return [
        (name.replace("_", " "), value_in_words(value))
        for name, value in row.items()
        if name != "index" and value is not None
    ]


def _conversation_facts(one: ConversationDetails) -> dict[str, Any]:
    """Return what a page says of a conversation."""
    made: Mapping[str, Any] = one.provenance or {}
    speakers = list(dict.fromkeys(turn.role for turn in one.turns))
    return {
        "id": one.id,
        "arm": one.arm,
        "status": one.status,
        "reason": one.reason,
        "detail": one.detail,
        "probability": one.probability,
        "simulated": one.simulated,
        "scenario": one.scenario.index,
        "turns": [
            {
                "role": turn.role,
                "side": speakers.index(turn.role) % 4,
                "text": turn.text,
                "labels": [*turn.labels, *_labels_at(one, place)],
                "alternatives": [{"text": other.text, "labels": other.labels} for other in turn.alternatives],
            }
            for place, turn in enumerate(one.turns)
        ],
        "labels": list(_labels_at(one, None)),
        "replies": [
            {
                "step": stored.step,
                "attempt": stored.attempt,
                "model": stored.reply.model or "unknown model",
                "finish": stored.reply.finish_reason,
                "text": stored.reply.refusal or stored.reply.text or "(empty)",
            }
            for stored in one.replies
        ],
        "made": [
            (key.replace("_", " "), value if isinstance(value, str) else msgspec.json.encode(value).decode())
            for key, value in made.items()
            if value not in (None, [], {}, "")
        ],
    }


def _labels_at(one: ConversationDetails, place: int | None) -> list[str]:
    return [
        f"{layer}: {'tie' if unit.tie else ', '.join(unit.labels)}"
        for layer, units in one.labels.items()
        for unit in units
        if unit.turn == place
    ]


async def static(request: web.Request) -> web.Response:
    """Return a file that pages load."""
    known = STATIC.get(request.match_info["name"])
    if known is None:
        return _problem("There is no such file.", 404)
    kind, path = known
    return web.Response(body=await asyncio.to_thread(path.read_bytes), content_type=kind, charset="utf-8")


@web.middleware
async def explain(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Show what cannot be read as a page."""
    try:
        answer: web.StreamResponse = await handler(request)
    except UsageError as problem:
        return _problem(str(problem), 404)
    except EdgenError as problem:
        return _problem(f"This cannot be read: {problem}", 409)
    return answer


async def unknown(_request: web.Request) -> web.Response:
    """Answer every other address."""
    return _problem("There is no such page.", 404)


ROUTES = (
    Route("GET", "/", runs),
    Route("GET", "/events", events),
    Route("GET", "/static/{name}", static, "visitor"),
    Route("GET", "/run/{run}", browse),
    Route("GET", "/run/{run}/{id}", conversation),
)
