"""A service that is closed for ten seconds of every thirty, and how much of the rest `edgen generate` uses.

python -m bench.closing LATENCY [never] serves on a free port of this machine, prints its address, and answers
GET /counts; `never`: it never closes.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from aiohttp import web

from bench.measure import ROOT

PERIOD, OPEN, RETRY_AFTER = 30.0, 20.0, 2  # seconds
IN_FLIGHT = 200
_TEXT = "Conversation:\n[\n Teacher: \"What do plants eat?\",\n Student: \"Light! [end of conversation]\"\n]\nProbability: \"0.8\""  # fmt: skip
_ANSWER = json.dumps(
    {
        "model": "closing",
        "choices": [{"message": {"role": "assistant", "content": _TEXT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 40},
    }
).encode()
_REFUSAL = json.dumps({"error": {"message": "closed", "type": "rate_limit", "code": None}}).encode()


class Service:
    """A service that counts its answers and refusals; the first call opens it."""

    def __init__(self, latency: float, *, closes: bool) -> None:
        self.latency = latency
        self.open = OPEN if closes else PERIOD  # seconds of every period
        self.answered = self.refused = 0
        self._began: float | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/counts":
            return web.json_response({"answered": self.answered, "refused": self.refused})
        await request.read()
        clock = asyncio.get_running_loop().time
        self._began = self._began or clock()
        if (clock() - self._began) % PERIOD >= self.open:
            self.refused += 1
            return web.Response(
                status=429,
                body=_REFUSAL,
                headers={"Retry-After": str(RETRY_AFTER)},
                content_type="application/json",
            )
        await asyncio.sleep(self.latency)
        self.answered += 1
        return web.Response(body=_ANSWER, content_type="application/json")


async def _serve(latency: float, *, closes: bool) -> None:
    runner = web.ServerRunner(web.Server(Service(latency, closes=closes).handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


def closing_run(folder: Path, latency: float, seconds: float, *, closes: bool = True) -> tuple[int, int]:
    """Return the service's (answers, refusals) in this many seconds of 200 conversations at once."""
    name = f"{latency:g}-{closes}"
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.closing", str(latency), *([] if closes else ["never"])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        backend = f"backends.default={{type: openai, model: closing, base_url: '{url}/v1'}}"
        with (folder / f"{name}.log").open("w") as log:
            run = subprocess.Popen(
                [sys.executable, "-m", "edgen", "generate", str(ROOT / "jobs" / "quickstart.yaml"),
                 "-n", "1000000", "-o", str(folder / name), "--set", backend,
                 "--set", f"limits.in_flight={IN_FLIGHT}"],
                stdout=log, stderr=log, cwd=ROOT,
            )  # fmt: skip
        while not _counts(url)[0]:
            time.sleep(0.05)
        time.sleep(max(0.0, seconds - latency))
        counts = _counts(url)
        run.send_signal(signal.SIGTERM)
        run.wait(60)
        return counts
    finally:
        server.kill()
        server.wait(10)


def _counts(url: str) -> tuple[int, int]:
    with urllib.request.urlopen(f"{url}/counts") as answer:
        found = json.load(answer)
    return found["answered"], found["refused"]


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), closes="never" not in sys.argv))
