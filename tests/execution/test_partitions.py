"""Runs in partitions: the bytes of a local run, shared caps, kills, and jobs that cannot be divided."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.dose import LONG
from tests.execution.service import Ended, Service, edgen, equation, files, job_text, serve, write
from tests.execution.slotted import SlottedServer

pytestmark = pytest.mark.integration
COUNT, IN_FLIGHT = 120, 9


def begin(job: Path, run: Path, *more: str) -> fork_server.Popen:
    """Start `edgen generate` in partitions."""
    return fork_server.Popen(
        "generate", job, "-o", run, "--json", "--partitions", "3", *more,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


async def end(process: fork_server.Popen) -> Ended:
    out, err = await asyncio.to_thread(process.communicate, timeout=120)
    return Ended(process.wait(), out, err)


async def until(server: SlottedServer, count: int) -> None:
    async with asyncio.timeout(60):
        while server.asked.total() < count:
            await asyncio.sleep(0.01)


def partition_processes(parent: int) -> list[int]:
    """Return the partition processes that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said, stat = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
        except OSError:
            continue
        if b"partition_process" in said and int(stat.rpartition(")")[2].split()[1]) == parent:
            found.append(int(folder.name))
    return found


def describe(server: SlottedServer, **limits: Any) -> str:
    return job_text(server.url, conversations=COUNT, limits={"in_flight": IN_FLIGHT, **limits})


@pytest.mark.long
async def test_bytes_are_those_of_one_ledger_whatever_is_killed(tmp_path: Path) -> None:
    async with serve(SlottedServer(slots=100, latency=0.2)) as server:
        job = write(tmp_path / "job.yaml", describe(server))
        assert (await edgen("generate", job, "-o", tmp_path / "local")).code == 0
        expected = files(tmp_path / "local")

        server.asked.clear()
        whole = await end(begin(job, tmp_path / "whole"))
        assert whole.code == 0, whole.err
        assert files(tmp_path / "whole") == expected
        assert whole.facts["calls"]["now"] == whole.facts["calls"]["made"] == COUNT
        assert (tmp_path / "whole/job.yaml").read_bytes() == (tmp_path / "local/job.yaml").read_bytes()
        assert not (tmp_path / "whole.partitions").exists()
        assert (server.asked.total(), server.most) == (COUNT, IN_FLIGHT)

        # A kill of one partition: the others end in order, and the same command resumes. An interrupt of all.
        # Then a kill of the process that started them, which ends them too.
        server.asked.clear()
        run, repeated = tmp_path / "killed", 0
        process = begin(job, run)
        await until(server, 30)
        os.kill(partition_processes(process.pid)[0], signal.SIGKILL)
        killed = await end(process)
        assert killed.code == 4, killed.err
        assert "was killed" in killed.err
        status = json.loads((await edgen("status", run, "--json")).out)
        assert equation(status)
        assert status["accepted"] >= 20

        if LONG:
            process = begin(job, run)
            await until(server, server.asked.total() + 15)
            process.send_signal(signal.SIGINT)
            assert (await end(process)).code == 130

        process = begin(job, run)
        await until(server, server.asked.total() + 15)
        partitions = partition_processes(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        await end(process)
        async with asyncio.timeout(60):
            while any(Path(f"/proc/{pid}").exists() for pid in partitions):
                await asyncio.sleep(0.01)
        stopped = server.asked.total()
        await asyncio.sleep(1)
        assert server.asked.total() == stopped

        again = await edgen("generate", job, "-o", run, "--json")  # the run resumes in its partitions
        assert again.code == 0, again.err
        assert files(run) == expected
        assert equation(again.facts)
        repeated = server.asked.total() - COUNT
        assert 0 <= repeated <= 2 * IN_FLIGHT
        assert server.most <= IN_FLIGHT
        calls = server.asked.total()
        assert (await edgen("generate", job, "-o", run)).code == 0
        assert server.asked.total() == calls


@pytest.mark.only_long
async def test_one_budget_for_all(tmp_path: Path) -> None:
    async with serve(SlottedServer(slots=100, latency=0.05)) as server:
        backend = {
            "type": "openai", "model": "m", "base_url": server.url, "seed": "auto", "max_tokens": 1000,
            "price": {"prompt": 1, "completion": 1},
        }  # fmt: skip
        text = job_text(
            "",
            conversations=5000,
            backends={"default": backend},
            limits={"in_flight": 9, "max_tokens": 60_000},
        )
        made = await end(begin(write(tmp_path / "job.yaml", text), tmp_path / "run"))
        assert made.code == 4, made.err
        assert "the budget is used up" in made.err
        assert "limits.max_tokens" in made.err
        status = json.loads((await edgen("status", tmp_path / "run", "--json")).out)
        used = status["cost_usd"] * 1e6  # a dollar is a million tokens
        assert 45_000 < used <= 60_000


@pytest.mark.parametrize(
    ("changes", "arguments", "said"),
    [
        ({"arms": {"a": {}, "b": {"asks": 2}}}, [], "without arms"),
        ({"top_up": True}, [], "top_up"),
        ({}, ["--range", "0:10"], "without --range"),
        ({}, ["--on", "spark"], "write ray for a cluster"),
        ({}, ["--on", "rayon"], "write ray for a cluster"),
        ({}, ["--workers", "3"], "and the cluster, as in --on ray"),
    ],
)
async def test_what_cannot_be_divided(
    tmp_path: Path, changes: dict[str, Any], arguments: list[str], said: str
) -> None:
    job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:1/v1", **changes))
    made = await edgen("generate", job, "-o", tmp_path / "run", "--partitions", "2", *arguments)
    assert (made.code, "Traceback" in made.err) == (2, False)
    assert said in made.err
    assert not (tmp_path / "run.partitions").exists()


async def test_a_run_keeps_its_partitions(tmp_path: Path) -> None:
    """The next start cannot change them, and is refused if it allows fewer calls at once than
    there are partitions."""
    async with serve(SlottedServer(slots=100, latency=0.05)) as server:
        job, run = write(tmp_path / "job.yaml", describe(server)), tmp_path / "run"
        process = begin(job, run)
        await until(server, 10)
        process.send_signal(signal.SIGINT)
        stopped = await end(process)
        assert stopped.code == 130
        asked = server.asked.total()
        told = json.loads(stopped.out)  # sums over the partitions, as of a run with one ledger
        assert (told["state"], told["planned"], told["calls"]["made"]) == ("stopped", COUNT, asked)
        (listed,) = json.loads((await edgen("status", tmp_path, "--list", "--json")).out)["runs"]
        assert (listed["run"], listed["accepted"]) == (str(run), told["accepted"])
        assert listed["stopped"]["reason"] == "interrupted"
        few = await edgen("generate", job, "-o", run, "--set", "limits.in_flight=2")
        assert (few.code, server.asked.total()) == (2, asked)
        assert "begun in 3 partitions, and limits.in_flight is 2" in few.err
        other = await edgen("generate", job, "-o", run, "--partitions", "5", "--json")
        assert other.code == 0, other.err
        assert "begun in 3 partitions, and keeps them" in other.err
        assert server.asked.total() == server.answered.total() == COUNT


async def test_the_first_to_stop_does_not_hurry_the_others(tmp_path: Path) -> None:
    """The end of a partition is no second signal to the others: their calls in flight are kept."""
    waiting: list[asyncio.Event] = []

    async def wait(_service: Service, _seed: int) -> None:
        waiting.append(asyncio.Event())
        await waiting[-1].wait()

    async with serve(SlottedServer(slots=100, trouble=wait)) as server:
        process = begin(write(tmp_path / "job.yaml", describe(server)), tmp_path / "run")
        await until(server, IN_FLIGHT)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while "Stopping 3 partitions" not in (line := await asyncio.to_thread(process.stderr.readline)):
            assert line, "it ended"
        for one in waiting:
            one.set()
            await asyncio.sleep(0.3)
        made = await end(process)
        assert made.code == 130, made.err
        # On a busy machine, a partition may hear of the stop after its first call was answered.
        assert IN_FLIGHT <= server.asked.total() == server.answered.total() < 2 * IN_FLIGHT


async def test_a_signal_while_partitions_start(tmp_path: Path) -> None:
    """There is one message and no traceback of a partition; a second signal ends partitions
    that are not ready."""
    async with serve(SlottedServer(slots=100, latency=0.05)) as server:
        job, run = write(tmp_path / "job.yaml", describe(server)), tmp_path / "run"
        for signals in (1, 2):
            process = begin(job, run)
            while not partition_processes(process.pid):
                assert process.poll() is None, "it starts some"
                await asyncio.sleep(0.001)
            for _ in range(signals):
                process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.02)
            made = await end(process)
            assert made.code == 130, made.err
            assert "Traceback" not in made.err
            assert "Fatal Python error" not in made.err
        again = await edgen("generate", job, "-o", run)
        assert again.code == 0, again.err
        assert COUNT <= server.asked.total() <= COUNT + IN_FLIGHT
