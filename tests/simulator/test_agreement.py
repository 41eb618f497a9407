"""Embedded or served, through either adapter: the same answers, the same failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from edgen.config import BackendConfig
from edgen.core.errors import CallError
from edgen.core.values import Address, Message, Reply, Request
from edgen.providers import Backend, make
from edgen.simulator.options import ServerOptions
from edgen.simulator.service.server import serve_options
from tests.providers.fakes import TRUSTING
from tests.simulator.prompts import prompt

pytestmark = pytest.mark.integration

ENVIRON = {"OPENAI_API_KEY": "some-key", "GOOGLE_API_KEY": "some-key", **TRUSTING}


def backend(config: dict[str, Any], timeout: float) -> Backend:
    built = msgspec.convert(config, BackendConfig.variant(config["type"]))
    return make(built, timeout=timeout, connections=4, environ=ENVIRON)


@asynccontextmanager
async def three(faults: str) -> AsyncIterator[dict[str, Backend]]:
    """Yield the embedded simulator, and both adapters in front of a served one, all with the same faults."""
    async with serve_options(ServerOptions(port=0, faults=faults)) as address:
        configs: tuple[dict[str, Any], ...] = (
            {"type": "simulator", "faults": faults, "max_tokens": 300},
            {"type": "openai", "model": "m", "base_url": f"{address}/v1", "seed": "auto", "max_tokens": 300},
            {"type": "gemini", "model": "m", "base_url": address, "seed": "auto", "max_tokens": 300},
        )
        timeout = 0.5 if "hang" in faults else 60
        backends = {config["type"]: backend(config, timeout) for config in configs}
        try:
            yield backends
        finally:
            for each in backends.values():
                await each.aclose()


def request(seed: int) -> Request:
    first, rest = prompt()[0].content.split("\n", 1)
    return Request(Address(seed, 0), (Message("system", first), Message("user", rest)), seed)


async def test_same_answers_and_usage() -> None:
    async with three("defects=0.4,truncated=0.2,empty=0.1,garbage=0.1") as backends:
        for seed in range(25):
            replies = [await each.complete(request(seed)) for each in backends.values()]
            bare = {msgspec.structs.replace(reply, model=None, refusal=None) for reply in replies}
            assert len(bare) == 1, bare
            assert replies[0].usage is not None


async def test_same_refusals_and_blocks() -> None:
    async with three("refusal=0.5,filtered=0.5") as backends:
        for seed in range(20):
            embedded, openai, gemini = [await each.complete(request(seed)) for each in backends.values()]
            assert embedded.finish_reason == openai.finish_reason == gemini.finish_reason
            if embedded.finish_reason == "stop":
                assert words(embedded) == words(openai) == words(gemini)
            else:
                assert embedded.text == openai.text == gemini.text == ""


def words(reply: Reply) -> str:
    return reply.refusal or reply.text


@pytest.mark.parametrize(
    "fault", ["429=1:2", "500=1", "503=1", "hang=1", "reset=1", "401=1", "404=1", "quota=1"]
)
async def test_same_failures(fault: str) -> None:
    seen = {}
    async with three(fault) as backends:
        for name, each in backends.items():
            with pytest.raises(CallError) as caught:
                await each.complete(request(1))
            seen[name] = (caught.value.kind, caught.value.retry_after)
    assert seen["openai"] == seen["simulator"]
    assert seen["gemini"] == seen["simulator"]


async def test_both_adapters_list_the_model() -> None:
    async with three("") as backends:
        for each in backends.values():
            assert await each.models() == ["edgen-simulator"]
