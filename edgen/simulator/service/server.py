"""The simulator over HTTP, in OpenAI's, Gemini's and Anthropic's formats, for rehearsals with any client.

Any key and any model name is accepted. A body with a `seed` gets the answer of that seed; without one, the
k-th identical answered request gets the k-th variation, at temperature 0 always the first. Every answer
carries the header `x-edgen-simulated: true`. Batches of all three are served along with single calls, with
the same answers. Requests meant for another host are refused (see `hosts`).
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
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edgen.core.errors import InputError
from edgen.core.system import handle_signals
from edgen.simulator import faults as fault
from edgen.simulator.answering import SimulatedModel
from edgen.simulator.options import ServerOptions
from edgen.simulator.prompts.prompt_scene import SceneFinder
from edgen.simulator.service import (
    anthropic_batches,
    gemini_batches,
    openai_batches,
    wire_anthropic,
    wire_gemini,
    wire_openai,
    wire_responses,
)
from edgen.simulator.service.batches import Store
from edgen.simulator.service.hosts import Hosts
from edgen.simulator.service.wire import JSON, MARK, MODEL, BadCall, Refusal, WireCall, WireFormat

_EVENTS = {**MARK, "Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
_MAX_BODY = 64 * 1024 * 1024
# Modules that implement Wire.
_OPENAI: WireFormat = wire_openai
_RESPONSES: WireFormat = wire_responses
_GEMINI: WireFormat = wire_gemini
_ANTHROPIC: WireFormat = wire_anthropic


class _Route(NamedTuple):
    """The target of a path: action, format and model."""

    action: str
    wire: WireFormat
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
    """Return aiohttp's log on requests. Senders of invalid HTTP got an error; that is not a fault of the
    server."""
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
        self._hosts = Hosts(options.host, options.allow_hosts)
        self._latency = options.latency_ms / 1000
        self._slots = options.slots
        self._free = contextlib.nullcontext() if options.slots is None else asyncio.Semaphore(options.slots)
        scenes = SceneFinder(options.spaces)
        if options.spaces:
            scenes.load()
        self._answering = SimulatedModel(fault.parse(options.faults), options.seed, scenes)
        self._store = Store(self._answering, options.batch_seconds, options.batch_window)
        self._openai = openai_batches.OpenAIBatchService(self._store)
        self._gemini = gemini_batches.GeminiBatchService(self._store)
        self._anthropic = anthropic_batches.AnthropicBatchService(self._store)

    async def aclose(self) -> None:
        """Cancel all batches and remove their files."""
        await self._store.aclose()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if (why := self._hosts.explain_refusal(request.headers)) is not None:
            return _answer_refusal(wire_openai.make_error(403, why))
        vendor = _find_vendor(request)
        route = _find_route(request.path, vendor)
        if route is None:
            return await self._answer_batches(request, vendor)
        wire = route.wire
        expected = "POST" if route.action in ("complete", "stream", "count") else "GET"
        if request.method != expected:
            return _answer_refusal(
                wire.make_error(405, f"{request.path} takes {expected}, not {request.method}.")
            )
        if route.action == "root":
            return web.Response(text=_GREETING, headers=MARK)
        if route.action == "props":
            if self._slots is None:
                return _answer_refusal(wire.make_error(404, "This server answers all calls at once."))
            return web.json_response({"total_slots": self._slots}, headers=MARK)
        if route.action == "models":
            return web.Response(body=wire.render_models([MODEL]), headers=JSON)
        if route.action == "model":
            return web.Response(body=wire.encode_model(route.model), headers=JSON)
        body = await request.read()
        try:
            if route.action == "count":
                return web.Response(body=wire.count(body), headers=JSON)
            call = wire.read(body, route.model, stream=route.action == "stream")
        except BadCall as problem:
            return _answer_refusal(wire.make_error(400, str(problem), problem.field))
        async with self._free:
            return await self._complete(request, call, wire)

    async def _answer_batches(self, request: web.BaseRequest, vendor: WireFormat) -> web.StreamResponse:
        beside = (self._gemini, self._openai) if vendor is _GEMINI else (self._openai, self._gemini)
        for service in (self._anthropic, *beside):
            answer = await service.handle(request)
            if answer is not None:
                return _answer_refusal(answer) if isinstance(answer, Refusal) else answer
        return _answer_refusal(vendor.make_error(404, f"There is nothing at {request.path}."))

    async def _complete(
        self, request: web.BaseRequest, call: WireCall, wire: WireFormat
    ) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._latency
        key = self._answering.make_key(call)
        struck = self._answering.strike(key)
        if struck is not None and struck.name == "slow":
            due += struck.seconds or 0.0
            struck = None
        # Make the answer before the wait, so that its time counts towards the latency, and requests of one
        # burst do not stay in bursts.
        replies = self._answering.make_replies(call, key) if struck is None else []
        if struck is not None and struck.name == "hang":
            await asyncio.Event().wait()  # until the client gives up, which cancels this task
        if (delay := due - loop.time()) > 0:
            await asyncio.sleep(delay)
        if struck is not None:
            return _answer_fault(request, struck, call, wire)
        name = key.hex()[:24]
        if not call.stream:
            return web.Response(body=wire.answer(call, replies, name), headers=JSON)
        response = web.StreamResponse(headers=_EVENTS)
        await response.prepare(request)
        for event in wire.render_events(call, replies, name):
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
_FIXED = {
    "/": _Route("root", _OPENAI),
    "/v1": _Route("root", _OPENAI),
    "/props": _Route("props", _OPENAI),  # as llama.cpp's
    "/v1/chat/completions": _Route("complete", _OPENAI),
    "/chat/completions": _Route("complete", _OPENAI),
    "/v1/responses": _Route("complete", _RESPONSES),
    "/responses": _Route("complete", _RESPONSES),
    "/v1/responses/input_tokens": _Route("count", _RESPONSES),
    "/v1/messages": _Route("complete", _ANTHROPIC),
    "/v1/messages/count_tokens": _Route("count", _ANTHROPIC),
    "/v1beta/models": _Route("models", _GEMINI),
    "/v1alpha/models": _Route("models", _GEMINI),
}
# Vertex AI puts the project and its region before a model.
_MODEL_PATH = re.compile(
    r"(?:/(v1|v1beta|v1alpha))?(?:/projects/[^/]+/locations/[^/]+/publishers/google)?/models/([^:]+)(:?)(.*)"
)
_METHODS = {"generateContent": "complete", "streamGenerateContent": "stream", "countTokens": "count"}
# All vendors have a /v1/models, and clients without a configured version request /models; their headers
# identify the vendor.
_HEADERS = {"x-goog-api-key": _GEMINI, "x-goog-api-client": _GEMINI, "anthropic-version": _ANTHROPIC}


def _find_vendor(request: web.BaseRequest) -> WireFormat:
    return next((wire for header, wire in _HEADERS.items() if header in request.headers), _OPENAI)


def _find_route(path: str, vendor: WireFormat) -> _Route | None:
    """Return the target of a path, None if there is none."""
    if path in ("/v1/models", "/models"):
        return _Route("models", vendor)
    if path in _FIXED:
        return _FIXED[path]
    found = _MODEL_PATH.fullmatch(path)
    if found is None:
        return None
    version, model, colon, method = found.groups()
    if method in _METHODS:
        return _Route(_METHODS[method], _GEMINI, model)
    if colon:
        return None
    return _Route("model", vendor if version in ("v1", None) else _GEMINI, model)


def _answer_fault(
    request: web.BaseRequest, struck: fault.Fault, call: WireCall, wire: WireFormat
) -> web.Response:
    """Return a transport fault as seen by the client: an error, or a broken connection."""
    if struck.name != "reset":
        return _answer_refusal(wire.make_fault(struck, call))
    if request.transport is not None:
        request.transport.abort()
    return web.Response()  # not sent


def _answer_refusal(refusal: Refusal) -> web.Response:
    return web.Response(status=refusal.status, body=refusal.body, headers={**JSON, **refusal.headers})
