"""Answers that the pages share: HTML, a problem as a page, and the run that an address names."""

from __future__ import annotations

from aiohttp import web

from edgen.web.guard import problem_page as problem_page
from edgen.web.people import SOURCES as SOURCES
from edgen.web.sources import IndexedRun

NO_RUN = "There is no such run here; it may have been moved or removed."


def html_page(text: str, status: int = 200) -> web.Response:
    """Return an HTML page."""
    return web.Response(text=text, content_type="text/html", status=status)


def run_of(request: web.Request) -> IndexedRun | None:
    """Return the run that a request's path names; None if there is none."""
    return request.app[SOURCES].find(request.match_info["run"])
