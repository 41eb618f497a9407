"""A Chat Completions server with a few slots and a queue, like a local server."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

from aiohttp import web

from tests.execution.service import Service


@dataclass
class SlottedServer(Service):
    """A server that works on `slots` calls at once, `latency` seconds each; others wait in order. A client
    that disconnects leaves the queue. `pages` describe the server, by path; `looked_at` counts their
    requests. While `loading`, it answers like llama.cpp."""

    hangs_up: ClassVar[bool] = True
    slots: int = 4
    pages: dict[str, Any] = field(default_factory=dict)
    looked_at: Counter[str] = field(default_factory=Counter)
    loading: bool = False
    most: int = 0
    """The most calls at once."""
    first: float = 0.0
    last: float = 0.0
    """The times of the first call and of the last answer."""

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.slots)
        self._inside = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.loading:
            said = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
            return web.json_response(said, status=503)
        if request.method == "GET":
            self.looked_at[request.path] += 1
            page = self.pages.get(request.path)
            if isinstance(page, str):
                return web.Response(text=page)
            return web.Response(status=404) if page is None else web.json_response(page)
        self._inside += 1
        self.first = self.first or time.monotonic()
        self.most = max(self.most, self._inside)
        try:
            async with self._free:
                return await super().handle(request)
        finally:
            self._inside -= 1
            self.last = time.monotonic()
