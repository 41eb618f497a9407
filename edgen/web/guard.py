"""Guards of the web app: who may see a page, and what a page may do.

The owner enters by a link with a key that is drawn at every start; it is exchanged for a cookie that scripts
cannot read and other sites cannot send. Requests need a Host that no other machine can own. A content
security policy lets pages load nothing from elsewhere and run no inline script.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

from edgen.simulator.hosts import Hosts

COOKIE = "edgen_web"
ENTER = "/enter"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_MOST_ADDRESS = 8_192  # characters of a request's path and query

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Guard:
    """A guard, whose `admit` is a middleware. `key` is the owner's, for the link that opens the pages."""

    def __init__(self, host: str) -> None:
        self.key = secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(24)
        self._hosts = Hosts(host)

    def link(self, url: str) -> str:
        """Return the owner's link to the server at `url`."""
        return f"{url}{ENTER}?key={self.key}"

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, or refuse it; every answer gets the headers."""
        try:
            answer = self._refuse(request) or await handler(request)
        except web.HTTPException as refusal:
            answer = web.Response(status=refusal.status, text=refusal.text, headers=_kept(refusal))
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    def _refuse(self, request: web.Request) -> web.Response | None:
        """Return the refusal of a request; None if it may be answered."""
        if len(request.path_qs) > _MOST_ADDRESS:
            return web.Response(status=414, text="This address is too long.")
        if (problem := self._hosts.refusal(request.headers)) is not None:
            return web.Response(status=403, text=problem)
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="These pages are for reading.")
        if request.path == ENTER:
            return self._enter(request)
        if not hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._session.encode()):
            return web.Response(
                status=403, text="Open the link that `edgen web` printed: it lets this browser in."
            )
        return None

    def _enter(self, request: web.Request) -> web.Response:
        given = request.query.get("key", "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.key.encode()):
            return web.Response(
                status=403, text="This link is of another start; use the one that `edgen web` printed last."
            )
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(COOKIE, self._session, httponly=True, samesite="Strict", path="/")
        return answer


def _kept(refusal: web.HTTPException) -> dict[str, str]:
    """Return the headers of a refusal that say more than its type of content."""
    return {name: value for name, value in refusal.headers.items() if name in ("Location", "Allow")}
