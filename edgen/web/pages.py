"""Reading pages: their routes, the files that they load, and problems as pages.

Nothing here is written, and no run is locked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web

from edgen.core.errors import EdgenError, UsageError
from edgen.web import browse, conversation, runs
from edgen.web.guard import NOT_NOW, VISITOR, Route, home_of, problem_page
from edgen.web.rendering import static_file

log = logging.getLogger(__name__)
_CHANGING = (
    "The run is being changed, moved or removed, and cannot be read now. Load this page again in a moment."
)


async def static(request: web.Request) -> web.Response:
    """Return a file that pages load."""
    known = await asyncio.to_thread(static_file, request.match_info["name"])
    if known is None:
        return problem_page("There is no such file.", 404)
    return web.Response(body=known[1], content_type=known[0], charset="utf-8")


@web.middleware
async def explain(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Show what cannot be read as a page."""
    try:
        answer: web.StreamResponse = await handler(request)
    except UsageError as problem:
        return problem_page(str(problem), 404, home_of(request))
    except EdgenError as problem:
        if request[VISITOR].invitation is not None:  # the words name places of this machine
            return problem_page(NOT_NOW, 409, "/task")
        return problem_page(f"This cannot be read: {problem}", 409)
    except (web.HTTPException, ConnectionError, asyncio.CancelledError):
        raise
    except OSError as problem:  # something was moved or damaged while it was read
        log.warning("%s %s: %s", request.method, request.path, problem)
        return problem_page(_CHANGING, 409, home_of(request))
    except Exception:
        log.exception("%s %s", request.method, request.path)
        said = "edgen failed to make this page. The terminal of the server says more."
        return problem_page(said, 500, home_of(request))
    return answer


async def answer_unknown(_request: web.Request) -> web.Response:
    """Answer every other address."""
    return problem_page("There is no such page.", 404)


ROUTES = (
    Route("GET", "/", runs.runs),
    Route("GET", "/events", runs.events),
    Route("GET", "/static/{name}", static, "anyone"),
    Route("GET", "/beside", conversation.show_side_by_side),
    Route("GET", "/requests/{run}/{id:.+}", conversation.requests),
    Route("GET", "/run/{run}", browse.browse),
    Route("GET", "/run/{run}/{id:.+}", conversation.conversation),
)
