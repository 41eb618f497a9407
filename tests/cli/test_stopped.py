"""The reason of a stop in one word, with a sentence and a time, in every list of runs."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.execution.service import Service, edgen, end, job_text, serve, start, write


async def stopped(run: Path) -> dict[str, Any]:
    """Return the stop that `status` and `runs` report, after a check that they agree."""
    status = json.loads((await edgen("status", run, "--json")).out)
    (listed,) = json.loads((await edgen("runs", run, "--json")).out)["runs"]
    assert status.get("stopped") == listed.get("stopped")
    found: dict[str, Any] = status.get("stopped", {})
    return found


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGKILL, "killed"), (signal.SIGTERM, "interrupted")])
async def test_signals(tmp_path: Path, number: signal.Signals, reason: str) -> None:
    run = tmp_path / "run"
    async with serve(Service(hold_after=4)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=20))
        process = await start("generate", job, "-o", run)
        while service.answered.total() < 4:
            await asyncio.sleep(0.02)
        assert "stopped" not in json.loads((await edgen("status", run, "--json")).out), "it runs"
        process.send_signal(number)
        if number == signal.SIGKILL:
            await process.wait()
        service.release()
        if number == signal.SIGTERM:
            await end(process)
        found = await stopped(run)
        assert found["reason"] == reason
        assert found["detail"]
        at = datetime.strptime(found["at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)
        assert (await edgen("generate", job, "-o", run)).code == 0
        assert await stopped(run) == {}


async def test_budget_and_deadline(tmp_path: Path) -> None:
    backend = {"type": "simulator", "max_tokens": 900, "price": {"prompt": 1, "completion": 1}}
    job = write(tmp_path / "job.yaml", job_text("", conversations=50, backends={"default": backend}))
    made = await edgen("generate", job, "-o", tmp_path / "a", "--set", "limits.max_cost=0.02")
    assert made.code == 4, made.err
    assert (await stopped(tmp_path / "a"))["reason"] == "budget"
    async with serve(Service(latency=0.5)) as service:
        slow = write(tmp_path / "slow.yaml", job_text(service.url, limits={"in_flight": 2}))
        made = await edgen("generate", slow, "-o", tmp_path / "b", "--for", "1s")
        assert made.code == 4, made.err
        assert (await stopped(tmp_path / "b"))["reason"] == "deadline"


async def test_services_that_are_away(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = write(
            tmp_path / "job.yaml", job_text(service.url, conversations=9, limits={"give_up_after": 1})
        )
    made = await edgen("generate", job, "-o", tmp_path / "run")
    assert made.code == 5, made.err
    assert (await stopped(tmp_path / "run"))["reason"] == "failures"
