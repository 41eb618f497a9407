"""A server that answers as a test sets it up, and keeps its requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from edgen.core.values import Address, Message, Request

# An environment that lets any key go to the tests' servers.
TRUSTING = {"EDGEN_TRUSTED_HOSTS": "127.0.0.1, localhost"}


@dataclass(frozen=True)
class Answer:
    """One scripted answer. `act` "hang" never answers; "cut" closes in the middle of the body."""

    body: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    act: Literal["answer", "hang", "cut"] = "answer"


def answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """Return a JSON answer; underscores in header names become hyphens."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Answer(body, status, {name.replace("_", "-"): text for name, text in headers.items()})


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FakeServer:
    """A server that gives its answers in order and repeats the last one."""

    def __init__(self) -> None:
        self.script: list[Answer] = [Answer()]
        self.seen: list[Seen] = []
        self.arrived = asyncio.Event()
        self.url = ""

    def says(self, *script: Answer) -> None:
        """Answer with this script from now on, and forget earlier requests."""
        self.script = list(script)
        self.seen.clear()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.method, str(request.rel_url), headers, await request.read()))
        self.arrived.set()
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if step.act == "hang":
            await asyncio.sleep(3600)
        if step.act == "cut":
            response = web.StreamResponse(headers={"Content-Length": str(len(step.body) + 100)})
            await response.prepare(request)
            await response.write(step.body)
            assert request.transport is not None
            request.transport.abort()
            return response
        headers = {"Content-Type": "application/json", **step.headers}
        return web.Response(body=step.body, status=step.status, headers=headers)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[FakeServer]:
    """Serve on a free port of this machine; yield the FakeServer."""
    fake = FakeServer()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()


@dataclass
class RawServer:
    """The address of a server of raw bytes, and everything it received."""

    url: str = ""
    received: bytes = b""


@contextlib.asynccontextmanager
async def raw_serving(script: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Run a server that reads once, sends these bytes, HTTP or not, and closes; yield its
    address and what it received."""
    raw = RawServer()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raw.received += await reader.read(1 << 16)
        writer.write(script)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield raw
    finally:
        server.close()


def request(*texts: str, system: str | None = None, seed: int = 7, scale: int = 1) -> Request:
    """Return a request whose messages are the user's and the assistant's in turn."""
    roles = ("user", "assistant")
    messages = [Message(roles[i % 2], text) for i, text in enumerate(texts or ("hello",))]
    if system is not None:
        messages.insert(0, Message("system", system))
    return Request(Address(0, 0), tuple(messages), seed=seed, max_tokens_scale=scale)
