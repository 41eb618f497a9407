"""A Chat Completions server that records its requests, and functions that run `edgen` with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
from aiohttp import web

from edgen.core.values import Message
from edgen.simulator.schemas.structured import read_schema
from edgen.simulator.text import respond
from tests import ROOT as ROOT  # many tests import it from here
from tests import fork_server
from tests.fork_server import Forked

Process = asyncio.subprocess.Process | Forked
ServiceT = TypeVar("ServiceT", bound="Service")
Trouble = Callable[["Service", int], Awaitable[web.StreamResponse | None]]


@dataclass
class Service:
    """A server that answers like the simulator. `asked` counts requests by their seed, which identifies the
    call in a job with `seed: auto`; `answered` counts requests that got a conversation. After `hold_after`
    requests, others wait for `release`, so that a process works for as long as a test needs."""

    hangs_up: ClassVar[bool] = False
    """Whether work on a request stops when its client disconnects."""
    latency: float = 0.0
    trouble: Trouble | None = None
    url: str = ""
    asked: Counter[int] = field(default_factory=Counter)
    answered: Counter[int] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
    hold_after: int | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self.released.set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":  # the server reports nothing about itself
            return web.Response(status=404)
        body: dict[str, Any] = msgspec.json.decode(await request.read())
        seed = body.get("seed", 0)
        self.asked[seed] += 1
        if self.trouble is not None and (response := await self.trouble(self, seed)) is not None:
            return response
        if self.hold_after is not None and self.asked.total() > self.hold_after:
            await self.released.wait()
        await asyncio.sleep(self.latency)
        self.answered[seed] += 1
        messages = [Message(m["role"], m["content"]) for m in body["messages"]]
        schema = schema_of(body)
        reply = respond(
            messages,
            seed=seed,
            max_tokens=body.get("max_tokens"),
            json_mode=schema is not None,
            schema=schema,
        )
        return completion(reply.text, reply.finish_reason)


def schema_of(body: dict[str, Any]) -> bytes | None:
    """Return the schema that a request's answer must fit, in the simulator's form."""
    form = body.get("response_format")
    return None if form is None else read_schema(form["json_schema"]["schema"])


def completion(text: str, finish_reason: str = "stop") -> web.Response:
    """Return a Chat Completions answer."""
    answer = {
        "model": "recorded",
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20},
    }
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


@contextlib.asynccontextmanager
async def serve(service: ServiceT, port: int = 0) -> AsyncIterator[ServiceT]:
    """Serve on a port of this machine; 0 takes a free one. Connections break at the end."""
    runner = web.ServerRunner(
        web.Server(service.handle, handler_cancellation=service.hangs_up), shutdown_timeout=0.1
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024, reuse_address=True)
    await site.start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield service
    finally:
        await runner.cleanup()


def port_of(service: Service) -> int:
    """Return the service's port, to start it again there."""
    return int(service.url.split(":")[2].split("/")[0])


CONVERSATIONS = 120  # the default of a job


def job_text(url: str, **changes: Any) -> str:
    """Return a job for the service, as YAML (a superset of JSON)."""
    job: dict[str, Any] = {
        "name": "t",
        "seed": 3,
        "conversations": CONVERSATIONS,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "backends": {"default": {"type": "openai", "model": "recorded", "base_url": url, "seed": "auto"}},
        "limits": {"in_flight": 32},
    }
    return json.dumps(job | changes)


@dataclass(frozen=True)
class Ended:
    """The end of an edgen process."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:
        return json.loads(self.out)


async def start(*arguments: str | Path, module: str = "edgen") -> Forked:
    """Start `edgen`, or a module in its place, with the arguments."""
    code = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return await fork_server.start(*arguments, code=None if module == "edgen" else code)


async def end(process: Process, timeout: float = 180) -> Ended:
    """Wait for the end of a process."""
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout)
    except TimeoutError:
        process.send_signal(signal.SIGKILL)
        raise
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def edgen(*arguments: str | Path, timeout: float = 300) -> Ended:
    """Run `edgen` to its end, in a process that has run other commands."""
    return Ended(*await asyncio.wait_for(fork_server.run_in_turn(*arguments), timeout))


async def edgen_alone(*arguments: str | Path, timeout: float = 300) -> Ended:
    """Run `edgen` to its end, in a process of its own."""
    return await end(await start(*arguments), timeout)


async def until_it_says(process: Process, words: str) -> None:
    """Wait until the process has printed these words on stderr."""
    assert process.stderr is not None
    while words not in (line := (await process.stderr.readline()).decode()):
        assert line, f"it ended without saying {words!r}"


def files(folder: Path) -> dict[str, bytes]:
    """Return the finished files of a run, byte for byte."""
    return {path.name: path.read_bytes() for path in sorted((folder / "shards").iterdir())}


def equation(facts: Any) -> bool:
    """Return whether planned = accepted + rejected + failed + pending."""
    ended = facts["accepted"] + sum(facts["rejected"].values()) + sum(facts["failed"].values())
    return bool(facts["planned"] == ended + facts["pending"])


def write(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text)
    return path


def error(status: int, message: str = "no", **headers: str) -> web.Response:
    """Return an error in the format of Chat Completions."""
    body = json.dumps({"error": {"message": message, "type": "t", "code": None}})
    return web.Response(status=status, text=body, headers=headers, content_type="application/json")
