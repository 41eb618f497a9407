"""Guards of the web app: the permissions of the owner, of people and of other hosts.

The owner enters by a link with a key, which is drawn at every start; people enter by invitations, which the
run stores (`edgen.store.people`). The server exchanges both for a cookie that scripts cannot read and other
sites cannot send. Each route states who may request it. A change needs a token, which only pages of this
server have, and the Host and Origin of this server. A content security policy lets pages load nothing from
elsewhere and run no inline script.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from aiohttp import web

from edgen.core.errors import EdgenError, UsageError
from edgen.simulator.service.hosts import Hosts
from edgen.store.people import Invitation
from edgen.web.answers import SOURCES, answer_html
from edgen.web.rendering import render
from edgen.web.sources import IndexedRun, Sources

log = logging.getLogger(__name__)
COOKIE = "edgen_web"  # prefix of the names of cookies: browsers send the cookies of every port of a host
ENTER = "/enter"
TOKEN = "token"  # noqa: S105 - the name of a form field, not a secret
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms with Origin: null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NOT_NOW = (  # for invited people, who must not see paths of this machine
    "The run cannot be read now. Load this page again in a minute; if that does not help, tell the person "
    "who invited you. Everything that you answered before is stored."
)
_CHANGING = (
    "The run is being changed, moved or removed, and cannot be read now. Load this page again in a moment."
)
_TOO_LARGE = "This is too large for a form. Go back, shorten what you wrote, and send it again."
_NOT_IN = (
    "Open the link that you were given: it lets this browser in. If you come from that link, allow cookies "
    "for this address, and open it again."
)
_MOST_ADDRESS = 8_192  # characters of a request's path and query
_RATE, _BURST = 20.0, 60.0  # changes per second and visitor
_MOST_VISITORS = 10_000  # most visitors whose rates are remembered
_MOST_COOKIES = 20  # most cookies of a request that are checked

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Who = Literal["owner", "person", "visitor", "anyone"]
"""Visitors who may ask for a route: the owner; an invited person, about the own task; either; or also an
unknown visitor, who sees the page of a refusal."""


class Route(NamedTuple):
    """A page or a change, and who may request it."""

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    who: Who = "owner"


class Visitor(NamedTuple):
    """The sender of a request: the owner (`invitation` is None), or a person invited to `run`."""

    secret: str
    run: IndexedRun | None = None
    invitation: Invitation | None = None

    @property
    def kind(self) -> Literal["owner", "person"]:
        return "owner" if self.invitation is None else "person"

    @property
    def token(self) -> str:
        """The token that forms of this visitor's pages must send."""
        return hashlib.sha256(f"token of {self.secret}".encode()).hexdigest()


VISITOR = web.RequestKey("visitor", Visitor)


class PageGuard:
    """A guard, whose `admit` is a middleware. `key`: the owner's key, for the link that opens the pages.

    `host`: the address that the server listens on. `who`: who may request a route, by its handler.
    """

    def __init__(self, host: str, sources: Sources) -> None:
        self.key = secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(24)
        self._sources = sources
        self._hosts = Hosts(host, "--host NAME")
        self.who: dict[Handler, Who] = {}
        self._allowance: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def add(self, app: web.Application, routes: tuple[Route, ...]) -> None:
        """Add routes to an application, and record who may request each."""
        for route in routes:
            self.who[route.handler] = route.who
            app.router.add_route(route.method, route.path, route.handler)
            if route.method == "GET":
                app.router.add_route("HEAD", route.path, route.handler)

    def make_link(self, url: str) -> str:
        """Return the owner's link to the server at `url`."""
        return f"{url}{ENTER}?key={self.key}"

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer or refuse a request. Every answer gets the security headers."""
        try:
            answer = await self._refuse(request) or await handler(request)
        except web.HTTPException as refusal:
            said = _TOO_LARGE if refusal.status == 413 else refusal.text or refusal.reason
            answer = render_problem_page(said, refusal.status, find_home(request))
            answer.headers.update(
                {name: value for name, value in refusal.headers.items() if name in ("Location", "Allow")}
            )
        except ConnectionError:
            raise
        except Exception as problem:  # noqa: BLE001 - logged
            answer = _explain(request, problem)
        if not answer.prepared:
            for name, value in _HEADERS.items():
                answer.headers.setdefault(name, value)
        return answer

    async def _refuse(self, request: web.Request) -> web.Response | None:
        """Return the refusal of a request; None if it is allowed."""
        if len(request.path_qs) > _MOST_ADDRESS:
            return render_problem_page("This address is too long.", 414, "")
        if (problem := self._hosts.explain_refusal(request.headers)) is not None:
            return render_problem_page(problem, 403, "")
        if request.method not in ("GET", "HEAD", "POST"):
            return render_problem_page("Pages answer GET and POST.", 405, "")
        if request.path == ENTER and request.method == "GET":
            return await self._enter(request)
        who = self.who.get(request.match_info.handler)
        if who == "anyone" and request.method != "POST":
            return None
        visitor = await self._find_visitor(request)
        if visitor is None:
            return render_problem_page(_NOT_IN, 403, "")
        request[VISITOR] = visitor
        if who not in (visitor.kind, "visitor") and not (who is None and visitor.kind == "owner"):
            return render_problem_page("This page is not for you.", 403, find_home(request))
        if request.method == "POST" and who is None:
            return render_problem_page("There is nothing to change at this address.", 405, find_home(request))
        if request.method == "POST" and (refusal := await self._refuse_change(request, visitor)) is not None:
            return refusal
        return None

    async def _find_visitor(self, request: web.Request) -> Visitor | None:
        """Return the visitor whose cookie a request has: the cookie of this port, else of another port, since
        the server may have been restarted on another one."""
        own = _make_cookie_name(request)
        held = {name: value for name, value in request.cookies.items() if name.startswith(COOKIE)}
        for name in sorted(held, key=lambda name: name != own)[:_MOST_COOKIES]:
            cookie = held[name]
            if hmac.compare_digest(cookie.encode("utf-8", "surrogatepass"), self._session.encode()):
                return Visitor(self._session)
            if (person := await asyncio.to_thread(self._find_person, cookie)) is not None:
                return person
        return None

    def _find_person(self, cookie: str) -> Visitor | None:
        """Return the person of a cookie. It may wait for a disk."""
        slug, dot, session = cookie.partition(".")
        if not dot or (run := self._sources.find(slug)) is None or (people := run.open_people()) is None:
            return None
        invitation = people.find_invitation(session)
        return None if invitation is None else Visitor(cookie, run, invitation)

    async def _refuse_change(self, request: web.Request, visitor: Visitor) -> web.Response | None:
        """Return the refusal of a change; None if the change comes from a page of this server."""
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("Host"):
            return render_problem_page("This change comes from another page.", 403, find_home(request))
        if not self._allow(visitor.secret):
            return render_problem_page("Too many answers at once; wait a second.", 429, find_home(request))
        try:
            form = await request.post()  # stored with the request, for its handler
        except (ValueError, LookupError):  # not a form, an incomplete form, or an unknown encoding
            return render_problem_page(
                "This form cannot be read; load its page again.", 400, find_home(request)
            )
        given = request.headers.get("X-Token")
        if given is None:
            if request.content_type not in ("application/x-www-form-urlencoded", "multipart/form-data"):
                return render_problem_page(
                    "Send a form, or JSON with the header X-Token.", 415, find_home(request)
                )
            given = str(form.get(TOKEN, ""))
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), visitor.token.encode()):
            return render_problem_page("This page is out of date: load it again.", 403, find_home(request))
        return None

    def _allow(self, secret: str) -> bool:
        """Return whether a visitor may change one more thing now: one token bucket per visitor."""
        now = time.monotonic()
        left, at = self._allowance.pop(secret, (_BURST, now))
        left = min(_BURST, left + (now - at) * _RATE)
        self._allowance[secret] = (left - 1 if left >= 1 else left, now)
        if len(self._allowance) > _MOST_VISITORS:
            self._allowance.popitem(last=False)
        return left >= 1

    async def _enter(self, request: web.Request) -> web.Response:
        """Exchange a key for a cookie: the owner's key, or an invitation's RUN.SECRET."""
        given = request.query.get("key", "")
        session, home = None, "/"
        if hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.key.encode()):
            session = self._session
        elif entered := await asyncio.to_thread(self._exchange_key, given):
            session, home = entered, "/task"
        if session is None:
            return render_problem_page(
                "This link belongs to another start of the server, or was revoked; ask for a new one.",
                403,
                "",
            )
        # After a redirect from another site's link, the browser would not send this cookie. So a page
        # redirects.
        answer = answer_html(render("enter.html.j2", home=home))
        answer.set_cookie(_make_cookie_name(request), session, httponly=True, samesite="Strict", path="/")
        return answer

    def _exchange_key(self, key: str) -> str | None:
        """Exchange the key of an invitation for a cookie; None if the key is unknown or revoked."""
        slug, dot, secret = key.partition(".")
        if not dot or (run := self._sources.find(slug)) is None or (people := run.open_people()) is None:
            return None
        entered = people.open_session(secret, time.time())
        return f"{slug}.{entered}" if entered else None


def _explain(request: web.Request, problem: Exception) -> web.Response:
    """Return the page about an error of a handler."""
    home = find_home(request)
    match problem:
        case UsageError() if home:
            return render_problem_page(str(problem), 404, home)
        case EdgenError() if home in ("", "/task"):  # the message may contain paths of this machine
            return render_problem_page(NOT_NOW, 409, home)
        case EdgenError():
            return render_problem_page(f"This cannot be read: {problem}", 409)
        case OSError():  # a file was moved or damaged while it was read
            log.warning("%s %s: %s", request.method, request.path, problem)
            return render_problem_page(_CHANGING, 409, home)
    log.error("%s %s", request.method, request.path, exc_info=problem)
    said = "edgen failed to make this page. The terminal of the server says more."
    return render_problem_page(said, 500, home)


def _make_cookie_name(request: web.Request) -> str:
    """Return the name of the cookie for the port of a request, so that two servers of one host can be used at
    once."""
    return f"{COOKIE}_{request.url.port}"


def render_problem_page(message: str, status: int, home: str = "/") -> web.Response:
    """Return a page with one sentence about a problem. `home`: the target of its link; empty: no link."""
    return answer_html(render("problem.html.j2", message=message, home=home), status)


def find_home(request: web.Request) -> str:
    """Return the page to which a problem page links: a person's task; for the owner, the list of the run in
    the address, or all runs; empty for an unknown visitor."""
    visitor = request.get(VISITOR)
    if visitor is None or visitor.invitation is not None:
        return "" if visitor is None else "/task"
    listed = f"/run/{request.match_info.get('run', '')}"
    known = any(listed == f"/run/{slug}" for slug, _ in request.app[SOURCES].list_names())
    return listed if known and request.path != listed else "/"
