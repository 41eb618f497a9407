"""A closed terminal ends a run like Ctrl-C does; a run under nohup continues."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests import fork_server
from tests.execution.service import CONVERSATIONS, Service, edgen, job_text, serve

pytestmark = pytest.mark.crash

EDGEN = "import runpy; runpy.run_module('edgen', run_name='__main__', alter_sys=True)"
# The first terminal that a session leader opens becomes its controlling terminal.
AT_A_TERMINAL = f"""
import os
os.setsid()
terminal = os.open({{!r}}, os.O_RDWR)
for number in range(3):
    os.dup2(terminal, number)
os.close(terminal)
{EDGEN}
"""
# The effect of nohup.
NOHUP = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {EDGEN}"


async def test_a_terminal_that_is_closed_ends_the_run_cleanly(tmp_path: Path) -> None:
    async with serve(Service(latency=0.05)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, limits={"in_flight": 8}))
        ours, theirs = os.openpty()
        code = AT_A_TERMINAL.format(os.ttyname(theirs))
        process = await fork_server.start("generate", job, "-o", tmp_path / "run", code=code)
        os.set_blocking(ours, False)
        while service.answered.total() < 40:
            try:
                os.read(ours, 1 << 16)
            except BlockingIOError:
                await asyncio.sleep(0.005)
        os.close(theirs)
        os.close(ours)  # from now on, writes to the terminal fail
        assert await asyncio.wait_for(process.wait(), 60) == 129
        assert service.asked.total() < CONVERSATIONS
        status = await edgen("status", tmp_path / "run", "--json")
        assert status.facts["state"] == "stopped"
        assert status.facts["calls"]["made"] == service.answered.total(), "what was in flight is kept"


async def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    async with serve(Service(latency=0.05)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=60, limits={"in_flight": 8}))
        process = await fork_server.start("generate", job, "-o", tmp_path / "run", code=NOHUP)
        while service.answered.total() < 10:
            await asyncio.sleep(0.005)
        process.send_signal(signal.SIGHUP)
        assert await asyncio.wait_for(process.wait(), 60) == 0
        assert service.answered.total() == 60
