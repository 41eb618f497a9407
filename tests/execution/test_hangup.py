"""A terminal that is closed ends a run as Ctrl-C does; one that is to outlive its terminal goes on."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests import ROOT
from tests.execution.service import Service, edgen, job_text, serve
from tests.fork_server import use_default_signals

pytestmark = pytest.mark.crash

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}


async def test_a_terminal_that_is_closed_ends_the_run_cleanly(tmp_path: Path) -> None:
    async with serve(Service(latency=0.05)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, limits={"in_flight": 8}))
        ours, theirs = os.openpty()

        def take_terminal() -> None:
            use_default_signals()
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "edgen", "generate", job, "-o", tmp_path / "run",
            stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_terminal, env=ENVIRONMENT,
        )  # fmt: skip
        os.close(theirs)
        while service.answered.total() < 40:
            os.set_blocking(ours, False)
            try:
                os.read(ours, 1 << 16)
            except BlockingIOError:
                await asyncio.sleep(0.005)
        os.close(ours)  # whoever writes to the terminal from now on gets an error
        assert await asyncio.wait_for(process.wait(), 60) == 129
        assert service.asked.total() < 300
        status = await edgen("status", tmp_path / "run", "--json")
        assert status.facts["state"] == "stopped"
        assert status.facts["calls"]["made"] == service.answered.total(), "what was in flight is kept"


async def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    async with serve(Service(latency=0.05)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=60, limits={"in_flight": 8}))
        process = await asyncio.create_subprocess_exec(
            "nohup", sys.executable, "-m", "edgen", "generate", job, "-o", tmp_path / "run",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, env=ENVIRONMENT,
        )  # fmt: skip
        while service.answered.total() < 10:
            await asyncio.sleep(0.005)
        process.send_signal(signal.SIGHUP)
        assert await asyncio.wait_for(process.wait(), 60) == 0
        assert service.answered.total() == 60
