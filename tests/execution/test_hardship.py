"""Hard conditions: services that do not count, only refuse, or cut off; output that no one reads."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from edgen.core.values import Address, Message
from edgen.protocols.base import make_call_seed
from edgen.simulator.text import respond
from tests import fork_server
from tests.execution.service import (
    Process,
    Service,
    completion,
    edgen,
    end,
    equation,
    error,
    files,
    job_text,
    serve,
    start,
    write,
)

Starting = Callable[..., Awaitable[Process]]
PROMPT = "The teacher wants to teach the student about Cells.  Conversation: [ Teacher: Probability:"


def backend(service: Service, **settings: object) -> dict[str, object]:
    plain = {"type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 500}
    return {"default": plain | settings}


async def test_a_budget_is_kept_over_starts_where_the_service_does_not_count(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        answer = json.loads(completion(respond([Message("user", PROMPT)], seed=seed).text).body or b"")  # type: ignore[arg-type]
        del answer["usage"]
        return web.json_response(answer)

    async with serve(Service(trouble=trouble)) as service:
        limits = {"in_flight": 4, "max_tokens": 30_000}
        job = write(tmp_path / "job.yaml", job_text("", backends=backend(service), limits=limits, asks=1))
        first = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert first.code == 4, first.err
        asked = service.asked.total()
        assert asked > 5
        again = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert again.code == 4
        assert service.asked.total() == asked


async def test_unreadable_answers_count_against_the_budget(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return web.json_response({"usage": {"prompt_tokens": 100, "completion_tokens": 400}})

    async with serve(Service(trouble=trouble)) as service:
        limits = {"in_flight": 2, "max_tokens": 8_000, "attempts": 3}
        job = write(tmp_path / "job.yaml", job_text("", backends=backend(service), limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 4, ended.err
        asked = service.asked.total()
        assert asked * 500 <= 8_000
        again = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert again.code == 4
        assert service.asked.total() * 500 <= 8_000


async def test_a_price_given_later_counts_what_was_used_before(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text("", conversations=50, backends=backend(service)))
        assert (await edgen("generate", job, "-o", tmp_path / "run", "--json", "-n", "20")).code == 0
        asked = service.asked.total()
        price = [
            "--set",
            "backends.default.price={prompt: 1000, completion: 1000}",
            "--set",
            "limits.max_cost=0.5",
        ]
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json", *price)
        assert ended.code == 4, ended.err
        assert service.asked.total() == asked, "20 calls of 30 tokens have cost more than that"


async def test_a_service_that_only_asks_for_patience_stops_the_run(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return error(429, "come back tomorrow", **{"Retry-After": "3600"})

    async with serve(Service(trouble=trouble)) as service:
        limits = {"in_flight": 4, "give_up_after": 2}
        job = write(tmp_path / "job.yaml", job_text(service.url, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 5
    assert "come back in 3600 s" in ended.err
    assert equation(ended.facts)


async def test_a_cut_off_answer_stays_one_where_the_model_has_no_more_room(tmp_path: Path) -> None:
    first = {make_call_seed(3, Address(i, 0)) for i in range(15)}  # fewer than a verdict of useless needs

    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return completion("Teacher:", "length") if seed in first else error(400, "max_tokens is too large")

    async with serve(Service(trouble=trouble)) as service:
        job = write(
            tmp_path / "job.yaml",
            job_text("", conversations=15, backends=backend(service)),
        )
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 3
    assert ended.facts["rejected"] == {"truncated": 15}


async def test_a_top_up_that_has_enough_asks_nothing_more(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return error(400) if seed % 4 == 0 else None

    async with serve(Service(trouble=trouble)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=40, top_up=True))
        first = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert first.code == 0, first.err
        assert first.facts["failed"]
        made, asked = files(tmp_path / "run"), service.asked.total()
        service.trouble = None
        again = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert again.code == 0
        assert service.asked.total() == asked
        assert files(tmp_path / "run") == made
        assert again.facts["failed"] == first.facts["failed"]


@pytest.mark.crash
async def test_a_signal_is_obeyed_where_nobody_reads_the_progress(tmp_path: Path) -> None:
    async with serve(Service(latency=0.1)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, limits={"in_flight": 2}))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        assert process.stderr is not None
        await process.stderr.readline()
        process.stderr._transport.close()  # type: ignore[attr-defined] # the reader closes its end
        while service.answered.total() < 6:
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 120) == 143


async def closed_from_the_start(*arguments: str | Path) -> Process:
    """Run a new Python process without stdout and stderr."""
    return await asyncio.create_subprocess_exec(
        "bash", "-c", 'exec "$0" -m edgen "$@" >&- 2>&-', sys.executable, *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


async def with_outputs(code: str, *arguments: str | Path) -> Process:
    """Run `edgen` after `code` has redirected stdout and stderr."""
    main = "import runpy; runpy.run_module('edgen', run_name='__main__', alter_sys=True)"
    return await fork_server.start(*arguments, code=f"import os; {code}; {main}")


FULL = "os.dup2(os.open('/dev/full', os.O_WRONLY), {})"
NOBODY = "read, written = os.pipe(); os.close(read); os.dup2(written, 1)"


@pytest.mark.parametrize(
    ("start", "code"),
    [
        (closed_from_the_start, 0),
        (partial(with_outputs, f"{FULL.format(2)}; {NOBODY}"), 0),
        (partial(with_outputs, FULL.format(1)), 2),
    ],
    ids=["closed", "stderr full and nobody at stdout", "stdout full"],
)
async def test_a_run_does_not_depend_on_who_reads_it(tmp_path: Path, start: Starting, code: int) -> None:
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=20))
        ended = await end(await start("generate", job, "-o", tmp_path / "run"))
    assert ended.code == code, ended
    assert "Traceback" not in ended.err + ended.out
    assert (await edgen("status", tmp_path / "run", "--json")).facts["state"] == "complete"
    assert (tmp_path / "run" / "shards" / "manifest.json").exists()


async def test_a_service_that_counts_more_than_it_was_sent_passes_the_cap_by_what_was_in_flight(
    tmp_path: Path,
) -> None:
    """A hidden prompt of about 15,000 tokens, known from the first answer on."""

    async def trouble(_service: Service, seed: int) -> web.StreamResponse | None:
        await asyncio.sleep(0.05)
        answer = json.loads(completion(respond([Message("user", PROMPT)], seed=seed).text).body or b"")  # type: ignore[arg-type]
        answer["usage"] = {"prompt_tokens": 15_000, "completion_tokens": 400}
        return web.json_response(answer)

    async with serve(Service(trouble=trouble)) as service:
        limits = {"in_flight": 4, "max_tokens": 100_000}
        job = write(tmp_path / "job.yaml", job_text("", backends=backend(service), limits=limits, asks=1))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 4, ended.err
        asked = service.asked.total()
    in_flight_before_the_first_answer = 4
    assert asked * 15_400 <= 100_000 + in_flight_before_the_first_answer * 15_400
    assert f"{asked * 15_400:,} of 100,000 tokens are spent" in ended.err
    assert "counted more tokens than calls were expected to take" in ended.err


async def test_a_service_that_closes_and_does_not_say_for_how_long_fails_nothing(tmp_path: Path) -> None:
    began: list[float] = []

    async def trouble(service: Service, _seed: int) -> web.StreamResponse | None:
        now = asyncio.get_running_loop().time()
        began.append(now)
        return error(429, "closed") if 1 < now - began[0] < 3 else None

    async with serve(Service(latency=0.2, trouble=trouble)) as service:
        limits = {"in_flight": 100, "attempts": 2}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=700, asks=1, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 0, ended.err
    assert service.asked.total() - service.answered.total() < 150


async def test_one_prompt_that_is_always_refused_fails_alone(tmp_path: Path) -> None:
    first: list[int] = []

    async def trouble(_service: Service, seed: int) -> web.StreamResponse | None:
        first.append(seed)
        return error(503) if seed == first[0] else None

    async with serve(Service(trouble=trouble)) as service:
        limits = {"in_flight": 4, "attempts": 5, "give_up_after": 30}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=20, asks=1, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert (ended.code, ended.facts["failed"]) == (3, {"overloaded": 1}), ended.err
