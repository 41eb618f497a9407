"""A service that stops and returns: requests made meanwhile are retried, and none of them fails."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest
from aiohttp import web

from tests.execution.service import (
    Service,
    edgen,
    end,
    equation,
    error,
    job_text,
    port_of,
    serve,
    start,
    write,
)

AWAY = 2.0  # seconds


@pytest.mark.parametrize(("in_flight", "conversations"), [(4, 60), (64, 300)])
async def test_a_restart_costs_no_conversation(tmp_path: Path, in_flight: int, conversations: int) -> None:
    limits = {"in_flight": in_flight, "attempts": 3}
    service = Service(latency=0.05)
    async with serve(service):
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=conversations, limits=limits))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        while service.answered.total() < conversations // 4:
            await asyncio.sleep(0.01)
    assert process.returncode is None
    await asyncio.sleep(AWAY)
    async with serve(service, port_of(service)):
        ended = await end(process)
    assert ended.code == 0, ended.err
    assert (ended.facts["accepted"], ended.facts["failed"]) == (conversations, {})
    assert "The service is away" in ended.err


async def test_a_gateway_without_its_server_is_waited_for(tmp_path: Path) -> None:
    """A proxy answers 502 while its server restarts."""

    async def gateway(_service: Service, _seed: int) -> web.StreamResponse | None:
        return None if there.is_set() else error(502, "bad gateway")

    there = asyncio.Event()
    there.set()
    async with serve(Service(latency=0.02, trouble=gateway)) as service:
        limits = {"in_flight": 8, "attempts": 3}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=100, limits=limits))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        while service.answered.total() < 30:
            await asyncio.sleep(0.01)
        there.clear()
        await asyncio.sleep(2)
        there.set()
        ended = await end(process)
    assert ended.code == 0, ended.err
    assert ended.facts["accepted"] == 100


async def test_a_service_that_was_never_there_ends_the_run_with_what_to_do(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        pass
    limits = {"in_flight": 8, "give_up_after": 2}
    job = write(tmp_path / "job.yaml", job_text(service.url, limits=limits))
    ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 5
    assert "could not be reached for 2 s, and has not answered once" in ended.err
    assert "Start the server, or correct the address in the job" in ended.err
    assert equation(ended.facts)
    assert not ended.facts["failed"]


async def test_a_fifth_that_is_told_to_come_back_tomorrow_does_not_fail(tmp_path: Path) -> None:
    rng = random.Random(5)

    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return error(429, "tomorrow", **{"Retry-After": "86400"}) if rng.random() < 0.2 else None

    async with serve(Service(latency=0.01, trouble=trouble)) as service:
        limits = {"in_flight": 8, "attempts": 12}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=60, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 0, ended.err
    assert ended.facts["accepted"] == 60
    assert ended.facts["calls"]["retried"] >= 3


class Aborting(Service):
    """A service that breaks the connection for each request with one of the first two seeds."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        seed = json.loads(await request.read())["seed"]
        self.poisoned = [*getattr(self, "poisoned", []), seed][:2]
        if seed in self.poisoned:
            assert request.transport is not None
            request.transport.abort()
        return await super().handle(request)


@pytest.mark.parametrize("in_flight", [1, 4])
async def test_a_prompt_that_breaks_every_connection_fails_alone(tmp_path: Path, in_flight: int) -> None:
    async with serve(Aborting(latency=0.01)) as service:
        limits = {"in_flight": in_flight, "attempts": 3}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=30, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 3, ended.err
    assert (ended.facts["accepted"], ended.facts["failed"]) == (28, {"connection": 2})
