"""A fleet: several servers of one model, slow, dead, frozen or with another model. The bytes
equal those of one server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from edgen import open as open_run
from edgen.core.registry import find_all
from edgen.core.values import Message
from edgen.execution.client.prefix_cache import Prefixes, mark
from tests import fork_server
from tests.execution.service import (
    CONVERSATIONS,
    Ended,
    Process,
    edgen,
    end,
    error,
    job_text,
    serve,
    start,
    write,
)
from tests.execution.service import files as files_of
from tests.execution.slotted import SlottedServer


def fleet_job(folder: Path, urls: Any, name: str = "job", **changes: Any) -> Path:
    return write(folder / f"{name}.yaml", job_text(urls, **changes))


@contextlib.asynccontextmanager
async def simulator(*options: str) -> AsyncIterator[tuple[Process, str]]:
    """Run `edgen simulator` in a process of its own; yield its address."""
    process = await start("simulator", "--port", "0", *options)
    assert process.stderr is not None
    try:
        line = (await process.stderr.readline()).decode()
        yield process, "http://" + line.partition("http://")[2].split()[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


def by_server(facts: Any) -> dict[str, int]:
    return {url: counts["answers"] for url, counts in facts["servers"].items()}


def files(run: Path) -> dict[str, bytes]:
    """Return the finished files without the manifest, which repeats the job."""
    return {name: data for name, data in files_of(run).items() if name != "manifest.json"}


def answered_at(run: Path) -> list[float]:
    """Return the times of the stored answers."""
    with sqlite3.connect(run / "run.db") as ledger:
        return [time for (time,) in ledger.execute("SELECT answered_at FROM replies ORDER BY 1")]


def rate(run: Path) -> float:
    """Return the answers a second, without the first and the last tenth."""
    times = answered_at(run)
    tenth = len(times) // 10
    return (len(times) - 2 * tenth) / (times[-1 - tenth] - times[tenth])


async def test_calls_are_distributed_by_speed_and_nothing_is_lost_with_a_server_that_dies(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(simulator("--slots", "4", "--latency-ms", str(latency)))
            for latency in (200, 200, 800)
        ]
        urls = [url for _, url in servers]
        alone = await edgen("generate", fleet_job(tmp_path, urls[0], "one"), "-o", tmp_path / "one", "--json")
        job = fleet_job(tmp_path, urls)
        whole = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert (alone.code, whole.code) == (0, 0), whole.err
        shares = by_server(whole.facts)
        assert sum(shares.values()) == CONVERSATIONS
        fast, second, slow = (shares[url] for url in urls)
        possible = rate(tmp_path / "one") * 2.25
        print(
            f"calls: {fast}, {second}, {slow}; {rate(tmp_path / 'run') / possible:.2f} of the sum of the rates"
        )
        assert abs(fast - second) < 0.4 * fast
        assert 1.5 * slow < fast < 8 * slow  # a quarter of the speed; a busy machine shows less difference
        assert files(tmp_path / "run") == files(tmp_path / "one")

        going = await start(
            "generate",
            job,
            "-o",
            tmp_path / "dying",
            "--json",
            "--metrics",
            tmp_path / "m",
            "--log-format",
            "json",
        )
        while not (tmp_path / "dying" / "run.db").exists() or len(answered_at(tmp_path / "dying")) < 30:
            await asyncio.sleep(0.05)
        servers[1][0].send_signal(signal.SIGKILL)
        died = await end(going)
        assert (died.code, died.facts["accepted"]) == (0, CONVERSATIONS), died.err
        assert died.facts["servers"][urls[1]]["failures"] > 0
        opened = [json.loads(line) for line in died.err.splitlines() if '"circuit_opened"' in line]
        assert {event["server"] for event in opened} == {urls[1]}
        assert files(tmp_path / "dying") == files(tmp_path / "one")
        assert f'server="{urls[2]}"' in (tmp_path / "m").read_text()
        status = await edgen("status", tmp_path / "dying")
        assert f"server     {urls[0]}: " in status.out


async def test_a_frozen_server_is_left_out_and_used_again(tmp_path: Path) -> None:
    slots = ("--slots", "4", "--latency-ms", "200")
    async with simulator(*slots) as (_, good), simulator(*slots) as (frozen, bad):
        job = fleet_job(tmp_path, [bad, good], conversations=200, limits={"timeout": 3, "in_flight": 16})
        going = await start("generate", job, "-o", tmp_path / "run", "--json")
        while not (tmp_path / "run" / "run.db").exists() or len(answered_at(tmp_path / "run")) < 20:
            await asyncio.sleep(0.05)
        frozen.send_signal(signal.SIGSTOP)
        try:
            made = await end(going)
        finally:
            frozen.send_signal(signal.SIGCONT)
        assert (made.code, made.facts["accepted"]) == (0, 200), made.err
        assert 0 < made.facts["timeouts"] <= 16


async def generate(folder: Path, urls: Any, *options: str, run: str = "run") -> Ended:
    job = fleet_job(folder, urls, conversations=20)
    return await edgen("generate", job, "-o", folder / run, "--json", *options)


async def test_a_run_goes_on_with_other_servers_of_its_fleet_without_paying_again(tmp_path: Path) -> None:
    async with serve(SlottedServer()) as a, serve(SlottedServer()) as b, serve(SlottedServer()) as c:
        assert (await generate(tmp_path, a.url)).code == 0
        for urls in ([a.url, b.url], [b.url, a.url], [b.url, c.url], c.url):
            made = await generate(tmp_path, urls)
            assert (made.code, made.facts["calls"]["made"]) == (0, 20), made.err
            assert b.asked.total() + c.asked.total() == 0
        more = await generate(tmp_path, c.url, "-n", "25")
        assert (more.code, more.facts["calls"]["made"], c.asked.total()) == (0, 25, 5)
        other = await generate(tmp_path, b.url)  # no longer in the fleet: the user must agree
        assert other.code == 2
        assert "would be requested again" in other.err


async def test_the_list_gives_the_keys_of_its_first_server_or_of_known_as(tmp_path: Path) -> None:
    async with serve(SlottedServer()) as a, serve(SlottedServer()) as b:
        for name, urls, known in (("one", a.url, []), ("two", [a.url, b.url], []), ("three", b.url, [a.url])):
            said = [f"backends.default.known_as={url}" for url in known]
            options = [part for one in said for part in ("--set", one)]
            assert (await generate(tmp_path, urls, *options, run=name)).code == 0
    keys = []
    for name in ("one", "two", "three"):
        with sqlite3.connect(tmp_path / name / "run.db") as ledger:
            keys.append(sorted(ledger.execute("SELECT key FROM replies")))
    assert keys[0] == keys[1] == keys[2]


def listing(*names: str) -> dict[str, Any]:
    return {"/v1/models": {"data": [{"id": name} for name in names]}}


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ((listing("recorded"), listing("other")), "runs other"),
        ((listing("/models/a.gguf"), listing("/models/b.gguf")), "runs /models/b.gguf"),
        ((listing("/models/a.gguf"), listing("/else/a.gguf", "x")), None),
        ((listing("recorded", "x"), listing("y", "recorded")), None),
        ((listing("recorded"), {}), None),
    ],
)
async def test_a_server_that_lists_another_model_is_refused_before_any_call(
    tmp_path: Path, pages: tuple[dict[str, Any], dict[str, Any]], said: str | None
) -> None:
    first, second = (SlottedServer(pages=one) for one in pages)
    async with serve(first), serve(second):
        made = await generate(tmp_path, [first.url, second.url])
        if said is None:
            assert made.code == 0, made.err
            return
        assert made.code == 5
        (line,) = [line for line in made.err.splitlines() if "different models" in line]
        assert f"{second.url} {said}" in line
        assert first.asked.total() + second.asked.total() == 0
        checked = await edgen("doctor", tmp_path / "job.yaml")
        assert f"{second.url} {said}" in checked.out
        assert checked.code == 5


async def test_a_server_whose_answers_name_another_model_is_refused(tmp_path: Path) -> None:
    async def as_other(_service: Any, _seed: int) -> web.StreamResponse | None:
        answer = {"model": "other", "choices": [{"message": {"content": "hi"}}]}
        return web.json_response(answer)

    async with serve(SlottedServer()) as first, serve(SlottedServer(trouble=as_other)) as second:
        made = await generate(tmp_path, [first.url, second.url])
    assert made.code == 5
    assert "run different models" in made.err
    assert "Traceback" not in made.err


@pytest.mark.parametrize(
    ("first", "later", "noted"), [("recorded", "other", True), ("one/file", "two/file", False)]
)
async def test_a_lone_server_whose_answers_name_another_model_is_noted(
    tmp_path: Path, first: str, later: str, noted: bool
) -> None:
    """There is one note and no stop: some services answer one name with several models."""

    class Renaming(SlottedServer):
        async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
            answer = await super().handle(request)
            name = later if self.answered.total() > 10 else first
            if request.method == "POST" and isinstance(answer, web.Response):
                answer.body = bytes(answer.body).replace(b'"recorded"', f'"{name}"'.encode())  # type: ignore[arg-type]
            return answer

    async with serve(Renaming()) as server:
        made = await generate(tmp_path, server.url, "--set", "limits.in_flight=1")
    assert made.code == 0, made.err
    assert made.err.count("named the model recorded, and name other now") == noted
    assert made.err.count("named the model") == noted


async def test_a_server_that_refuses_and_names_a_time_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def later(_service: Any, _seed: int) -> web.StreamResponse | None:
        return error(429, "later", **{"Retry-After": "600"})

    async with serve(SlottedServer()) as first, serve(SlottedServer(trouble=later)) as second:
        made = await asyncio.wait_for(generate(tmp_path, [second.url, first.url]), 60)
        assert (made.code, made.facts["accepted"]) == (0, 20), made.err
        assert second.asked.total() < 20


@pytest.mark.parametrize("urls", [[], ["http://127.0.0.1:1/v1"] * 2, ["http://127.0.0.1:1/v1", "x"], [1]])
async def test_bad_lists_are_refused_in_one_sentence(tmp_path: Path, urls: Any) -> None:
    made = await generate(tmp_path, urls)
    assert made.code == 2
    assert "base_url" in made.err
    assert "Traceback" not in made.err


# --- cached prefixes ------------------------------------------------------------------------------


@dataclass
class Caching(SlottedServer):
    """A server that keeps the blocks of each prompt, in the order of the prompts."""

    prompts: list[list[int]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            body = msgspec.json.decode(await request.read())
            self.prompts.append(mark([Message(m["role"], m["content"]) for m in body["messages"]]))
        return await super().handle(request)


def computed(prompts: list[list[int]]) -> int:
    """Return the number of blocks that a server with an unlimited cache computes for these prompts."""
    return len({block for prompt in prompts for block in prompt})


async def test_turns_and_branches_go_to_the_server_that_has_seen_their_beginning(tmp_path: Path) -> None:
    servers = [Caching(latency=0.02, pages={"/props": {"total_slots": 4}}) for _ in range(3)]
    async with serve(servers[0]), serve(servers[1]), serve(servers[2]):
        backend = {
            "type": "openai",
            "model": "recorded",
            "base_url": [one.url for one in servers],
            "seed": "auto",
        }
        text = job_text(
            "",
            conversations=24,
            replicates=2,
            branch={"at": 3},
            protocol="selfplay",
            prompts={"teacher": "selfplay_teacher", "student": "selfplay_student"},
            selfplay={"first": "teacher", "max_turns": 12},
            backends={"default": backend},
        )
        job = json.loads(text)
        del job["prompt"]
        made = await edgen(
            "generate", write(tmp_path / "job.yaml", json.dumps(job)), "-o", tmp_path / "run", "--json"
        )
    assert made.code == 0, made.err
    prompts = [prompt for server in servers for prompt in server.prompts]
    ours, least = sum(computed(server.prompts) for server in servers), computed(prompts)
    rng = random.Random(4)
    dealt: list[list[list[int]]] = [[], [], []]
    for prompt in prompts:
        rng.choice(dealt).append(prompt)
    at_random = sum(map(computed, dealt))
    print(
        f"blocks: {ours} computed, {ours / least:.2f} of one server's, {ours / at_random:.2f} of random routing's"
    )
    assert ours < 1.3 * least
    assert ours < 0.75 * at_random
    loads = [len(server.prompts) for server in servers]
    assert min(loads) > 0.2 * sum(loads)


def test_half_of_a_prompt_counts_as_seen_and_old_marks_are_forgotten() -> None:
    def said(text: str) -> list[int]:
        return mark([Message("user", text)])

    prefixes: Prefixes[str] = Prefixes(kept=20)
    prefixes.note(said("a" * 2000), "first")
    assert prefixes.find_servers(said("a" * 2000 + "b" * 1500)) == {"first"}
    assert prefixes.find_servers(said("a" * 900 + "b" * 3000)) == set()
    assert prefixes.find_servers(said("b" + "a" * 2000)) == set()
    prefixes.note(said("a" * 2000), "second")
    assert prefixes.find_servers(said("a" * 2000)) == {"first", "second"}
    prefixes.note(said("c" * 6000), "second")
    assert prefixes.find_servers(said("a" * 2000)) == set()
    assert said("short") == []


class BusyServer(SlottedServer):
    """A vLLM server whose metrics report a queue of other users' calls."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/metrics":
            self.looked_at["/metrics"] += 1
            ours = self._inside
            return web.Response(
                text=f'vllm:num_requests_running{{model_name="m"}} {ours + 8}.0\n'
                'vllm:num_requests_waiting{model_name="m"} 40.0\n'
            )
        return await super().handle(request)


@pytest.mark.integration
async def test_the_queue_of_others_counts(tmp_path: Path) -> None:
    """Of two equally fast servers, the one with other users' calls in its queue gets fewer calls."""
    async with (
        serve(BusyServer(slots=64, latency=0.2)) as busy,
        serve(SlottedServer(slots=64, latency=0.2)) as idle,
    ):
        job = fleet_job(tmp_path, [busy.url, idle.url], conversations=300, limits={"in_flight": 24})
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert made.code == 0, made.err
        assert busy.looked_at["/metrics"] >= 2  # for slots, then for the load
        assert busy.asked.total() + idle.asked.total() == 300
        assert idle.asked.total() >= busy.asked.total() + 30  # the busy server has 48 calls of others


# --- other providers, and node-local ------------------------------------------------------------


# In one process, because an SDK takes seconds to import.
GENERATE = """
import sys, edgen
for run in sys.argv[1:]:
    edgen.generate(f"{run}.yaml", output=run, progress=False)
"""
# Providers with an address: the backend's required settings, and the end of its base_url.
WITH_ADDRESS = {
    "openai": ({"model": "m"}, "/v1"),
    "openai-responses": ({"model": "m"}, "/v1"),
    "anthropic": ({"model": "m"}, ""),
    "gemini": ({"model": "m"}, ""),
    "vertex": ({"model": "m", "project": "my-project"}, ""),
    "litellm": ({"model": "openai/m"}, "/v1"),
}


def test_every_provider_with_an_address_is_in_the_table() -> None:
    found = {one.name for one in find_all("provider") if "more_base_urls" in one.Config.__struct_fields__}
    assert found == {*WITH_ADDRESS}


@pytest.mark.parametrize(
    "kind",
    # litellm takes seconds to import, in each process of this test
    [pytest.param(one, marks=pytest.mark.only_long) if one == "litellm" else one for one in WITH_ADDRESS],
)
async def test_every_provider_with_an_address_takes_several(tmp_path: Path, kind: str) -> None:
    needs, ending = WITH_ADDRESS[kind]
    async with AsyncExitStack() as stack:
        slots = ("--slots", "4", "--latency-ms", "100")
        addresses = [(await stack.enter_async_context(simulator(*slots)))[1] for _ in range(2)]
        urls = [url.removesuffix("/v1") + ending for url in addresses]
        for name, base in (("one", urls[0]), ("two", urls)):
            backend = {"type": kind, "base_url": base, **needs}
            fleet_job(tmp_path, "", name, conversations=40, backends={"default": backend})
        made = await end(await fork_server.start(tmp_path / "one", tmp_path / "two", code=GENERATE))
        assert made.code == 0, made.err
        servers = open_run(tmp_path / "two").status.servers
        shares = {url: counts.answers for url, counts in servers.items()}
        assert set(shares) == {*urls}
        assert sum(shares.values()) == 40
        assert min(shares.values()) > 8
        keys = []
        for name in ("one", "two"):
            with sqlite3.connect(tmp_path / name / "run.db") as ledger:
                keys.append(sorted(ledger.execute("SELECT key FROM replies")))
        assert keys[0] == keys[1]


async def test_node_local_is_the_server_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []
    for name in ("first", "second"):  # as on two nodes: the requests are equal
        async with serve(SlottedServer()) as server:
            monkeypatch.setenv("EDGEN_NODE_LOCAL", server.url.removeprefix("http://").removesuffix("/v1"))
            made = await generate(tmp_path, "node-local", run=name)
            assert (made.code, server.asked.total()) == (0, 20), made.err
            checked = await edgen("doctor", tmp_path / "job.yaml")
            assert checked.code == 0
            assert server.url in checked.out
        with sqlite3.connect(tmp_path / name / "run.db") as ledger:
            keys.append(sorted(ledger.execute("SELECT key FROM replies")))
    assert keys[0] == keys[1]
    checked = await edgen("doctor", tmp_path / "job.yaml")  # the server is down now
    assert checked.code == 5
    assert "check base_url" in checked.out + checked.err
    estimated = await edgen("estimate", tmp_path / "job.yaml")
    assert estimated.code == 0, estimated.err


async def test_node_local_stands_alone(tmp_path: Path) -> None:
    made = await generate(tmp_path, ["node-local", "http://127.0.0.1:1/v1"])
    assert made.code == 2
    assert "does not combine with other servers" in made.err
