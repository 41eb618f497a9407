"""Jobs for environments, and a server that watches its requests."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from tests.execution.service import Service

SAID = "Let us look at it together, with a picture."


def job(folder: Path, **changes: Any) -> Path:
    values: dict[str, Any] = {
        "name": "t", "seed": 3, "conversations": 20, "protocol": "selfplay", "space": "education_dialogue",
        "selfplay": {"closing": "student", "max_turns": 12}, "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(json.dumps(values | changes))
    return path


def served(folder: Path, url: str, roles: tuple[str, ...] = ("student",), **changes: Any) -> Path:
    """Return the path of the job with a server that answers for each role, named by its model."""
    backend = {"type": "openai", "base_url": url, "seed": "auto", "max_tokens": 200}
    backends = {role: {**backend, "model": role} for role in roles}
    default = {**backend, "model": "default"}
    return job(folder, backends={"default": default, **backends}, **changes)


@dataclass
class Watching(Service):
    """A server that notes its requests.

    It counts the calls in flight at once and the connections, and keeps the requests by role.
    """

    at_once: int = 0
    most_at_once: int = 0
    connections: set[asyncio.BaseTransport] = field(default_factory=set)
    seen: list[tuple[str, str]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":  # its number of slots, which it does not report
            return await super().handle(request)
        assert request.transport is not None
        self.connections.add(request.transport)
        body = msgspec.json.decode(await request.read())
        self.seen.append((body["model"], "\n".join(message["content"] for message in body["messages"])))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await super().handle(request)
        finally:
            self.at_once -= 1


async def until(true: Any, patience: float = 20.0) -> None:
    """Wait until a condition holds."""
    for _ in range(round(patience / 0.005)):
        if true():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came true")
