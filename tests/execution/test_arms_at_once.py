"""Arms that run concurrently: the same bytes, shared limits, and no arm waits for another arm's service."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.dose import dose
from tests.execution.service import Service, edgen, files, job_text, serve, start, write


def job_file(folder: Path, urls: list[str], **changes: Any) -> Path:
    arms = {f"arm{n}": {"backends": {"default": {"base_url": url}}} for n, url in enumerate(urls)}
    backend = {"type": "openai", "model": "m", "base_url": urls[0], "seed": "auto", "max_tokens": 900}
    values: dict[str, Any] = {"conversations": 12, "limits": {"in_flight": 3}, "arms": arms, **changes}
    return write(folder / "job.yaml", job_text("", backends={"default": backend}, **values))


def shards(run: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for arm in (run / "arms" / name for name in "abc"):
        found |= {f"{arm.name}/{name}": data for name, data in files(arm).items()}
    assert found
    return found


async def test_arms_with_services_of_their_own_are_made_at_once(tmp_path: Path) -> None:
    """The first service answers only after the second has a request: one arm after the other would hang."""
    first, second = Service(hold_after=0), Service()
    async with serve(first), serve(second):
        process = await start("generate", job_file(tmp_path, [first.url, second.url]), "-o", tmp_path / "run")
        while not (first.asked and second.asked):
            await asyncio.sleep(0.02)
        first.release()
        assert await process.wait() == 0


@pytest.mark.long
@pytest.mark.parametrize("at_once", dose([2], [1, 2, 3]))
async def test_the_same_bytes_however_many_go_at_once_and_whatever_is_killed(
    tmp_path: Path, at_once: int
) -> None:
    async with serve(Service(latency=0.02)) as service:
        job = job_file(tmp_path, [service.url] * 3, arms={"a": {}, "b": {"asks": 2}, "c": {"asks": 1}})
        calm = await edgen("generate", job, "-o", tmp_path / "calm")
        assert calm.code == 0, calm.err
        service.asked.clear()
        run, option = tmp_path / "run", f"limits.arms_at_once={at_once}"
        process = await start("generate", job, "-o", run, "--set", option)
        while service.asked.total() < 10:
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        made = await edgen("generate", job, "-o", run, "--set", option, "--json")
        assert made.code == 0, made.err
        assert shards(run) == shards(tmp_path / "calm")
        assert json.loads(made.out)["accepted"] == 36


async def test_arms_at_once_share_window_and_budget(tmp_path: Path) -> None:
    running, most = 0, 0

    class Watched(Service):
        async def handle(self, request: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await super().handle(request)
            finally:
                running -= 1

    async with serve(Watched(latency=0.03)) as service:
        limits = {"in_flight": 3, "arms_at_once": 3, "max_tokens": 25_000}
        job = job_file(
            tmp_path, [service.url] * 3, arms={"a": {}, "b": {"asks": 2}, "c": {"asks": 1}}, limits=limits,
            conversations=200,
        )  # fmt: skip
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert made.code == 4, made.err
        status = json.loads(made.out)
        assert 0 < sum(status["tokens"].values()) <= 25_000
        assert all(arm["state"] == "stopped" for arm in status["arms"].values())
        assert most <= 3
        assert status["stopped"]["reason"] == "budget"
