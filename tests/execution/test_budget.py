"""A budget that binds: through kills and over starts with a raised cap, it is never exceeded."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from edgen.core.errors import RunError
from edgen.core.values import Message
from edgen.simulator.text import respond
from edgen.store.ledger import sum_charges_at
from tests.dose import dose
from tests.execution.service import Service, edgen, end, equation, files, job_text, serve, start, write

KILLS = dose(3, 6)  # of each shape
IN_FLIGHT = 6
PRICE = {"prompt": 0.15, "completion": 0.6}
SHAPES: dict[str, dict[str, Any]] = {
    "oneshot": {"conversations": 60, "forms": "prose"},
    "selfplay": {
        "forms": "prose",
        "conversations": 16,
        "replicates": 2,
        "branch": {},
        "protocol": "selfplay",
        "prompt": None,
        "selfplay": {"max_turns": 8, "closing": "student"},
    },
}


class Counting(Service):
    """A service that counts the tokens of every call it begins to work on, even if the client is gone."""

    def __init__(self, latency: float = 0.01) -> None:
        super().__init__(latency=latency, trouble=self._work)
        self.served = [0, 0]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.body = msgspec.json.decode(await request.read())
        return await super().handle(request)

    async def _work(self, _service: Service, seed: int) -> web.StreamResponse | None:
        body = self.body
        messages = [Message(m["role"], m["content"]) for m in body["messages"]]
        reply = respond(messages, seed=seed, max_tokens=body["max_tokens"])
        usage = (
            sum(len(m.content.encode()) for m in messages) // 4,
            min(len(reply.text) // 4, body["max_tokens"]),
        )
        self.served = [a + b for a, b in zip(self.served, usage, strict=True)]
        await asyncio.sleep(self.latency)
        self.answered[seed] += 1
        return web.json_response(
            {
                "model": "recorded",
                "choices": [
                    {
                        "message": {"role": "assistant", "content": reply.text},
                        "finish_reason": reply.finish_reason,
                    }
                ],
                "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]},
            }
        )

    @property
    def tokens(self) -> int:
        return sum(self.served)

    @property
    def pico(self) -> int:
        return self.served[0] * 150_000 + self.served[1] * 600_000


def job_file(folder: Path, service: Service, shape: str) -> Path:
    backend = {
        "type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 900, "price": PRICE,
    }  # fmt: skip
    limits = {"in_flight": IN_FLIGHT}
    return write(
        folder / "job.yaml", job_text("", backends={"default": backend}, limits=limits, **SHAPES[shape])
    )


def charged(folder: Path) -> tuple[int, int]:
    """Return the (tokens, picodollars) that the run is charged at this moment."""
    try:
        tokens, usd = sum_charges_at(folder / "run.db", lambda _prompt, _completion: 0.0)
    except RunError:  # the ledger is just being created, or a kill interrupted its creation
        return 0, 0
    return tokens, round(usd * 1e12)


def stored_seeds(folder: Path) -> int:
    with sqlite3.connect(folder / "run.db") as ledger:
        return int(ledger.execute("SELECT COUNT(*) FROM replies").fetchone()[0])


@pytest.mark.long
@pytest.mark.parametrize("shape", dose(["selfplay"], [*SHAPES]))
@pytest.mark.crash
async def test_no_kill_gets_a_run_past_its_cap(tmp_path: Path, shape: str) -> None:
    """Kills at random moments under a cap that is raised whenever it is reached; then a start
    without a cap."""
    rng = random.Random(24)
    folder = tmp_path / "killed"
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        job = job_file(tmp_path, service, shape)
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0, calm.err
        calls, tokens, pico = service.asked.total(), service.tokens, service.pico
        service.asked.clear()
        service.served = [0, 0]
        caps = [tokens // 3, pico // 2 * 1e-12]

        def held() -> None:
            now = charged(folder)
            # Every served call is already charged, or noted as in flight.
            assert service.tokens <= caps[0], "more was served than the cap allows"
            assert service.pico <= round(caps[1] * 1e12)
            assert now[0] <= caps[0], "more is charged than the cap allows"
            assert now[1] <= round(caps[1] * 1e12)

        kills = reached = 0
        while kills < KILLS:
            options = ["--set", f"limits.max_tokens={caps[0]}", "--set", f"limits.max_cost={caps[1]!r}"]
            process = await start("generate", job, "-o", folder, "--json", *options)
            await _until(rng, process, service, calls // KILLS, held)
            if process.returncode is None:
                process.kill()
                kills += 1
            ended = await end(process)
            held()
            assert charged(folder)[0] >= service.tokens
            if ended.code == 4:
                reached += 1
                caps = [caps[0] + tokens // 3, caps[1] + pico // 3 * 1e-12]
            else:
                assert ended.code in (-9, 0), ended.err
        assert reached, "no cap was ever reached"
        lost = service.asked.total() - stored_seeds(folder)
        assert lost <= KILLS * IN_FLIGHT, "more was asked again than can have been in flight"
        done = await edgen("generate", job, "-o", folder, "--json")
        assert done.code == 0, done.err
        assert equation(done.facts)
    assert files(folder) == files(tmp_path / "calm")


async def _until(
    rng: random.Random,
    process: asyncio.subprocess.Process,
    service: Service,
    calls: int,
    held: Callable[[], None],
) -> None:
    """Wait for a random moment: some in the start-up, most in the middle of the work."""
    if rng.random() < 0.15:
        await asyncio.sleep(rng.uniform(0, 0.2))
        return
    aim = service.asked.total() + rng.randint(1, calls)
    loop = asyncio.get_running_loop()
    for _ in range(3000):
        if process.returncode is not None or service.asked.total() >= aim:
            return
        await asyncio.sleep(0.01)
        if loop.time() % 0.1 < 0.02:
            held()


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "kind"), [("selfplay", "max_cost"), *dose([], [("oneshot", "max_tokens")])]
)
async def test_a_cap_raised_twice_asks_nothing_twice(tmp_path: Path, shape: str, kind: str) -> None:
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        job = job_file(tmp_path, service, shape)
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0, calm.err
        whole = service.pico if kind == "max_cost" else service.tokens
        service.asked.clear()
        service.served = [0, 0]
        folder = tmp_path / "run"
        for share in (0.5, 0.8):
            cap = int(whole * share)
            shown = cap * 1e-12 if kind == "max_cost" else cap
            ended = await edgen("generate", job, "-o", folder, "--json", "--set", f"limits.{kind}={shown!r}")
            assert ended.code == 4, ended.err
            assert f"limits.{kind}" in ended.err
            used = service.pico if kind == "max_cost" else service.tokens
            assert used <= cap
            assert charged(folder)[kind == "max_cost"] == used, "what is left unused was given back"
            assert used >= cap * 0.85, "it stopped long before"
            if kind == "max_cost":
                assert ended.facts["cost_usd"] <= shown
        done = await edgen("generate", job, "-o", folder, "--json")
        assert done.code == 0, done.err
        assert set(service.asked.values()) == {1}
    assert files(folder) == files(tmp_path / "calm")


async def test_what_never_reached_the_service_costs_nothing(tmp_path: Path) -> None:
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        job = job_file(tmp_path, service, "oneshot")
    options = ["--set", "limits.max_cost=1", "--set", "limits.give_up_after=2"]
    ended = await edgen("generate", job, "-o", tmp_path / "run", "--json", *options)
    assert ended.code == 5, ended.err
    assert charged(tmp_path / "run") == (0, 0)


class Breaking(Service):
    """A service that accepts a request and breaks the connection."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        self.asked[0] += 1
        assert request.transport is not None
        request.transport.abort()
        return web.Response()


async def test_connections_that_break_are_charged_at_their_most(tmp_path: Path) -> None:
    async with serve(Breaking()) as service:
        backend = {"type": "openai", "model": "m", "base_url": service.url, "max_tokens": 900}
        limits = {"in_flight": 2, "max_tokens": 12_000}
        job = write(tmp_path / "job.yaml", job_text("", backends={"default": backend}, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 4, ended.err
        assert 0 < service.asked.total() * 900 <= charged(tmp_path / "run")[0] <= 12_000


LIES: list[Any] = [
    {"prompt_tokens": 0, "completion_tokens": 0},
    {"prompt_tokens": None, "completion_tokens": None},
    {"prompt_tokens": -60_000, "completion_tokens": -60_000},
    {"prompt_tokens": 400, "completion_tokens": 0},
    {"prompt_tokens": 2**62, "completion_tokens": 2**62},
    {"prompt_tokens": 10**40, "completion_tokens": 1.5},
    "none",
]


class Lying(Service):
    """A service that answers and reports false counts in turn."""

    def __init__(self, lies: list[Any]) -> None:
        super().__init__(trouble=self._lie)
        self.lies = lies

    async def _lie(self, _service: Service, seed: int) -> web.StreamResponse:
        self.answered[seed] += 1
        text = respond([Message("user", "Conversation: [ Teacher: Probability:")], seed=seed).text
        return web.json_response(
            {
                "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
                "usage": self.lies[self.answered.total() % len(self.lies)],
            }
        )


async def test_counts_that_cannot_be_do_not_pass_a_cap(tmp_path: Path) -> None:
    """Sixty calls of at most 500 tokens and their prompts, under a cap of 5,000 tokens."""
    async with serve(Lying(LIES)) as service:
        job = job_file(tmp_path, service, "oneshot")
        options = ["-n", "60", "--set", "backends.default.max_tokens=500", "--set", "limits.max_tokens=5000"]
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json", *options)
        assert ended.code == 4, ended.err
        assert 0 < service.answered.total() * 500 <= charged(tmp_path / "run")[0] <= 5000
        assert 0 < ended.facts["cost_usd"] < 0.01


async def test_one_token_for_a_page_is_charged_by_the_page(tmp_path: Path) -> None:
    async with serve(Lying([{"prompt_tokens": 1, "completion_tokens": 1}])) as service:
        job = job_file(tmp_path, service, "oneshot")
        ended = await edgen(
            "generate", job, "-n", "60", "-o", tmp_path / "run", "--json", "--set", "limits.max_tokens=5000"
        )
        assert ended.code == 4, ended.err
        assert service.answered.total() < 40


async def test_counts_beyond_all_measure_lose_no_answer(tmp_path: Path) -> None:
    async with serve(Lying(LIES[4:])) as service:
        job = job_file(tmp_path, service, "oneshot")
        ended = await edgen("generate", job, "-n", "60", "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        assert (ended.facts["accepted"], service.asked.total()) == (60, 60)
