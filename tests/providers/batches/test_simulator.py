"""All adapters with the batches of `edgen simulator`: an answer by batch equals the answer to a call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import CallError, FailureKind
from edgen.providers import make, make_batch_service
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.batches import (
    BatchService,
    LineResult,
    NeverBegun,
    RemoteBatch,
    Sending,
    Suspects,
    mark_of,
)
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai_responses.config import OpenAIResponsesConfig
from edgen.simulator.service.server import serve_options
from tests.providers.fakes import request
from tests.simulator.server import options

TOKEN = "nightly-5d2f"
ASKED = {
    f"{n}-0-0-{n:032x}-{mark_of(TOKEN)}": request(f"Write a lesson on subject {n}.", seed=n)
    for n in range(40)
}


@pytest.fixture(params=["openai", "openai-responses", "gemini", "anthropic"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.asynccontextmanager
async def opened(kind: str, **changes: Any) -> AsyncIterator[tuple[Any, BatchService]]:
    """Open the online backend of a simulator, and its batches; yield both."""
    async with serve_options(options(**changes)) as url:
        configs: dict[str, Any] = {
            "openai": OpenAIConfig(model="m", base_url=f"{url}/v1", seed="auto"),
            "openai-responses": OpenAIResponsesConfig(model="m", base_url=f"{url}/v1", temperature=0),
            "gemini": GeminiConfig(model="gemini-x", base_url=url, seed="auto"),
            "anthropic": AnthropicConfig(model="claude-x", base_url=url, temperature=0),
        }
        config = configs[kind]
        backend = make(config, timeout=60, connections=8, environ={})
        it = make_batch_service(config, backend, environ={})
        try:
            yield backend, it
        finally:
            await it.aclose()
            await backend.aclose()


async def sent(it: BatchService, folder: Path) -> tuple[Sending, str]:
    """Send a batch; return it and its name at the provider."""
    source = folder / "in.jsonl"
    source.write_bytes(b"".join(it.line(name, ASKED[name]) + b"\n" for name in ASKED))
    file_id = await it.upload(source, TOKEN)
    sending = Sending(file=source, file_id=file_id, token=TOKEN, requests=len(ASKED))
    return sending, (await it.create(sending)).id


async def ended(it: BatchService, name: str) -> RemoteBatch:
    async with asyncio.timeout(120):
        while (remote := await it.state(name)).state == "working":
            await asyncio.sleep(0.05)
    return remote


async def read(it: BatchService, remote: RemoteBatch, folder: Path) -> dict[str, LineResult | NeverBegun]:
    found: dict[str, LineResult | NeverBegun] = {}
    for number, file_id in enumerate(remote.files):
        path = folder / f"out-{number}.jsonl"
        await it.download(file_id, path)
        for line in path.read_bytes().splitlines():
            said = it.read(line)
            assert said is not None
            assert said.id not in found
            found[said.id] = said
    return found


async def test_a_batch_answers_what_calls_answer(kind: str, tmp_path: Path) -> None:
    async with opened(kind, batch_seconds=0.2) as (backend, it):
        sending, name = await sent(it, tmp_path)
        remote = await ended(it, name)
        found = await it.find(sending)
        assert isinstance(found, RemoteBatch)
        assert found.id == name
        assert (remote.outcome, remote.done, remote.total) == ("completed", 40, 40)
        replies = await read(it, remote, tmp_path)
        await it.cancel(name)
        await it.forget(sending.file_id or "none")
        for name, asked in list(ASKED.items())[:5]:
            online = await backend.complete(asked)
            assert online.simulated
            assert replies[name] == LineResult(name, online)
        assert replies.keys() == ASKED.keys()


async def test_one_that_expired_half_way(kind: str, tmp_path: Path) -> None:
    async with opened(kind, batch_seconds=2.0, batch_window=1.0) as (_, it):
        _, name = await sent(it, tmp_path)
        remote = await ended(it, name)
        assert remote.outcome == "expired"
        said = await read(it, remote, tmp_path)
        if remote.files:
            assert said.keys() == ASKED.keys()
            assert 0 < sum(isinstance(one, NeverBegun) for one in said.values()) < len(ASKED)
        assert all(isinstance(one, NeverBegun) or one.reply is not None for one in said.values())


async def test_one_that_was_cancelled(kind: str, tmp_path: Path) -> None:
    async with opened(kind, batch_seconds=20.0) as (_, it):
        _, name = await sent(it, tmp_path)
        await it.cancel(name)
        remote = await ended(it, name)
        assert remote.outcome == "cancelled"
        said = await read(it, remote, tmp_path)
        assert all(isinstance(one, NeverBegun) or one.reply is not None for one in said.values())


async def test_requests_that_fail_one_by_one(kind: str, tmp_path: Path) -> None:
    async with opened(kind, batch_seconds=0.1, faults="429=0.3,500=0.3") as (_, it):
        _, name = await sent(it, tmp_path)
        said = await read(it, await ended(it, name), tmp_path)
    assert said.keys() == ASKED.keys()
    kinds = {one.failure.kind for one in said.values() if isinstance(one, LineResult) and one.failure}
    assert kinds == {FailureKind.RATE_LIMIT, FailureKind.SERVER_ERROR}
    assert any(isinstance(one, LineResult) and one.reply for one in said.values())


async def refused(it: BatchService, folder: Path, content: bytes) -> CallError:
    """Return why a file is refused, at once or as a failed batch."""
    (folder / "in.jsonl").write_bytes(content)
    try:
        file_id = await it.upload(folder / "in.jsonl", TOKEN)
        begun = await it.create(Sending(file=folder / "in.jsonl", file_id=file_id, token=TOKEN))
        failure = (await ended(it, begun.id)).failure
    except CallError as refusal:
        failure = refusal
    assert failure is not None
    return failure


async def test_a_file_that_is_refused(kind: str, tmp_path: Path) -> None:
    async with opened(kind, batch_seconds=0.1) as (_, it):
        line = it.line("c", request("x")) + b"\n"
        assert (await refused(it, tmp_path, line + b"{\n")).kind is FailureKind.BAD_REQUEST
        if kind != "gemini":  # Google accepts repeated names
            failure = await refused(it, tmp_path, line * 2)
            assert failure.kind is FailureKind.BAD_REQUEST
            assert failure.message.startswith("requests.1.custom_id: " if kind == "anthropic" else "line 2: ")


async def test_a_batch_whose_beginning_nobody_heard_of_is_found(kind: str, tmp_path: Path) -> None:
    async with opened(kind, batch_seconds=0.1, faults="batch_create_lost=1") as (_, it):
        with pytest.raises(CallError) as caught:
            await sent(it, tmp_path)
        assert caught.value.kind is FailureKind.CONNECTION
        sending = Sending(token=TOKEN, requests=len(ASKED))
        async with asyncio.timeout(120):
            while not isinstance(found := await it.find(sending), RemoteBatch):
                assert isinstance(found, Suspects), "it may be the one, and tells when it has ended"
                assert it.settles is not None
        assert (await ended(it, found.id)).outcome == "completed"
        assert await it.find(Sending(token="another", requests=len(ASKED))) is None


async def test_files_that_are_slow_to_go_up_and_come_down(kind: str, tmp_path: Path) -> None:
    clock = asyncio.get_running_loop().time
    async with opened(kind, batch_seconds=0.0, faults="batch_slow=1:0.3") as (_, it):
        began = clock()
        _, name = await sent(it, tmp_path)
        assert kind == "anthropic" or clock() - began >= 0.3  # Anthropic takes no files
        remote = await ended(it, name)
        began = clock()
        said = await read(it, remote, tmp_path)
        assert clock() - began >= 0.3
    assert said.keys() == ASKED.keys()
