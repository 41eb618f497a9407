"""`edgen doctor` waits for a server that loads, times its call, and reports how many calls
are answered at once."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import CallError, FailureKind
from edgen.runtime.loading import Loading
from tests.execution.service import edgen, job_text, serve, start, until_it_says, write
from tests.execution.service import end as end_of
from tests.execution.slotted import SlottedServer


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


async def test_a_server_that_loads_is_waited_for(tmp_path: Path) -> None:
    async with serve(SlottedServer(loading=True, pages={"/props": {"total_slots": 3}})) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url))
        process = await start("doctor", job, "--json")
        await until_it_says(process, "edgen: The server is loading its model; waiting for it, at most 300 s.")
        began = time.monotonic()
        await asyncio.sleep(2.5)
        server.loading, waited = False, time.monotonic() - began
        ended = await end_of(process)
    assert ended.code == 0, ended.out
    checks = {check["check"]: check["detail"] for check in json.loads(ended.out)["checks"]}
    assert checks["loading"].startswith("the server had loaded its model after ")
    assert checks["slots"] == "it answers 3 calls at once; a run begins with that many"
    assert float(checks["call"].split("answered in ")[1].split(" s")[0]) < waited, (
        "the wait is no part of the call's time"
    )


async def test_it_waits_no_longer_than_its_patience() -> None:
    told: list[str] = []
    loading, started = Loading(told.append, patience=0.3), time.monotonic()

    asked = 0

    async def ask(message: str = "Loading model") -> None:
        nonlocal asked
        asked += 1
        raise CallError(FailureKind.OVERLOADED, message, status=503)

    for _ in range(2):
        with pytest.raises(CallError):
            await loading.answer(ask)
    assert time.monotonic() - started > 0.3
    assert asked == 3
    assert len(told) == 1
    with pytest.raises(CallError, match="too many requests"):
        await Loading(told.append).answer(lambda: ask("too many requests"))
    assert len(told) == 1


async def test_estimate_uses_the_time_of_the_call_and_the_slots(tmp_path: Path) -> None:
    async with serve(SlottedServer(latency=0.5, pages={"/props": {"total_slots": 4}})) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url, conversations=400))

        async def estimate() -> Any:
            return (await edgen("estimate", job, "--json", "--runs", tmp_path / "runs")).facts

        before = await estimate()
        assert any("time: assumed" in said for said in before["basis"]["said"])
        assert (await edgen("doctor", job, "--dry-run")).code == 0
        assert await estimate() == before
        assert (await edgen("doctor", job)).code == 0
        after = await estimate()
    (said,) = [said for said in after["basis"]["said"] if said.startswith("time: ")]
    took = re.match(r"time: a call of 20 tokens took ([0-9.]+) s ", said)
    assert took is not None, said
    assert float(took[1]) >= 0.5
    assert "with `edgen doctor` just now" in said
    assert said.endswith("; up to 4 calls at once")
    each = after["tokens"]["completion"]["expected"] / after["calls"]["expected"] / 20 * float(took[1])
    assert after["seconds"]["expected"] == pytest.approx(400 * each / 4, rel=0.35)
    assert after["seconds"]["low"] < after["seconds"]["expected"] < after["seconds"]["high"]


async def test_a_spoilt_file_of_times_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "edgen"
    folder.mkdir(parents=True)
    (folder / "call_times.json").write_text('{"x": [1, 2')
    async with serve(SlottedServer()) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url))
        assert (await edgen("estimate", job)).code == 0
        assert (await edgen("doctor", job)).code == 0
        said = (await edgen("estimate", job)).out
        assert "with `edgen doctor` just now" in " ".join(said.split())
