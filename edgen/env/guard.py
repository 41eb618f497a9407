"""Guards of an environment's server: authentication and limits.

A web page anywhere can send requests to a server on this machine, and each request to this one spends the
job's money. So every request and every WebSocket needs the server's token, a name in Host that no other
machine can own, and no foreign Origin (see `edgen.simulator.service.hosts`). Input is limited in size, and
is JSON that can be encoded again.

An ASGI application around another one; it needs no library.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from edgen.core.errors import UsageError
from edgen.simulator.service.hosts import Hosts

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 1 << 20  # most bytes of a request or of a WebSocket's message
MAX_DISCARDED = 128 << 20  # most bytes read of a refused request's body
LEAST_TOKEN = 16  # characters
_DISCARDING = 10.0  # seconds
_REFUSED = 1008  # the WebSocket's code for a policy violation
_TOO_BIG = 1009
_USAGE = (
    "This server needs its token: connect to the address with the token in it, http://HOST:PORT/TOKEN, or "
    "send 'Authorization: Bearer TOKEN'."
)


class TokenGuard:
    """An ASGI application that requires a token.

    `token`: at least 16 characters valid in addresses; None draws one. `host`: the address that the server
    listens on. `allow_hosts`: further names to answer to. `at_once`: maximum concurrent HTTP requests.
    """

    def __init__(
        self,
        app: App,
        token: str | None = None,
        *,
        host: str = "127.0.0.1",
        allow_hosts: Iterable[str] = (),
        at_once: int = 64,
    ) -> None:
        self.token = secrets.token_urlsafe(24) if token is None else token
        if len(self.token) < LEAST_TOKEN or not self.token.isascii() or not _is_word(self.token):
            raise UsageError(
                f"token: expected at least {LEAST_TOKEN} ASCII letters, digits, '-', '_', '.' or '~', as "
                "secrets.token_urlsafe(24) makes them; without one, a token is drawn."
            )
        self._app = app
        self._hosts = Hosts(host, "allow_hosts=[NAME]", allow_hosts)
        self._free = at_once

    def address(self, url: str) -> str:
        """Return the address for a client of the server at `url`, with the token as its path."""
        parts = urlsplit(url)
        return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{self.token}"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or serve one WebSocket."""
        if scope["type"] not in ("http", "websocket"):  # start and end of the server
            await self._app(scope, receive, send)
            return
        inner, refusal = self._admit(scope)
        if scope["type"] == "websocket":
            if refusal is not None:
                await receive()  # reads 'websocket.connect'; closing it before acceptance becomes a 403
                await send({"type": "websocket.close", "code": _REFUSED, "reason": refusal[1][:120]})
                return
            await self._app(inner, *_check_messages(receive, send))
        elif refusal is not None:
            await _refuse(receive, send, *refusal)
        elif self._free < 1:
            limit = "The server is at its limit of requests at once; try again later."
            await _refuse(receive, send, 503, limit)
        else:
            self._free -= 1
            try:
                await self._serve(inner, receive, send)
            finally:
                self._free += 1

    def _admit(self, scope: Scope) -> tuple[Scope, tuple[int, str] | None]:
        """Return the scope without the token in its path; and (status, reason) if the request is refused,
        else None."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            title = name.decode("latin-1").title()
            if title in headers and title in ("Host", "Origin", "Authorization"):
                return scope, (400, f"The request has the header {title} twice.")
            headers[title] = value.decode("latin-1")
        if (why := self._hosts.explain_refusal(headers)) is not None:
            return scope, (403, why)
        first, slash, rest = scope["path"][1:].partition("/")
        if self._is_token(first):
            path = slash + rest or "/"
            return {**scope, "path": path, "raw_path": path.encode()}, None
        if any(map(self._is_token, _list_credentials(headers.get("Authorization", "")))):
            return scope, None
        return scope, (401, _USAGE)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode())

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if len(announced) > len(str(MAX_BODY)) or (announced.isdigit() and int(announced) > MAX_BODY):
            await _refuse(receive, send, 413, f"The body is larger than {MAX_BODY} bytes.")
            return
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client has disconnected
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                await _refuse(receive, send, 413, f"The body is larger than {MAX_BODY} bytes.")
                return
            if not message.get("more_body"):
                break
        if body and (wrong := _find_json_problem(bytes(body))) is not None:
            await _answer(send, 422, wrong)
            return
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def replay() -> Message:
            nonlocal whole
            message, whole = whole, None
            return await receive() if message is None else message

        await self._app(scope, replay, send)


def _is_word(token: str) -> bool:
    return all(char.isalnum() or char in "-_.~" for char in token)


def _list_credentials(header: str) -> list[str]:
    """Return the possible tokens in an Authorization header: the bearer's, or the password of a user."""
    scheme, _, given = header.partition(" ")
    if scheme.lower() == "bearer":
        return [given.strip()]
    if scheme.lower() == "basic":
        try:
            return [base64.b64decode(given, validate=True).decode().partition(":")[2]]
        except (binascii.Error, ValueError):
            return []
    return []


def _find_json_problem(data: bytes | str) -> str | None:
    """Return why data are not JSON that can be encoded again; None if they are.

    NaN, lone surrogates and numbers of a thousand digits pass Python's parser, and break answers that contain
    them.
    """
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError) as problem:
        return f"It is not valid JSON: {problem}."
    return None if isinstance(value, dict) else "Expected a JSON object."


def _check_messages(receive: Receive, send: Send) -> tuple[Receive, Send]:
    """Return a WebSocket's `receive` that passes on valid messages, and its `send`. Other messages are
    answered with an error; one that is too large ends the connection. Nothing is sent after the end."""
    ended = False

    async def send_until_end(message: Message) -> None:
        if not ended:
            await send(message)

    async def receive_valid() -> Message:
        nonlocal ended
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                ended = message["type"] == "websocket.disconnect"
                return message
            data = message.get("text")
            data = message.get("bytes") or b"" if data is None else data
            if len(data if isinstance(data, bytes) else data.encode("utf-8", "replace")) > MAX_BODY:
                await send({"type": "websocket.close", "code": _TOO_BIG})
                ended = True
                return {"type": "websocket.disconnect", "code": _TOO_BIG}
            if (wrong := _find_json_problem(data)) is None:
                return message
            error = {"type": "error", "data": {"message": wrong, "code": "INVALID_JSON"}}
            await send({"type": "websocket.send", "text": json.dumps(error)})

    return receive_valid, send_until_end


async def _refuse(receive: Receive, send: Send, status: int, why: str) -> None:
    """Answer a request whose body is unread, after discarding at most `MAX_DISCARDED` bytes of it.

    A server closes the connection after an answer to an unread body. A client that is still sending would see
    a broken connection instead of the answer.
    """
    left = MAX_DISCARDED
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARDING):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    break
    await _answer(send, status, why)


async def _answer(send: Send, status: int, why: str) -> None:
    """Answer a request with a sentence."""
    body = json.dumps({"detail": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
