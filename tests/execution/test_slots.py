"""Runs with local servers that have few slots: all calls are answered, and timeouts are
reported next to retries."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from edgen.config import CallSettings, Job, Limits
from edgen.core.values import Address, Message, Request
from edgen.execution.session import make_clients
from edgen.providers import make
from edgen.providers.openai.config import OpenAIConfig
from tests.execution.service import Ended, edgen, job_text, serve, write
from tests.execution.slotted import SlottedServer
from tests.execution.test_llama_cpp import SCHEMA
from tests.providers import llama

PROPS = {"/props": {"total_slots": 4}}


async def generate(folder: Path, server: SlottedServer, **limits: float) -> tuple[Ended, float]:
    """Make 60 conversations; return the ended process, and the seconds from the first call to
    the last answer."""
    folder.mkdir()
    job = write(folder / "job.yaml", job_text(server.url, conversations=60, limits=limits))
    ended = await edgen("generate", job, "-o", folder / "run", "--json", "--metrics", folder / "m.prom")
    return ended, server.last - server.first


async def test_sixty_calls_to_four_slots_with_the_default_limits(tmp_path: Path) -> None:
    for number in range(3):  # repeated if other load falls between the two runs
        async with serve(SlottedServer(latency=0.2, pages=PROPS)) as server:
            known, seconds = await generate(tmp_path / f"known{number}", server, timeout=1.0)
            assert server.most == 4
        async with serve(SlottedServer(latency=0.2)) as server:
            four, least = await generate(tmp_path / f"four{number}", server, timeout=1.0, in_flight=4)
        if seconds < 1.5 * least and "timeouts" not in known.facts | four.facts:
            break
    async with serve(SlottedServer(latency=0.2)) as server:
        unknown, longest = await generate(tmp_path / "unknown", server, timeout=1.0)
    for made in (known, four):
        assert (made.code, made.facts["accepted"]) == (0, 60)
        assert "timeouts" not in made.facts
    timeouts = unknown.facts["timeouts"]
    print(f"60 calls to 4 slots: {seconds / least:.2f} times the seconds of 4 in flight; {longest / least:.2f} times with "
          f"{timeouts} timeouts where the server does not say its slots")  # fmt: skip
    assert seconds < 1.5 * least
    assert timeouts >= unknown.facts["retried"]["timeout"] > 0


async def test_timeouts_are_told_next_to_retries(tmp_path: Path) -> None:
    async with serve(SlottedServer(slots=2, latency=0.3)) as server:
        job = write(
            tmp_path / "job.yaml",
            job_text(server.url, conversations=12, limits={"timeout": 0.7, "attempts": 2, "in_flight": 12}),
        )
        run = tmp_path / "run"
        made = await edgen(
            "generate", job, "-o", run, "--json", "--log-format", "json", "--metrics", tmp_path / "m.prom"
        )
    timeouts = made.facts["timeouts"]
    assert timeouts == made.facts["retried"]["timeout"] + made.facts["failed"].get("timeout", 0)
    assert f'edgen_timeouts_total{{run="t"}} {timeouts}\n' in (tmp_path / "m.prom").read_text()
    last = [json.loads(line) for line in made.err.splitlines() if '"end"' in line][-1]
    assert last["timeouts"] == timeouts
    status = await edgen("status", run)
    assert f" retried, {timeouts} timeouts\n" in status.out
    async with serve(SlottedServer(slots=12)) as server:  # later starts keep the sum
        write(tmp_path / "job.yaml", job.read_text())
        address = f"backends.default.base_url={server.url}"
        again = await edgen("generate", job, "-o", run, "--json", "--yes", "--set", address)
    assert again.facts["timeouts"] == timeouts


async def ask_at_once(
    server: llama.Server, timeout: float, calls: int = 60, **limits: int
) -> tuple[float, int]:
    """Make calls at once within the limits; return the seconds until the last answer, and the
    number of timeouts."""
    config = OpenAIConfig(
        model=server.model,
        base_url=server.base_url,
        auth="none",
        max_tokens=300,
        extra_body={"ignore_eos": True},
    )
    job = Job(
        name="t",
        conversations=1,
        space="s",
        prompt="p",
        backends={"default": config},
        limits=Limits(timeout=timeout, **limits),
    )
    backend = make(config, timeout=timeout, connections=300, environ={})
    client = make_clients(CallSettings.of(job), {"default": backend}, ["default"])["default"]
    started = time.monotonic()
    asked = [client.ask(Request(Address(i, 0), (Message("user", f"Say {i}"),), seed=i)) for i in range(calls)]
    try:
        await asyncio.gather(*asked)  # raises the first failure
        return time.monotonic() - started, client.timeouts
    finally:
        await backend.aclose()


@pytest.mark.only_long
async def test_sixty_calls_to_a_real_server_with_two_slots(tmp_path: Path) -> None:
    with llama.running(tmp_path, context=1024, key="") as server:
        await ask_at_once(server, 60.0, 6, in_flight=2)
        for _ in range(3):  # repeated if other load falls between the two runs
            least, _ = await ask_at_once(server, 60.0, in_flight=2)
            # A queue of 30 calls for each slot would need half of that time.
            seconds, timeouts = await ask_at_once(server, max(1.0, 0.25 * least))
            if not timeouts and seconds < 2 * least:
                break
    print(
        f"60 calls to llama.cpp with 2 slots: {seconds / least:.2f} times the seconds of 2 in flight, {timeouts} timeouts"
    )
    assert timeouts == 0
    assert seconds < 2 * least


async def test_a_real_server_gets_as_many_calls_as_it_has_slots(tmp_path: Path) -> None:
    """The server's two slots answer all the calls that the default limits would send at once."""
    (tmp_path / "short.j2").write_text("Talk about {{ topic }}.")
    with llama.running(tmp_path, context=1024, key="") as server:
        form = {"type": "json_schema", "json_schema": {"name": "talk", "schema": SCHEMA}}
        backend = {
            "type": "openai", "model": server.model, "base_url": server.base_url, "auth": "none", "seed": "auto",
            "temperature": 1.0, "max_tokens": 600, "extra_body": {"response_format": form},
        }  # fmt: skip
        text = job_text("", conversations=12, prompt="./short.j2", backends={"default": backend}, limits={})
        job = write(tmp_path / "job.yaml", text)
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json", "--log-format", "json")
        two = await edgen("generate", job, "-o", tmp_path / "two", "--json", "--set", "limits.in_flight=2")
        doctor = await edgen("doctor", job)
    assert (made.code, made.facts["accepted"], two.code) == (0, 12, 0), made.err
    rates = [json.loads(line) for line in made.err.splitlines() if '"rate"' in line]
    assert {rate["window"] for rate in rates} <= {2, 3}, rates
    assert "it answers 2 calls at once" in doctor.out
