"""A slow disk, and a ledger that another program holds: no more requests are sent than can be stored."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.execution.service import (
    Service,
    edgen,
    end,
    equation,
    files,
    job_text,
    serve,
    start,
    until_it_says,
    write,
)
from tests.execution.test_kill import stored_calls

# `edgen generate JOB -o FOLDER` with SECONDS before each commit: sys.argv is JOB FOLDER SECONDS.
SLOW = """
import asyncio, os, sys, time
from pathlib import Path
from edgen.providers import make
from edgen.planning.load import load_plans
from edgen.execution.run import ActiveRun
from edgen.execution.session import RunSession
from edgen.store.ledger import Ledger
from edgen.store.run_folder import RunFolder

async def main(job, folder, seconds):
    _, plans = load_plans(job, [])
    plan, rundir = plans[""], RunFolder(folder)
    backends = {
        name: make(config, timeout=60, connections=64, environ={})
        for name, config in plan.job.backends.items()
    }
    rundir.prepare()
    with rundir.lock_for_writing():
        async with Ledger(rundir.ledger, before_commit=lambda: time.sleep(seconds)) as ledger:
            session = RunSession(plan, backends, ledger, roles=plan.roles)
            run = ActiveRun(plan, session, rundir)
            run.bind_folder(print)
            async with session.record():
                await run.make_all()
                await run.write()

asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))
"""


BUDGET = {"max_tokens": 10**9}


@pytest.mark.parametrize(("in_flight", "limits"), [(1, {}), (4, {}), (4, BUDGET), (32, {})])
@pytest.mark.crash
async def test_a_kill_costs_no_more_than_what_was_in_flight(
    tmp_path: Path, in_flight: int, limits: dict[str, Any]
) -> None:
    async with serve(Service(latency=0.002)) as service:
        backend = {
            "type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 900,
        }  # fmt: skip
        limits = limits | {"in_flight": in_flight}
        job = write(
            tmp_path / "job.yaml",
            job_text("", conversations=3 * in_flight + 6, backends={"default": backend}, limits=limits),
        )
        folder = tmp_path / "run"
        process = await fork_server.start(job, folder, "0.15", code=SLOW)
        while service.answered.total() < 2 * in_flight + 1:
            assert process.returncode is None, await end(process)
            await asyncio.sleep(0.002)
        process.kill()
        await end(process)
        stored = stored_calls(folder)
        lost = set(service.answered) - stored
        assert len(lost) <= in_flight, "more answers were waiting for the disk than may be in flight"
        ended = await edgen("generate", job, "-o", folder, "--json")
        assert ended.code == 0, ended.err
        again = sum(count - 1 for count in service.asked.values())
        assert again <= in_flight
        assert all(service.asked[seed] == 1 for seed in stored)


class Held:
    """A program that holds a ledger for writing."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=100, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")

    def free(self) -> None:
        self._connection.execute("ROLLBACK")
        self._connection.close()


async def test_a_ledger_that_another_program_holds_is_waited_for(tmp_path: Path) -> None:
    in_flight = 4
    async with serve(Service(latency=0.01)) as service:
        limits = {"in_flight": in_flight}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=80, limits=limits))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        while service.answered.total() < 20:
            await asyncio.sleep(0.002)
        held = Held(tmp_path / "run" / "run.db")
        before = service.asked.total()
        while (asked := service.asked.total()) < before + in_flight and process.returncode is None:
            stored = len(stored_calls(tmp_path / "run"))
            if service.answered.total() - stored >= in_flight:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        assert service.asked.total() - len(stored_calls(tmp_path / "run")) <= in_flight, asked
        held.free()
        ended = await end(process)
        assert ended.code == 0, ended.err
        assert set(service.asked.values()) == {1}
        assert (await edgen("generate", job, "-o", tmp_path / "calm", "--json")).code == 0
    assert files(tmp_path / "run") == files(tmp_path / "calm")


@pytest.mark.crash
async def test_signals_are_answered_while_it_is_held(tmp_path: Path) -> None:
    async with serve(Service(latency=0.01)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=80, limits={"in_flight": 4}))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        while service.answered.total() < 20:
            await asyncio.sleep(0.002)
        held = Held(tmp_path / "run" / "run.db")
        process.send_signal(signal.SIGINT)
        await until_it_says(process, "Stopping")
        process.send_signal(signal.SIGINT)
        ended = await end(process, timeout=100)
        assert ended.code == 130, ended.err
        assert "Traceback" not in ended.err
        held.free()
        assert equation((await edgen("status", tmp_path / "run", "--json")).facts)
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        assert sum(count - 1 for count in service.asked.values()) <= 4
