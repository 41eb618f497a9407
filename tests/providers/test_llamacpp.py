"""A model in edgen's own process: real llama.cpp with tiny random weights, generated for the tests."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core.errors import CallError, FailureKind, InputError
from edgen.core.values import Reply
from edgen.providers import make
from edgen.providers.base import CountsSlots, ShowsProgress
from edgen.providers.llamacpp import choose_threads, engine
from edgen.providers.llamacpp.config import LlamaCppConfig
from edgen.providers.llamacpp.installed import find_installed, list_installed_models
from edgen.providers.llamacpp.notes import find_digest, find_notes_file
from edgen.providers.llamacpp.online import wait_while_computing
from tests.providers.fakes import request
from tests.providers.llama import Build

SCHEMA = {
    "type": "object",
    "properties": {"understood": {"enum": ["yes", "no"]}, "why": {"type": "string", "maxLength": 12}},
    "required": ["understood", "why"],
    "additionalProperties": False,
}


# --- answers -----------------------------------------------------------------------------------


async def test_an_answer_with_its_counts_and_its_models_name(build: Build) -> None:
    reply = await build(max_tokens=6, temperature=0).complete(request("hi"))
    assert reply.text
    assert reply.model == "tiny"
    assert reply.usage is not None
    # Two letters in two brackets, and the assistant's opening, by the chat template.
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (5, 6)


async def test_it_says_how_many_calls_it_answers_at_once(build: Build) -> None:
    for slots in (1, 3):
        it = build(slots=slots)
        assert isinstance(it, CountsSlots)
        assert isinstance(it, ShowsProgress)
        assert await it.slots() == slots


async def test_seeds_reproduce_bytes_whatever_is_asked_between(build: Build) -> None:
    it = build(temperature=1.0)
    first = [(await it.complete(request("hi", seed=seed))).text for seed in range(6)]
    again = await asyncio.gather(*(it.complete(request("hi", seed=seed)) for seed in (5, 3, 1, 0, 2, 4)))
    assert [reply.text for reply in again] == [first[seed] for seed in (5, 3, 1, 0, 2, 4)]
    assert len(set(first)) > 3


async def test_an_answer_fits_its_schema_to_the_letter_without_other_white_space(build: Build) -> None:
    it = build(temperature=1.0, max_tokens=100)
    schema = msgspec.json.encode(SCHEMA)
    for seed in range(4):
        reply = await it.complete(msgspec.structs.replace(request("and?", seed=seed), schema=schema))
        said = json.loads(reply.text)
        assert said["understood"] in ("yes", "no")
        assert len(said["why"]) <= 12
        assert reply.text.startswith('{"understood": "')


async def test_log_probabilities_are_the_models_own_under_a_schema_as_well(build: Build) -> None:
    schema = msgspec.json.encode({"enum": [1, 2]})
    asked = msgspec.structs.replace(request("1 or 2?"), logprobs=20, schema=schema)
    reply = await build(temperature=0).complete(asked)
    assert reply.text in ("1", "2")
    assert reply.tokens is not None
    assert reply.tokens[0].text == reply.text
    assert len(reply.tokens[0].top) == 20
    # A random model gives nearly all probability to tokens that the schema forbids.
    assert 0 < sum(math.exp(logprob) for _, logprob in reply.tokens[0].top) < 1


async def test_a_prompt_longer_than_the_context_is_one_failed_request(build: Build) -> None:
    it = build()
    with pytest.raises(
        CallError, match=r"exceeds the available context size \(512.*`context: 512`"
    ) as caught:
        await it.complete(request("many words " * 500))
    assert caught.value.kind is FailureKind.CONTEXT_OVERFLOW
    assert (await it.complete(request("hi"))).text, "the model answers the next"


async def test_extra_fields_reach_the_sampler(build: Build) -> None:
    it = build(extra_body={"logit_bias": [[0, 100]]})  # the token that ends an answer
    assert (await it.complete(request("hi"))).usage.completion_tokens == 1  # type: ignore[union-attr]


async def test_calls_that_wait_for_a_slot_do_not_time_out(build: Build) -> None:
    counted = {"max_tokens": 300, "extra_body": {"ignore_eos": True}}
    slow = build(**counted)
    await slow.complete(request("hi"))
    began = time.monotonic()
    await slow.complete(request("hi"))
    once = time.monotonic() - began
    it = build(**counted, timeout=10 * once + 0.5)
    many = int(15 + 0.75 / once)  # one and a half times the time limit
    replies = await asyncio.gather(*(it.complete(request("hi", seed=seed)) for seed in range(many)))
    assert len(replies) == many


async def test_a_cancelled_call_frees_its_slot(build: Build) -> None:
    it = build(context=1024, max_tokens=1000, extra_body={"ignore_eos": True})
    await it.complete(request("hi"))
    began = time.monotonic()
    await it.complete(request("hi"))
    whole = time.monotonic() - began
    calls = [asyncio.create_task(it.complete(request("hi", seed=seed))) for seed in range(30)]
    await asyncio.sleep(whole / 4)
    began = time.monotonic()
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await it.complete(request("hi"))
    assert time.monotonic() - began < 15 * whole


async def test_a_call_cancelled_while_its_model_loads_leaves_nothing_loaded(build: Build) -> None:
    it = build(context=128)
    call = asyncio.create_task(it.complete(request("hi")))
    await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await it.aclose()
    assert not engine._engines
    assert (await it.complete(request("hi"))).text, "it loads again where it is used again"


# --- one loaded model ----------------------------------------------------------------------------


async def test_backends_with_the_same_weights_and_settings_share_one_model(
    build: Build, weights: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(weights.read_bytes())
    same = [build(), build(temperature=0.2, model="named"), build(path=str(copy))]
    await asyncio.gather(*(it.complete(request("hi")) for it in same))
    assert len(engine._engines) == 1
    await same[0].aclose()
    await same[0].aclose()
    assert (await same[1].complete(request("hi"))).model == "named"
    await build(context=256).complete(request("hi"))
    assert len(engine._engines) == 2


def test_two_loops_share_one_model(weights: Path) -> None:
    async def ask() -> str:
        config = LlamaCppConfig(path=str(weights), context=512, max_tokens=24)
        it = make(config, timeout=30, connections=4, environ={})
        try:
            return (await it.complete(request("hi"))).text
        finally:
            await it.aclose()

    async def both() -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(asyncio.run, ask()) for _ in range(2)))

    first, second = asyncio.run(both())
    assert first == second
    assert not engine._engines


async def test_the_port_is_of_this_machine_and_opens_to_its_key_alone(build: Build) -> None:
    await build().complete(request("hi"))
    (loaded,) = engine._engines.values()
    host, _, port = loaded.address.removeprefix("http://").rpartition(":")
    assert host == "127.0.0.1"
    assert len(loaded.key) >= 32
    with pytest.raises(
        OSError, match=r"refused|unreachable|assign"
    ):  # a port open on all addresses would answer here
        socket.create_connection(("127.0.0.2", int(port)), timeout=2)
    for path in ("/v1/models", "/props", "/slots", "/metrics", "/v1/chat/completions", "/completion"):
        for key in (None, "wrong"):
            status, _ = await asyncio.to_thread(ask_port, loaded.address + path, key)
            assert status in (401, 404), path
    for method in ("GET", "OPTIONS"):
        _, headers = await asyncio.to_thread(ask_port, f"{loaded.address}/health", None, method)
        assert not headers.get("Access-Control-Allow-Origin"), "no page may read an answer"


def ask_port(url: str, key: str | None, method: str = "GET") -> tuple[int, Any]:
    headers = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, None, headers, method=method)) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers


# --- identity ------------------------------------------------------------------------------------


async def test_the_identity_is_of_the_weights_not_of_their_place(
    build: Build, weights: Path, tmp_path: Path
) -> None:
    copy, other = tmp_path / "copy.gguf", tmp_path / "other.gguf"
    data = bytearray(weights.read_bytes())
    copy.write_bytes(data)
    data[-1] ^= 1
    other.write_bytes(data)
    identity = build().identity
    assert identity["sha256"]
    assert build(path=str(copy), model="m", threads=2, slots=2).identity == identity
    assert build(path=str(other)).identity != identity
    assert build(context=256).identity != identity
    assert build(chat_template="{{ messages[0]['content'] }}").identity != identity


def test_a_digest_is_computed_once_for_a_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(b"one")
    found = path.stat()
    first = find_digest(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert find_digest(path) == first, "it was read again"
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    assert find_digest(path) != first
    find_notes_file().write_text("damaged")
    assert find_digest(path) != first


# --- installed models ----------------------------------------------------------------------------


def install(site: Path, package: str, *files: Path) -> None:
    """Lay out a package with these files, like pip."""
    info = site / f"{package.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    folder = site / package.replace("-", "_")
    folder.mkdir()
    names = []
    for file in files:
        (folder / file.name).write_bytes(file.read_bytes())
        names.append(f"{folder.name}/{file.name},,\n")
    (info / "RECORD").write_text("".join(names))


def test_models_of_installed_packages_are_found_by_name(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = tmp_path / "Other-1B.Q4.gguf"
    second.write_bytes(weights.read_bytes())
    install(tmp_path / "site", "llm-lonely", weights)
    install(tmp_path / "site", "two-models", weights, second)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    names = {model.name: model for model in list_installed_models()}
    assert {"lonely", "tiny", "other-1b.q4"} <= names.keys()
    assert names["lonely"].package == "llm-lonely"
    assert find_installed("Lonely") == find_installed("llm-lonely") == names["lonely"]
    assert find_installed("Other-1B.Q4").path.name == second.name
    with pytest.raises(InputError, match=r"called 'lonly'; did you mean lonely\? `edgen local`"):
        find_installed("lonly")


def test_threads_leave_a_core_to_others() -> None:
    assert [choose_threads(cores) for cores in (1, 2, 4, 16, 128)] == [1, 1, 2, 8, 8]


# --- time --------------------------------------------------------------------------------------


async def test_an_answer_that_is_computed_is_not_cut_off_by_the_time_limit() -> None:
    def compute() -> Reply:
        ends = time.monotonic() + 2.5
        while time.monotonic() < ends:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000)
        return Reply(text="done", finish_reason="stop")

    signs: list[int] = []
    reply = await wait_while_computing(asyncio.to_thread(compute), 1, lambda: signs.append(1))
    assert reply.text == "done"
    assert len(signs) >= 2


async def test_a_model_that_computes_nothing_meets_the_time_limit() -> None:
    ended, signs = asyncio.Event(), []

    async def silent() -> Reply:
        try:
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            ended.set()

    with pytest.raises(CallError, match="computed nothing for 1 s") as failed:
        await wait_while_computing(silent(), 1, lambda: signs.append(1))
    await ended.wait()
    assert failed.value.kind is FailureKind.TIMEOUT
    assert len(signs) <= 2, "the process itself"
