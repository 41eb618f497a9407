"""The simulator over HTTP, in OpenAI's, Gemini's and Anthropic's formats, for rehearsals with any client.

Any key and any model name is accepted. A body with a `seed` gets the answer of that seed. Without a seed, the
k-th identical answered request gets the k-th variation, at temperature 0 always the first. Every answer
carries the header `x-edgen-simulated: true`. Batches of all three vendors get the same answers as single
calls. Requests to another host name are refused (see `hosts`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edgen.core.errors import InputError
from edgen.core.system import handle_signals
from edgen.simulator import faults as fault
from edgen.simulator.options import ServerOptions
from edgen.simulator.prompts.prompt_scene import SceneFinder
from edgen.simulator.service.answering import SimulatedModel
from edgen.simulator.service.anthropic import MESSAGES
from edgen.simulator.service.anthropic_batches import AnthropicBatchServer
from edgen.simulator.service.batch_server import BatchFaults, BatchServer, reply
from edgen.simulator.service.batches import Store
from edgen.simulator.service.dialect import (
    JSON,
    MARK,
    MODEL,
    MODEL_PATHS,
    Action,
    BadCall,
    Dialect,
    Refusal,
    WireCall,
)
from edgen.simulator.service.gemini import GEMINI
from edgen.simulator.service.gemini_batches import GeminiBatchServer
from edgen.simulator.service.hosts import Hosts
from edgen.simulator.service.openai_batches import OpenAIBatchServer
from edgen.simulator.service.openai_chat import CHAT
from edgen.simulator.service.openai_responses import RESPONSES

DIALECTS: tuple[Dialect, ...] = (CHAT, RESPONSES, GEMINI, MESSAGES)
_EVENTS = {**MARK, "Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
_MAX_BODY = 64 * 1024 * 1024


class _Route(NamedTuple):
    """The target of a path: action, dialect and model."""

    action: Action | Literal["root", "props"]
    dialect: Dialect
    model: str = ""


@asynccontextmanager
async def serve_options(options: ServerOptions) -> AsyncIterator[str]:
    """Serve within the context; yield the address, like `http://127.0.0.1:8377`.

    Raises InputError if the faults are invalid or the address is unavailable.
    """
    handler = _Handler(options)
    # A disconnected client must not leave a hung request, so cancellation is on.
    server = web.Server(
        handler, request_factory=_make_request, handler_cancellation=True, access_log=None, logger=_make_log()
    )
    runner = web.ServerRunner(server, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, options.host, options.port, backlog=1024)
        try:
            await site.start()
        except (OSError, OverflowError) as problem:
            raise _make_address_error(options, problem) from None
        port = runner.addresses[0][1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
        await handler.aclose()


async def serve(options: ServerOptions, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `announce` gets the address once it answers."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with handle_signals(loop, (signal.SIGINT, signal.SIGTERM), lambda _: stop.set()):
        async with serve_options(options) as address:
            announce(address)
            await stop.wait()


def _make_address_error(options: ServerOptions, problem: OSError | OverflowError) -> InputError:
    if getattr(problem, "errno", None) == errno.EADDRINUSE:
        return InputError(
            f"Port {options.port} on {options.host} is in use. Choose another one with --port, or --port 0 "
            "for any."
        )
    reason = getattr(problem, "strerror", None) or problem
    return InputError(
        f"Cannot listen on {options.host}, port {options.port}: {reason}. Choose others with --host and "
        "--port."
    )


def _make_log() -> logging.Logger:
    """Return aiohttp's log without its messages on invalid HTTP, since those clients got an error."""
    log = logging.getLogger("edgen.simulator")
    log.addFilter(_is_fault)  # added once, even if called again
    return log


def _is_fault(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_MAX_BODY)


class _Handler:
    """Handler of every request, called by aiohttp."""

    def __init__(self, options: ServerOptions) -> None:
        self._hosts = Hosts(options.host, "--allow-host NAME", options.allow_hosts)
        self._latency = options.latency_ms / 1000
        self._slots = options.slots
        self._free = contextlib.nullcontext() if options.slots is None else asyncio.Semaphore(options.slots)
        scenes = SceneFinder(options.spaces)
        if options.spaces:
            scenes.load()
        self._answering = SimulatedModel(fault.parse(options.faults), options.seed, scenes)
        self._store = Store(self._answering, options.batch_seconds, options.batch_window)
        faults = BatchFaults(self._answering.faults)
        kinds: tuple[type[BatchServer], ...] = (OpenAIBatchServer, GeminiBatchServer, AnthropicBatchServer)
        self._batches = [kind(self._store, faults) for kind in kinds]

    async def aclose(self) -> None:
        """Cancel all batches and remove their files."""
        await self._store.aclose()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if (why := self._hosts.explain_refusal(request.headers)) is not None:
            return _answer_refusal(CHAT.make_error(403, why))
        vendor = _find_vendor(request)
        route = _find_route(request.path, vendor)
        dialect = vendor if route is None else route.dialect
        try:
            if route is None:
                return await self._answer_batches(request, vendor)
            return await self._answer(request, route)
        except web.HTTPRequestEntityTooLarge:
            return _answer_refusal(dialect.make_error(413, f"The body is larger than {_MAX_BODY} bytes."))

    async def _answer(self, request: web.BaseRequest, route: _Route) -> web.StreamResponse:
        dialect = route.dialect
        expected = "POST" if route.action in ("complete", "stream", "count") else "GET"
        if request.method != expected:
            why = f"{request.path} takes {expected}, not {request.method}."
            return _answer_refusal(dialect.make_error(405, why))
        match route.action:
            case "root":
                return web.Response(text=_GREETING, headers=MARK)
            case "props" if self._slots is None:
                return _answer_refusal(dialect.make_error(404, "This server answers all calls at once."))
            case "props":
                return web.json_response({"total_slots": self._slots}, headers=MARK)
            case "models":
                models = dialect.list_models([dialect.describe_model(MODEL)])
                return reply(models)
            case "model":
                return reply(dialect.describe_model(route.model))
        body = await request.read()
        try:
            if route.action == "count":
                return web.Response(body=dialect.count(body), headers=JSON)
            call = dialect.read(body, route.model, stream=route.action == "stream")
        except BadCall as problem:
            return _answer_refusal(dialect.make_error(400, str(problem), problem.field))
        async with self._free:
            return await self._complete(request, call, dialect)

    async def _answer_batches(self, request: web.BaseRequest, vendor: Dialect) -> web.StreamResponse:
        # Several vendors share some paths of batches: the client's own vendor comes first.
        for service in sorted(self._batches, key=lambda service: service.dialect is not vendor):
            if (answer := await service.handle(request)) is not None:
                return _answer_refusal(answer) if isinstance(answer, Refusal) else answer
        return _answer_refusal(vendor.make_error(404, f"There is nothing at {request.path}."))

    async def _complete(
        self, request: web.BaseRequest, call: WireCall, dialect: Dialect
    ) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._latency
        key = self._answering.make_key(call)
        chosen = self._answering.choose_fault(key)
        if chosen is not None and chosen.name == "slow":
            due += chosen.seconds or 0.0
            chosen = None
        # Make the answer before the wait, so that its time counts towards the latency, and requests that
        # arrive together are not answered together.
        replies = self._answering.make_replies(call, key) if chosen is None else []
        if chosen is not None and chosen.name == "hang":
            await asyncio.Event().wait()  # until the client gives up, which cancels this task
        if (delay := due - loop.time()) > 0:
            await asyncio.sleep(delay)
        if chosen is not None:
            return _answer_fault(request, chosen, call, dialect)
        name = key.hex()[:24]
        if not call.stream:
            return web.Response(body=dialect.answer(call, replies, name), headers=JSON)
        response = web.StreamResponse(headers=_EVENTS)
        await response.prepare(request)
        for event in dialect.render_events(call, replies, name):
            await response.write(event)
        await response.write_eof()
        return response


_GREETING = (
    "This is edgen's simulator. It answers OpenAI's /v1/chat/completions and /v1/responses, Gemini's "
    "/v1beta/models/{model}:generateContent and Anthropic's /v1/messages, and takes batches: /v1/files and "
    "/v1/batches, "
    "/v1beta/files and /v1beta/models/{model}:batchGenerateContent, /v1/messages/batches. There is no model: "
    "every answer is simulated.\n"
)
# The server's own paths; the second is llama.cpp's.
_OWN: dict[str, _Route] = {
    **dict.fromkeys(("/", "/v1"), _Route("root", CHAT)),
    "/props": _Route("props", CHAT),
}
_ROUTES = [
    (dialect, action, re.compile(path))
    for dialect in DIALECTS
    for path, action in {**MODEL_PATHS, **dialect.paths}.items()
]


def _find_vendor(request: web.BaseRequest) -> Dialect:
    """Return the dialect of the request's client, by its headers; OpenAI's without them."""
    return next((one for one in DIALECTS if any(name in request.headers for name in one.headers)), CHAT)


@lru_cache(maxsize=256)
def _find_route(path: str, vendor: Dialect) -> _Route | None:
    """Return the target of a path; None if there is none. If several vendors share a path, the client's own
    counts."""
    if path in _OWN:
        return _OWN[path]
    found = [
        _Route(action, dialect, "".join(match.groups()))
        for dialect, action, pattern in _ROUTES
        if (match := pattern.fullmatch(path))
    ]
    return next((route for route in found if route.dialect is vendor), found[0] if found else None)


def _answer_fault(
    request: web.BaseRequest, chosen: fault.Fault, call: WireCall, dialect: Dialect
) -> web.Response:
    """Return a transport fault as the client sees it: an error, or a broken connection."""
    if chosen.name != "reset":
        return _answer_refusal(dialect.make_fault(chosen, call))
    if request.transport is not None:
        request.transport.abort()
    return web.Response()  # not sent


def _answer_refusal(refusal: Refusal) -> web.Response:
    return web.Response(status=refusal.status, body=refusal.body, headers={**JSON, **refusal.headers})
