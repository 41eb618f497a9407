"""Anthropic's batches through its own client: requests, states, ownership, result lines."""

from __future__ import annotations

import json
import logging
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import FailureKind
from edgen.core.values import Address, Reply, Usage
from edgen.providers import PATIENCE, find_batch_services
from edgen.providers.anthropic.batches import read_line
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.batches import (
    BatchService,
    LineResult,
    NeverBegun,
    RemoteBatch,
    Sending,
    Suspects,
    make_custom_id,
    mark_of,
    read_custom_id,
)
from tests.providers.batches.service import Service, closed_at_last, make_both
from tests.providers.batches.test_openai import failing
from tests.providers.fakes import FakeServer, answer, request

KEY = "sk-ant-0123456789abcdef"
TOKEN = "nightly-5d2f"
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m-2026", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": 3, "output_tokens": 4},
}  # fmt: skip


def made(
    url: str, key: str = KEY, *, patience: float = PATIENCE, **settings: Any
) -> tuple[Any, BatchService]:
    config = AnthropicConfig(**{"model": "m", "base_url": url, **settings})
    return make_both(config, {"ANTHROPIC_API_KEY": key}, patience)


def opened(url: str, key: str = KEY, **settings: Any) -> AbstractAsyncContextManager[BatchService]:
    return closed_at_last(made(url, key, **settings))


# --- lines ---------------------------------------------------------------------------------------


async def test_a_line_holds_what_a_call_sends(fake: FakeServer) -> None:
    fake.says(answer(MESSAGE))
    backend, it = made(
        fake.url,
        temperature=0.3,
        max_tokens=50,
        retry_max_tokens=100,
        extra_body={"metadata": {"user_id": "u"}},
    )
    asked = request('a "b" \u2028 ü \x00 end', system="be kind", scale=2)
    name = make_custom_id(Address(7, "r0~r1", 3, 1), bytes(range(32)), mark_of(TOKEN))
    line = it.line(name, asked)
    await backend.complete(asked)
    await backend.aclose()
    await it.aclose()
    assert line.endswith(b'"params":' + fake.seen[0].body + b"}")
    assert b"\n" not in line
    assert read_custom_id(json.loads(line)["custom_id"]) == (7, 3, 1, bytes(range(16)))


def test_the_longest_name_is_one_that_the_service_takes() -> None:
    name = make_custom_id(Address((1 << 42) - 1, 0, 9999, 99), bytes(32), mark_of(TOKEN))
    assert len(name) == 63
    assert set(name) <= set("0123456789abcdefghijklmnopqrstuvwxyz-")
    assert mark_of(TOKEN) != mark_of("nightly-5d2e")


def result(kind: str, **more: Any) -> bytes:
    return json.dumps({"custom_id": "c", "result": {"type": kind, **more}}).encode()


def refused(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}


def test_an_answer_is_read_as_online() -> None:
    read = read_line(result("succeeded", message=MESSAGE | {"simulated": True}))
    assert read == LineResult("c", Reply("hi", usage=Usage(3, 4), model="m-2026", simulated=True))


@pytest.mark.parametrize("kind", ["canceled", "expired"])
def test_what_was_never_begun(kind: str) -> None:
    read = read_line(result(kind))
    assert isinstance(read, NeverBegun)
    assert kind in read.why


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (result("errored", error=refused("rate_limit_error", "slow")), FailureKind.RATE_LIMIT, "slow"),
        (result("errored", error=refused("overloaded_error", "full")), FailureKind.OVERLOADED, "full"),
        (result("errored", error=refused("api_error", "oops")), FailureKind.SERVER_ERROR, "oops"),
        (result("errored", error=refused("timeout_error", "late")), FailureKind.TIMEOUT, "late"),
        (result("errored", error=refused("invalid_request_error", "no")), FailureKind.BAD_REQUEST, "no"),
        (
            result("errored", error=refused("invalid_request_error", "prompt is too long: 9 > 8")),
            FailureKind.CONTEXT_OVERFLOW,
            "too long",
        ),
        (
            result("errored", error=refused("invalid_request_error", "Your credit balance is too low to go on")),
            FailureKind.QUOTA,
            "credit",
        ),
        (result("errored", error=refused("authentication_error", f"bad {KEY}")), FailureKind.AUTHENTICATION, "bad [key]"),
        (result("errored", error=refused("of_tomorrow", "odd")), FailureKind.SERVER_ERROR, "odd"),
        (result("errored"), FailureKind.SERVER_ERROR, "null"),
        (result("of tomorrow"), FailureKind.SERVER_ERROR, "null"),
        (result("succeeded", message={"content": 3}), FailureKind.BAD_RESPONSE, "not a valid reply"),
        (result("succeeded"), FailureKind.BAD_RESPONSE, "not a valid reply"),
    ],
)  # fmt: skip
def test_a_failure_is_classified_as_online(line: bytes, kind: FailureKind, message: str) -> None:
    read = read_line(line, (KEY,))
    assert isinstance(read, LineResult)
    assert read.failure is not None
    assert (read.failure.kind, read.failure.status) == (kind, None)
    assert message in read.failure.message


def test_an_echoed_key_is_taken_out() -> None:
    said = MESSAGE | {"content": [{"type": "text", "text": f"your key is {KEY}"}]}
    read = read_line(result("succeeded", message=said), (KEY,))
    assert isinstance(read, LineResult)
    assert read.reply is not None
    assert read.reply.text == "your key is [key]"


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_not(text: bytes) -> None:
    read_line(text)
    for line in (
        b'{"custom_id":"c","result":%b}',
        b'{"custom_id":"c","result":{"type":"succeeded","message":%b}}',
    ):
        read_line(line % text)  # fmt: skip


def test_what_is_no_line() -> None:
    for line in (
        b"",
        b"[]",
        b"{",
        b'{"custom_id":"c","params":{}}',
        b'{"result":{"type":"expired"}}',
        b"\xff",
    ):
        assert read_line(line) is None
    assert find_batch_services(AnthropicConfig(model="m")).read_line is read_line


# --- calls ---------------------------------------------------------------------------------------


def written(it: BatchService, folder: Path, token: str = TOKEN, count: int = 2) -> Path:
    """Write a file with this number of requests, marked with a token."""
    lines = (
        it.line(make_custom_id(Address(n, 0), bytes(32), mark_of(token)), request(f"x {n}"))
        for n in range(count)
    )
    (folder / "in.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    return folder / "in.jsonl"


def answered(token: str, count: int = 2) -> bytes:
    names = [make_custom_id(Address(n, 0), bytes(32), mark_of(token)) for n in range(count)]
    lines = ({"custom_id": name, "result": {"type": "succeeded", "message": MESSAGE}} for name in names)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


async def test_a_batch_from_its_file_to_its_results(service: Service, tmp_path: Path) -> None:
    async with opened(service.url) as it:
        source = written(it, tmp_path)
        assert await it.upload(source, TOKEN) is None, "nothing is there yet"
        begun = await it.create(Sending(file=source, token=TOKEN))
        assert begun == RemoteBatch(id="msgbatch_0", state="working", total=2)
        asked = service.batches[begun.id]["asked"]
        assert asked == [json.loads(line) for line in source.read_bytes().splitlines()]
        assert await it.upload(source, TOKEN) == "msgbatch_0", "the newest"
        service.anthropic_ended(begun.id, succeeded=1, errored=1)
        service.files[begun.id] = answered(TOKEN)
        ended = await it.state(begun.id)
        assert (ended.state, ended.outcome, ended.files) == ("ended", "completed", (begun.id,))
        assert (ended.done, ended.total) == (2, 2)
        await it.download(begun.id, tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == service.files[begun.id]
        await it.cancel(begun.id)  # the batch has ended, which is fine
        await it.forget(begun.id)
    assert {seen.headers["x-api-key"] for seen in service.seen} == {KEY}
    assert not [seen for seen in service.seen if "authorization" in seen.headers]
    assert {seen.headers["anthropic-version"] for seen in service.seen} == {"2023-06-01"}


async def test_a_batch_goes_out_with_its_size(service: Service, tmp_path: Path) -> None:
    async with opened(service.url) as it:
        await it.create(Sending(file=written(it, tmp_path, count=500), token=TOKEN))
    [seen] = service.seen
    assert int(seen.headers["content-length"]) == len(seen.body)
    assert "transfer-encoding" not in seen.headers


async def test_the_key_alone_says_whose_batches_they_are(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Secret: of-another\nx-api-key: of-another")
    service.anthropic_batch()
    for key in (KEY, ""):
        async with opened(service.url, key=key) as it:
            await it.state("msgbatch_0")
    assert [seen.headers.get("x-api-key") for seen in service.seen] == [KEY, None]
    for seen in service.seen:
        assert "authorization" not in seen.headers
        assert "of-another" not in str(seen.headers)
        assert "127.0.0.1:9/" not in str(seen.headers)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("counts", "outcome"),
    [
        ({"succeeded": 2}, "completed"),
        ({"errored": 2}, "completed"),
        ({"succeeded": 1, "expired": 1}, "expired"),
        ({"succeeded": 1, "canceled": 1}, "cancelled"),
    ],
)
async def test_ends(service: Service, counts: dict[str, int], outcome: str) -> None:
    service.anthropic_batch()
    service.anthropic_ended("msgbatch_0", **counts)
    async with opened(service.url) as it:
        remote = await it.state("msgbatch_0")
    done = counts.get("succeeded", 0) + counts.get("errored", 0)
    assert (remote.state, remote.outcome, remote.done, remote.total) == ("ended", outcome, done, 2)


@pytest.mark.parametrize("status", ["in_progress", "canceling", "of tomorrow", None])
async def test_one_that_has_not_ended(service: Service, status: Any) -> None:
    service.anthropic_batch(processing_status=status, results_url="early")
    async with opened(service.url) as it:
        remote = await it.state("msgbatch_0")
    assert remote == RemoteBatch(id="msgbatch_0", state="working", total=2)


async def test_one_whose_results_are_gone_was_worked_on(service: Service) -> None:
    service.anthropic_batch()
    service.anthropic_ended("msgbatch_0", expired=2)
    service.batches["msgbatch_0"]["results_url"] = None
    async with opened(service.url) as it:
        remote = await it.state("msgbatch_0")
    assert (remote.outcome, remote.files) == ("completed", ())


# --- ownership of batches ------------------------------------------------------------------------


async def test_a_batch_is_known_by_its_requests_once_it_has_ended(service: Service) -> None:
    older, newest = service.anthropic_batch(), service.anthropic_batch()
    service.files[older["id"]] = answered(TOKEN)  # of an earlier batch: not read
    service.anthropic_ended(older["id"], succeeded=2)
    sending = Sending(token=TOKEN, file_id=newest["id"], requests=2, others=frozenset({"msgbatch_2"}))
    async with opened(service.url) as it:
        assert await it.find(sending) is None
        service.anthropic_batch()  # another batch of the run
        service.anthropic_batch(requests=3)  # a batch of another size
        ours, theirs = service.anthropic_batch()["id"], service.anthropic_batch()["id"]
        assert await it.find(sending) == Suspects((theirs, ours))
        service.anthropic_ended(theirs, succeeded=2)
        service.files[theirs] = answered("another")
        assert await it.find(sending) == Suspects((ours,))
        looked = len(service.seen)
        assert await it.find(sending) == Suspects((ours,))
        assert len(service.seen) == looked + 1, "what is a stranger's is not looked at again"
        service.anthropic_ended(ours, succeeded=1, errored=1)
        service.files[ours] = b"an odd line\n" + answered(TOKEN)
        found = await it.find(sending)
        assert isinstance(found, RemoteBatch)
        assert found.id == ours


async def test_one_whose_results_cannot_be_looked_at_is_taken_for_it(service: Service) -> None:
    """The batch may have been paid for; a reader of it reports that its results are gone."""
    sending = Sending(token=TOKEN, requests=2)
    gone = service.anthropic_batch()["id"]
    service.anthropic_ended(gone, succeeded=2)
    async with opened(service.url) as it:
        found = await it.find(sending)
        assert isinstance(found, RemoteBatch)
        assert found.id == gone
        ours = service.anthropic_batch()["id"]
        assert await it.find(sending) == Suspects((ours,))
        service.anthropic_ended(ours, succeeded=2)
        service.files[ours] = answered(TOKEN)
        found = await it.find(sending)
        assert isinstance(found, RemoteBatch)
        assert found.id == ours


async def test_a_search_ends_at_what_is_a_day_older(service: Service) -> None:
    """The latest batch known before may have been deleted meanwhile."""
    for _ in range(350):
        service.anthropic_batch(created_at="2026-01-01T00:00:00Z")
    sending = Sending(token=TOKEN, file_id="msgbatch_gone", requests=2, asked_at=1_800_000_000.0)
    async with opened(service.url) as it:
        assert await it.find(sending) is None
        assert len(service.seen) == 1
        assert isinstance(await it.find(msgspec.structs.replace(sending, asked_at=None)), Suspects)
        assert len(service.seen) == 5


async def test_results_that_fail_while_they_are_looked_at_decide_nothing(service: Service) -> None:
    service.anthropic_batch()
    service.anthropic_ended("msgbatch_0", succeeded=2)
    listed = {"data": [service.batches["msgbatch_0"]], "has_more": False, "last_id": "msgbatch_0"}
    async with opened(service.url) as it:
        service.next = [
            answer(listed),
            answer({"error": {"type": "overloaded_error", "message": "full"}}, 529),
        ]
        failure = await failing(it.find(Sending(token=TOKEN, requests=2)))
    assert failure.kind is FailureKind.OVERLOADED
