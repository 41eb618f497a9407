"""The list of conversations of a run or data set: searched, filtered, sorted, in pages."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlencode

import msgspec
from aiohttp import web

from edgen.store.conversation_index import ConversationIndex, IndexPage, NumberFacts, Query
from edgen.web.answers import answer_html, find_source
from edgen.web.guard import render_problem_page
from edgen.web.rendering import render

PAGE = 50  # conversations per page
_MOST_PAGE = 10**6
_MOST_CHOICES = 200  # most values of facets and most ranges read from an address
_PATIENCE = 1.0  # seconds that the first visitor of a small run waits for the index before its progress shows
_OPEN = 4  # most facets that are shown open


async def browse(request: web.Request) -> web.Response:
    """Show a page of the conversations of a run or data set, searched, filtered and sorted."""
    run = await asyncio.to_thread(find_source, request)
    if run.kind == "asked":
        raise web.HTTPSeeOther(f"/people/{run.slug}")
    index = await asyncio.to_thread(run.open_index) or await asyncio.to_thread(run.wait, _PATIENCE)
    if index is None:
        if run.problem is not None:
            return render_problem_page(f"This cannot be read: {run.problem}", 409)
        return answer_html(render("building.html.j2", run=run), 202)
    query, page = read_query([*request.query.items()])
    found = await asyncio.to_thread(index.find, query, page, PAGE)
    if page and not found.entries:  # after the last page
        page = max(0, -(-found.total // PAGE) - 1)
        found = await asyncio.to_thread(index.find, query, page, PAGE)
    facts = await asyncio.to_thread(browse_facts, index, query, page, found)
    return answer_html(render("browse.html.j2", run=run, root="/", stale=run.problem, **facts))


def read_query(parameters: Iterable[tuple[str, str]]) -> tuple[Query, int]:
    """Return the query and the page number in the names and values of an address. Invalid parts are left
    out."""
    facets: dict[str, list[str]] = {}
    ranges: dict[str, list[float | None]] = {}
    single = {"q": "", "order": "", "page": ""}
    for key, value in [*parameters][:_MOST_CHOICES]:
        first, colon, rest = value.partition(":")
        end, dot, name = key.partition(".")
        if key in single:
            single[key] = single[key] or value[:500]
        elif key == "is" and colon:
            facets.setdefault(unquote(first), []).append(rest)
        elif dot and end in ("least", "most") and (number := _parse_number(value)) is not None:
            ranges.setdefault(name, [None, None])[end == "most"] = number
    query = Query(
        words=single["q"],
        facets={name: tuple(dict.fromkeys(values)) for name, values in facets.items()},
        ranges={name: (low, high) for name, (low, high) in ranges.items()},
        order=single["order"],
    )
    page = single["page"]
    at = int(page) - 1 if page.isascii() and page.isdecimal() and len(page) < 8 else 0
    return query, min(max(at, 0), _MOST_PAGE)


def _parse_number(text: str) -> float | None:
    """Return a finite number; None for anything else."""
    try:
        number = float(text.strip().replace(",", ".")) if len(text) < 40 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def list_pairs(query: Query, page: int = 0) -> list[tuple[str, str]]:
    """Return a query as the names and values of an address or a form."""
    pairs = [("q", query.words)] if query.words else []
    for name, values in query.facets.items():
        named = name.replace("%", "%25").replace(":", "%3A")
        pairs += [("is", f"{named}:{value}") for value in values]
    for name, ends in query.ranges.items():
        both = zip(("least", "most"), ends, strict=True)
        pairs += [(f"{end}.{name}", f"{value:.12g}") for end, value in both if value is not None]
    pairs += [("order", query.order)] if query.order else []
    return pairs + ([("page", str(page + 1))] if page else [])


def render_address(query: Query, page: int = 0) -> str:
    """Return the query part of an address, for a query of conversations."""
    return f"?{urlencode(list_pairs(query, page))}"


def browse_facts(index: ConversationIndex, query: Query, page: int, found: IndexPage) -> dict[str, Any]:
    """Return the content of the list, as plain values."""
    pages = max(1, -(-found.total // PAGE))
    return {
        "query": query,
        "found": found,
        "facets": [
            _describe_facet(query, name, values, is_open=place < _OPEN)
            for place, (name, values) in enumerate(found.facets.items())
        ],
        "chosen": _list_chosen(query),
        "ranges": [
            _describe_range(query, name, facts)
            for name, facts in index.numbers.items()
            if facts.low < facts.high
        ],
        "orders": _list_orders(index),
        "page": page,
        "pages": pages,
        "first": render_address(query),
        "before": render_address(query, page - 1) if page else None,
        "after": render_address(query, page + 1) if page + 1 < pages else None,
        "last": render_address(query, pages - 1),
        "kept": [(name, value) for name, value in list_pairs(query) if name == "is"],
        "all": list_pairs(query),
    }


def _describe_facet(
    query: Query, name: str, values: list[tuple[str, int]], *, is_open: bool
) -> dict[str, Any]:
    chosen = query.facets.get(name, ())
    return {
        "name": name,
        "open": is_open or bool(chosen),
        "values": [
            {"value": value, "count": count, "on": value in chosen, "to": _toggle_value(query, name, value)}
            for value, count in values
        ],
    }


def _toggle_value(query: Query, name: str, value: str) -> str:
    """Return the address with a facet's value added to the query, or removed from it."""
    values = query.facets.get(name, ())
    own = tuple(one for one in values if one != value) if value in values else (*values, value)
    facets = {key: kept for key, kept in {**query.facets, name: own}.items() if kept}
    return render_address(msgspec.structs.replace(query, facets=facets))


def _list_chosen(query: Query) -> list[tuple[str, str]]:
    """Return every part of the query, each with the address without that part."""
    shown = (
        [(f"“{query.words}”", render_address(msgspec.structs.replace(query, words="")))]
        if query.words
        else []
    )
    for name, values in query.facets.items():
        shown += [(f"{name}: {value}", _toggle_value(query, name, value)) for value in values]
    for name, (low, high) in query.ranges.items():
        ends = " to ".join("…" if one is None else f"{one:g}" for one in (low, high))
        rest = {key: kept for key, kept in query.ranges.items() if key != name}
        shown.append((f"{name}: {ends}", render_address(msgspec.structs.replace(query, ranges=rest))))
    return shown


def _describe_range(query: Query, name: str, facts: NumberFacts) -> dict[str, Any]:
    low, high = query.ranges.get(name, (None, None))
    return {
        "name": name,
        "low": f"{facts.low:g}",
        "high": f"{facts.high:g}",
        "least": "" if low is None else f"{low:g}",
        "most": "" if high is None else f"{high:g}",
        "open": name in query.ranges,
    }


def _list_orders(index: ConversationIndex) -> list[tuple[str, str]]:
    """Return the names of all orders, each with its label."""
    orders = [("", "as they were made")]
    for name, facts in index.numbers.items():
        if facts.low < facts.high:
            shown = name.replace("_", " ")
            orders += [(name, f"{shown}, least first"), (f"-{name}", f"{shown}, most first")]
    return orders
