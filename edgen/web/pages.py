"""Reading pages: their routes, the files that they load, and problems as pages.

Nothing here is written, and no run is locked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from edgen.core.errors import EdgenError, UsageError
from edgen.web import browse, conversation, runs
from edgen.web.answers import problem_page
from edgen.web.guard import Route
from edgen.web.rendering import STATIC


async def static(request: web.Request) -> web.Response:
    """Return a file that pages load."""
    known = STATIC.get(request.match_info["name"])
    if known is None:
        return problem_page("There is no such file.", 404)
    kind, path = known
    return web.Response(body=await asyncio.to_thread(path.read_bytes), content_type=kind, charset="utf-8")


@web.middleware
async def explain(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Show what cannot be read as a page."""
    try:
        answer: web.StreamResponse = await handler(request)
    except UsageError as problem:
        return problem_page(str(problem), 404)
    except EdgenError as problem:
        return problem_page(f"This cannot be read: {problem}", 409)
    return answer


async def unknown(_request: web.Request) -> web.Response:
    """Answer every other address."""
    return problem_page("There is no such page.", 404)


ROUTES = (
    Route("GET", "/", runs.runs),
    Route("GET", "/events", runs.events),
    Route("GET", "/static/{name}", static, "visitor"),
    Route("GET", "/beside", conversation.beside),
    Route("GET", "/requests/{run}/{id:.+}", conversation.requests),
    Route("GET", "/run/{run}", browse.browse),
    Route("GET", "/run/{run}/{id:.+}", conversation.conversation),
)
