"""At temperature 0, no protocol or asker sends a request twice, even if answers are unusable."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bench import real
from edgen.core.errors import EdgenError
from tests.dose import dose
from tests.execution.service import Service, completion

pytestmark = pytest.mark.integration

CASES = (*real.PROTOCOLS, *real.ASKERS)


class Recorder(Service):
    """A service that records the bodies of requests. `useless`: all answers are unreadable."""

    def __init__(self, *, useless: bool) -> None:
        super().__init__()
        self.useless = useless
        self.bodies: Counter[bytes] = Counter()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            self.bodies[await request.read()] += 1
            if self.useless:
                return completion("?")
        return await super().handle(request)


@contextlib.contextmanager
def served(service: Service) -> Iterator[str]:
    """Run a service in a thread of its own, because cases bring their own event loops; yield its address."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    urls: list[str] = []

    async def start() -> None:
        runner = web.ServerRunner(web.Server(service.handle))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        ready.set()

    def run() -> None:
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    yield urls[0]
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


WHOLE = (("schema", True), ("prose", False))


@pytest.mark.long
@pytest.mark.parametrize(
    ("forms", "useless"), [*dose((), WHOLE), ("schema", False), *dose((), [("prose", True)])]
)
def test_no_request_is_sent_twice(useless: bool, forms: str, tmp_path: Path) -> None:
    service = Recorder(useless=useless)
    with served(service) as url:
        backend: dict[str, Any] = {"type": "openai", "model": "m", "base_url": url, "temperature": 0}
        for name in CASES:
            service.bodies.clear()
            case = real.generate if name in real.PROTOCOLS else real.ask
            with contextlib.suppress(EdgenError):
                case(name, forms, backend, tmp_path / name, share=0.3)
            assert service.bodies, name
            assert max(service.bodies.values()) == 1, name
