"""A real Ray cluster on this machine: after kills and freezes, the bytes equal a local run's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.conftest import STARTED, family
from tests.execution.service import Ended, Service, equation, files, job_text, serve, write
from tests.execution.service import edgen_alone as edgen
from tests.execution.slotted import SlottedServer

pytestmark = pytest.mark.integration

IN_FLIGHT = 8
COUNT = 120


def workers() -> list[int]:
    """Return the processes of edgen's workers on the cluster of these tests."""
    found = []
    for pid in family(STARTED[0].process.pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::Worker"):
                found.append(pid)
    return found


class Head:
    """`edgen generate --on ray` in a process group of its own."""

    def __init__(self, job: Path, run: Path, address: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "edgen", "generate", str(job), "-o", str(run), "--json",
             "--on", f"ray://{address}", "--workers", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    async def end(self) -> Ended:
        out, err = await asyncio.to_thread(self.process.communicate, timeout=600)
        return Ended(self.process.returncode, out, err)


async def until(server: Service, count: int) -> None:
    """Wait for this many calls."""
    async with asyncio.timeout(600):
        while server.asked.total() < count:
            await asyncio.sleep(0.02)


def describe(server: SlottedServer, limits: dict[str, float]) -> str:
    return job_text(server.url, conversations=COUNT, limits={"in_flight": IN_FLIGHT, **limits})


async def test_workers_and_heads_may_die(tmp_path: Path, cluster: str) -> None:
    async with serve(SlottedServer(slots=100, latency=0.3)) as server:
        job = write(tmp_path / "job.yaml", describe(server, {}))
        assert (await edgen("generate", job, "-o", tmp_path / "local")).code == 0
        expected = files(tmp_path / "local")

        server.asked.clear()
        whole = await Head(job, tmp_path / "whole", cluster).end()
        assert whole.code == 0, whole.err
        assert files(tmp_path / "whole") == expected
        assert server.asked.total() == COUNT

        # A killed worker: only its calls in flight are repeated.
        server.asked.clear()
        head = Head(job, tmp_path / "killed", cluster)
        await until(server, 40)
        os.kill(workers()[0], signal.SIGKILL)
        killed = await head.end()
        assert killed.code == 0, killed.err
        assert files(tmp_path / "killed") == expected
        assert equation(killed.facts)
        assert COUNT <= server.asked.total() <= COUNT + IN_FLIGHT
        print(f"worker killed: {server.asked.total() - COUNT} calls repeated")

        # A frozen worker is replaced; when it wakes up later, it makes no call.
        server.asked.clear()
        head = Head(job, tmp_path / "frozen", cluster)
        await until(server, 40)
        frozen = workers()[0]
        os.kill(frozen, signal.SIGSTOP)
        ended = await head.end()
        before = server.asked.total()
        if Path(f"/proc/{frozen}").exists():
            os.kill(frozen, signal.SIGCONT)
            await asyncio.sleep(3)
        assert ended.code == 0, ended.err
        assert files(tmp_path / "frozen") == expected
        assert COUNT <= before <= COUNT + IN_FLIGHT
        assert server.asked.total() == before
        print(f"worker frozen: {before - COUNT} calls repeated")

        # A killed head: its workers stop, and the same command resumes.
        server.asked.clear()
        head = Head(job, tmp_path / "headless", cluster)
        await until(server, 40)
        os.killpg(head.process.pid, signal.SIGKILL)
        head.process.communicate()
        async with asyncio.timeout(600):
            while workers():
                await asyncio.sleep(0.1)
        stopped = server.asked.total()
        await asyncio.sleep(3)
        assert server.asked.total() == stopped
        again = await Head(job, tmp_path / "headless", cluster).end()
        assert again.code == 0, again.err
        assert files(tmp_path / "headless") == expected
        assert COUNT <= server.asked.total() <= COUNT + IN_FLIGHT
        assert server.most <= IN_FLIGHT
        print(f"head killed: {server.asked.total() - COUNT} calls repeated; at most {server.most} in flight")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_a_head_cleanly(tmp_path: Path, cluster: str, number: int) -> None:
    """Calls in flight are stored, although Ray's own handler would end the process at once."""
    async with serve(SlottedServer(slots=100, latency=0.3)) as server:
        job = write(tmp_path / "job.yaml", describe(server, {}))
        head = Head(job, tmp_path / "run", cluster)
        await until(server, 20)
        head.process.send_signal(number)
        stopped = await head.end()
        assert stopped.code == 128 + number, stopped.err
        assert "Interrupted." in stopped.err
        again = await Head(job, tmp_path / "run", cluster).end()
        assert again.code == 0, again.err
        assert server.asked.total() == COUNT


@pytest.mark.parametrize(("number", "more"), [(signal.SIGINT, ()), (signal.SIGTERM, ("--partitions", "2"))])
def test_a_signal_while_ray_starts_ends_it_at_once(
    tmp_path: Path, number: int, more: tuple[str, ...]
) -> None:
    """Ray's start takes half a minute on a busy machine; none of its processes remains."""
    job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:1/v1"))
    process = subprocess.Popen(
        [sys.executable, "-m", "edgen", "generate", job, "-o", tmp_path / "run", "--on", "ray", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    started: set[int] = set()
    while not started:
        assert process.poll() is None, process.communicate()
        started = {*family(process.pid)} - {process.pid}
    process.send_signal(number)
    while process.poll() is None:
        started |= {*family(process.pid)} - {process.pid}
        time.sleep(0.02)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 128 + number, err
    assert "Interrupted. Nothing was begun." in err
    assert "Traceback" not in err
    until = time.monotonic() + 60
    while left := [pid for pid in started if is_running(pid)]:
        assert time.monotonic() < until, left
        time.sleep(0.1)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_caps_hold_for_all_workers_and_losses(tmp_path: Path, cluster: str) -> None:
    price = {"prompt": 1, "completion": 1}
    async with serve(SlottedServer(slots=100, latency=0.2)) as server:
        backend = {
            "type": "openai", "model": "recorded", "base_url": server.url, "seed": "auto", "max_tokens": 1000, "price": price,
        }  # fmt: skip
        limits = {"in_flight": IN_FLIGHT, "max_tokens": 40_000}
        text = job_text("", conversations=COUNT * 20, backends={"default": backend}, limits=limits)
        head = Head(write(tmp_path / "job.yaml", text), tmp_path / "run", cluster)
        await until(server, 10)
        os.kill(workers()[0], signal.SIGKILL)
        made = await head.end()
        assert made.code == 4, made.err
        assert "the token budget is used up" in made.err
        # A dollar is a million tokens; a lost call counts at its most.
        lost = made.facts.get("unanswered", {"tokens": 0})["tokens"]
        assert 30_000 < made.facts["cost_usd"] * 1e6 + lost <= 40_000
        assert server.most <= IN_FLIGHT


@pytest.mark.parametrize(
    ("on", "said"), [("ray://127.0.0.1:1", "No Ray cluster"), ("spark", "write ray for")]
)
async def test_bad_addresses_are_one_sentence(tmp_path: Path, on: str, said: str) -> None:
    job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:1/v1"))
    made = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "edgen", "generate", job, "-o", tmp_path / "run", "--on", on],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert said in made.stderr
    assert "Traceback" not in made.stderr
