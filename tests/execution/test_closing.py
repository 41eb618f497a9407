"""A service that closes at intervals, on a real clock: the open time is used, and few calls are wasted.

`client/test_circuit.py` measures both in virtual time, without other load. The bounds here hold on a machine
with twenty other busy processes.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from aiohttp import web

from tests.execution.service import Service, end, equation, error, job_text, serve, start, write

PERIOD, OPEN, RETRY_AFTER = 5.0, 3.5, 1  # seconds: shorter than in a real service
CALLERS = 30  # few enough for any machine


class Closing(Service):
    """A service that refuses everything in the last part of each period; the first call
    begins the first period."""

    def __init__(self, latency: float) -> None:
        super().__init__(latency=latency, trouble=self._door)
        self.began: float | None = None
        self.refused = 0

    async def _door(self, _service: Service, _seed: int) -> web.StreamResponse | None:
        now = asyncio.get_running_loop().time()
        self.began = self.began or now
        if (now - self.began) % PERIOD < OPEN:
            return None
        self.refused += 1
        return error(429, "closed", **{"Retry-After": str(RETRY_AFTER)})


@pytest.mark.only_long
@pytest.mark.parametrize("latency", [0.4])
@pytest.mark.crash
async def test_most_of_the_open_time_is_used(tmp_path: Path, latency: float) -> None:
    async with serve(Closing(latency)) as service:
        assert isinstance(service, Closing)
        limits = {"in_flight": CALLERS}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=100_000, limits=limits))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        while service.began is None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(OPEN / 2)
        early = service.answered.total()
        await asyncio.sleep(OPEN / 2)
        # This machine's rate while the service is open, with its other load.
        first = service.answered.total()
        rate = (first - early) / (OPEN / 2)
        await asyncio.sleep(2 * PERIOD - 1.0 - OPEN)  # until shortly before the second closing ends
        answered, refused = service.answered.total(), service.refused
        closings = 1 + int((asyncio.get_running_loop().time() - service.began - OPEN) / PERIOD)
        process.send_signal(signal.SIGTERM)
        ended = await end(process)
    assert ended.code == 143, ended.err
    assert equation(ended.facts)
    assert not ended.facts["failed"]
    assert refused >= 3, "it was not closed at all"
    # In the second open time: 0.6 to 0.9 on a quiet machine.
    assert answered - first >= 0.25 * rate * OPEN
    # Callers that retry one by one would be refused at least twice in each closing.
    assert refused < 1.3 * closings * CALLERS, "each closing costs those in flight at most, and a few probes"
