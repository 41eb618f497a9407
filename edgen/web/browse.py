"""The list of a run's conversations: searched, filtered, sorted, by the page."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from edgen.store.conversation_index import ORDERS, Found, Query
from edgen.web.answers import NO_RUN, html_page, problem_page, run_of
from edgen.web.rendering import render

PAGE = 50  # conversations of a page
_MOST_PAGE = 10**6


async def browse(request: web.Request) -> web.Response:
    """Show a run's conversations: searched, filtered, sorted, by the page."""
    run = await asyncio.to_thread(run_of, request)
    if run is None:
        return problem_page(NO_RUN, 404)
    index = await asyncio.to_thread(run.index)
    if index is None:
        if run.problem is not None:
            return problem_page(f"This run cannot be read: {run.problem}", 409)
        return html_page(render("building.html.j2", run=run), 202)
    query, page = _read_query(request)
    found = await asyncio.to_thread(index.find, query, page, PAGE)
    return html_page(render("browse.html.j2", run=run, **_browse_facts(query, page, found)))


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
