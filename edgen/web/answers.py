"""Common parts of all pages: HTML answers, and the run that an address names."""

from __future__ import annotations

from aiohttp import web

from edgen.core.errors import UsageError
from edgen.web.sources import IndexedFiles, IndexedRun, Sources

SOURCES = web.AppKey("sources", Sources)
NO_RUN = "There is no such run here; it may have been moved or removed."


def answer_html(text: str, status: int = 200) -> web.Response:
    """Return an HTML page."""
    return web.Response(text=text, content_type="text/html", status=status)


def redirect(place: str) -> web.Response:
    """Return an answer that sends the browser to another page of this server."""
    return web.Response(status=303, headers={"Location": place})


def find_source(request: web.Request) -> IndexedRun:
    """Return the run or data set that a request's path names. It may wait for a disk. Raises UsageError for
    an unknown one."""
    if (found := request.app[SOURCES].find(request.match_info["run"])) is None:
        raise UsageError(NO_RUN)
    return found


def run_of(request: web.Request) -> IndexedRun:
    """Return the run that a request's path names. It may wait for a disk. Raises UsageError for an unknown
    one, and for a data set."""
    if isinstance(found := find_source(request), IndexedFiles):
        raise UsageError(NO_RUN)
    return found
