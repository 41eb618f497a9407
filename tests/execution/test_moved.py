"""A run whose folder is moved or removed during the work: requests stop, and a message states why."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from aiohttp import web

from tests.execution.service import Service, edgen, end, job_text, serve, start

IN_FLIGHT = 8
ANSWERED = 40
CONVERSATIONS = 80


class Gate:
    """A backend that answers `answers` calls at once and the others after it is opened; `full` once the limit
    in flight waits."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.full = asyncio.Event()

    async def __call__(self, service: Service, _seed: int) -> web.StreamResponse | None:
        asked = service.asked.total()
        if asked > ANSWERED:
            if asked == ANSWERED + IN_FLIGHT:
                self.full.set()
            await self.open.wait()
        return None


def job_in(folder: Path, url: str) -> Path:
    path = folder / "job.yaml"
    path.write_text(job_text(url, conversations=CONVERSATIONS, limits={"in_flight": IN_FLIGHT}))
    return path


async def test_a_run_that_is_moved_stops_and_goes_on_where_it_is_now(tmp_path: Path) -> None:
    gate = Gate()
    async with serve(Service(trouble=gate)) as service:
        job = job_in(tmp_path, service.url)
        process = await start("generate", job, "-o", tmp_path / "run")
        await asyncio.wait_for(gate.full.wait(), 60)
        (tmp_path / "run").rename(tmp_path / "moved")
        assert process.stderr is not None
        said = b""
        while b"Stopping: waiting for" not in said:
            line = await asyncio.wait_for(process.stderr.readline(), 60)
            assert line, said
            said += line
        gate.open.set()
        ended = await end(process)
        assert ended.code == 4, ended.err
        assert "has been moved" in ended.err
        assert str(tmp_path / "moved") in ended.err
        assert not (tmp_path / "run").exists()
        assert service.asked.total() == ANSWERED + IN_FLIGHT
        ended = await edgen("generate", job, "-o", tmp_path / "moved", "--json")
        assert ended.code == 0, ended.err
        assert ended.facts["accepted"] == CONVERSATIONS
        assert set(service.asked.values()) == {1}, "what was answered after the move was stored"


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_a_run_that_is_removed_stops_at_once(how: str, tmp_path: Path) -> None:
    gate = Gate()
    async with serve(Service(trouble=gate)) as service:
        job = job_in(tmp_path, service.url)
        process = await start("generate", job, "-o", tmp_path / "run")
        await asyncio.wait_for(gate.full.wait(), 60)
        if how == "removed":
            shutil.rmtree(tmp_path / "run")
        else:
            (tmp_path / "run" / "run.db").unlink()
            (tmp_path / "run" / "run.db").write_text("another one")
        ended = await end(process)  # the process does not wait for calls in flight
        assert ended.code == 2, ended.err
        assert f"has been {how}" in ended.err
        assert "Traceback" not in ended.err
        assert (tmp_path / "run").exists() == (how == "replaced")
        assert service.asked.total() == ANSWERED + IN_FLIGHT
        gate.open.set()
