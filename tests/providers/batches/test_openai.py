"""OpenAI's batches through its own client: requests, states, result lines."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Address, Reply, Usage
from edgen.providers import PATIENCE, find_batch_services
from edgen.providers.batches import (
    BatchService,
    LineResult,
    NeverBegun,
    Sending,
    make_custom_id,
    read_custom_id,
)
from edgen.providers.openai.batches import read_line
from edgen.providers.openai.config import OpenAIConfig
from tests.providers.batches.service import Service, closed_at_last, make_both
from tests.providers.fakes import FakeServer, answer, request

KEY = "sk-0123456789abcdef"
TOKEN = "nightly-5d2f"
COMPLETION = {
    "model": "m-2026",
    "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}


def made(
    url: str, key: str = KEY, *, patience: float = PATIENCE, **settings: Any
) -> tuple[Any, BatchService]:
    config = OpenAIConfig(model="m", base_url=f"{url}/v1", **settings)
    return make_both(config, {"OPENAI_API_KEY": key}, patience)


def opened(url: str, key: str = KEY, **settings: Any) -> AbstractAsyncContextManager[BatchService]:
    return closed_at_last(made(url, key, **settings))


async def failing(awaitable: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        await awaitable
    return caught.value


# --- lines ---------------------------------------------------------------------------------------


async def test_a_line_holds_what_a_call_sends(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    backend, it = made(
        fake.url, temperature=0.3, max_tokens=50, retry_max_tokens=100, seed="auto", extra_body={"n": 1}
    )
    asked = request('a "b" \u2028 ü \x00 end', system="be kind", seed=41, scale=2)
    name = make_custom_id(Address(7, "r0~r1", 3, 1), bytes(range(32)))
    line = it.line(name, asked)
    await backend.complete(asked)
    await backend.aclose()
    await it.aclose()
    assert line.endswith(b'"url":"/v1/chat/completions","body":' + fake.seen[0].body + b"}")
    assert b"\n" not in line
    read = json.loads(line)
    assert (read["custom_id"], read["method"]) == (name, "POST")
    assert len(name) <= 64
    assert read_custom_id(read["custom_id"]) == (7, 3, 1, bytes(range(16)))


def test_half_of_a_character_cannot_be_written() -> None:
    with pytest.raises(CallError) as caught:
        made("http://127.0.0.1:9")[1].line("x", request("\ud800"))
    assert caught.value.kind is FailureKind.BAD_REQUEST


def line(response: Any = None, error: Any = None, **more: Any) -> bytes:
    return json.dumps({"id": "r", "custom_id": "c", "response": response, "error": error, **more}).encode()


def said(status: int, body: Any) -> dict[str, Any]:
    return {"status_code": status, "request_id": "q", "body": body}


def test_an_answer_is_read_as_online() -> None:
    read = read_line(line(said(200, COMPLETION | {"simulated": True})))
    assert read == LineResult("c", Reply("hi", usage=Usage(3, 4), model="m-2026", simulated=True))


def test_moderation_s_word_on_one_prompt_is_an_answer() -> None:
    body = {"error": {"code": "content_filter", "message": "The prompt was flagged."}}
    read = read_line(line(said(400, body)))
    assert isinstance(read, LineResult)
    assert read.reply is not None
    assert (read.reply.finish_reason, read.reply.refusal) == ("content_filter", "The prompt was flagged.")


@pytest.mark.parametrize("code", ["batch_expired", "batch_cancelled"])
def test_what_was_never_begun(code: str) -> None:
    assert read_line(line(None, {"code": code, "message": "too\nlate"})) == NeverBegun("c", "too late")
    assert isinstance(read_line(line(None, {"code": code})), NeverBegun)


@pytest.mark.parametrize(
    ("text", "kind", "status", "message"),
    [
        (
            line(said(429, {"error": {"message": "slow", "code": "rate_limit_exceeded"}})),
            FailureKind.RATE_LIMIT,
            429,
            "slow",
        ),
        (line(said(500, {"error": {"message": "oops"}})), FailureKind.SERVER_ERROR, 500, "oops"),
        (
            line(said(400, {"error": {"message": "long", "code": "context_length_exceeded"}})),
            FailureKind.CONTEXT_OVERFLOW,
            400,
            "long",
        ),
        (line(said(401, {"error": {"message": f"bad {KEY}"}})), FailureKind.AUTHENTICATION, 401, "bad [key]"),
        (line(said(200, {"choices": []})), FailureKind.BAD_RESPONSE, 200, "not a valid reply"),
        (line(said(200, None)), FailureKind.BAD_RESPONSE, 200, "not a valid reply"),
        (line(None, {"code": "model_not_found", "message": "gone"}), FailureKind.NOT_FOUND, None, "gone"),
        (line(None, {"code": "odd", "message": "oops"}), FailureKind.SERVER_ERROR, None, "oops"),
        (line(None, None), FailureKind.SERVER_ERROR, None, "null"),
        # vLLM's run-batch: a message, an error object, an older error object; never a body
        (
            line(said(400, None), "This model's maximum context length is 9"),
            FailureKind.CONTEXT_OVERFLOW,
            400,
            "9",
        ),
        (
            line(said(404, None), {"error": {"message": "no model", "code": 404}}),
            FailureKind.NOT_FOUND,
            404,
            "no m",
        ),
        (line(said(400, None), {"object": "error", "message": "no"}), FailureKind.BAD_REQUEST, 400, "no"),
    ],
)
def test_a_failure_is_classified_as_online(
    text: bytes, kind: FailureKind, status: int | None, message: str
) -> None:
    read = read_line(text, (KEY,))
    assert isinstance(read, LineResult)
    assert read.failure is not None
    assert (read.failure.kind, read.failure.status) == (kind, status)
    assert message in read.failure.message


def test_an_echoed_key_is_taken_out() -> None:
    body = {"choices": [{"message": {"content": f"your key is {KEY}"}}]}
    read = read_line(line(said(200, body)), (KEY,))
    assert read == LineResult("c", Reply("your key is [key]"))


@pytest.mark.parametrize("text", [r"a\ud800b", "a\x01b", r"a\u0000b"])
def test_what_models_write_is_read_leniently(text: str) -> None:
    raw = b'{"custom_id":"\\ud800c","response":{"status_code":200,"body":{"choices":[{"message":{"content":"%b"}}]}}}'
    read = read_line(raw % text.encode())
    assert isinstance(read, LineResult)
    assert read.id == "\ufffdc"
    assert read.reply is not None
    read.reply.text.encode()
    assert read.reply.text[0] + read.reply.text[-1] == "ab"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"custom_id":1}',
        b'{"key":"x","response":{}}',
        b"\xff",
        b"[" * 100_000,
        b"{}" * 9,
    ],
)
def test_what_is_no_line(text: bytes) -> None:
    assert read_line(text) is None


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_not(text: bytes) -> None:
    read_line(text)
    read_line(b'{"custom_id":"c","response":%b}' % text)
    read_line(b'{"custom_id":"c","error":%b}' % text)
    read_line(b'{"custom_id":"c","response":{"status_code":200,"body":%b}}' % text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["code", "message", "status_code", "body", "error", "choices"]), inner),
    max_leaves=8,
)  # fmt: skip


@given(JSON, JSON)
def test_any_line_with_an_id_has_that_id(response: Any, error: Any) -> None:
    read = read_line(line(response, error))
    assert read is not None
    assert read.id == "c"
    if isinstance(read, LineResult):
        assert (read.reply is None) != (read.failure is None)


def test_a_huge_line_takes_little_time() -> None:
    read = read_line(line(said(200, {"choices": [{"message": {"content": "ü" * 10_000_000}}]})))
    assert isinstance(read, LineResult)
    assert read.reply is not None
    assert len(read.reply.text) == 10_000_000


def test_lines_are_read_without_a_key_or_a_client() -> None:
    answered = line(said(200, {"choices": [{"message": {"content": "Hello"}}]}))
    assert find_batch_services(OpenAIConfig(model="m")).read_line(answered) == read_line(answered)


# --- calls ---------------------------------------------------------------------------------------


async def test_a_batch_from_upload_to_download(service: Service, tmp_path: Path) -> None:
    source, result = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    async with opened(service.url) as it:
        source.write_bytes(it.line("a", request("x")) + b"\n" + it.line("b", request("y")) + b"\n")
        file_id = await it.upload(source, TOKEN)
        assert service.files[file_id] == source.read_bytes()
        begun = await it.create(Sending(file_id=file_id, token=TOKEN))
        assert begun.state == "working"
        stored = service.batches[begun.id]
        assert stored["asked"] == {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"edgen": TOKEN},
        }
        found = await it.find(Sending(token=TOKEN))
        assert found is not None
        assert found.id == begun.id
        assert await it.find(Sending(token="another")) is None
        service.files["out"] = line(said(200, COMPLETION)) + b"\n"
        stored.update(status="completed", output_file_id="out", error_file_id="")
        stored["request_counts"] = {"total": 2, "completed": 1, "failed": 1}
        ended = await it.state(begun.id)
        assert (ended.state, ended.outcome, ended.files) == ("ended", "completed", ("out",))
        assert (ended.done, ended.total) == (2, 2)
        await it.download("out", result)
        assert result.read_bytes() == service.files["out"]
        await it.cancel(begun.id)  # the batch has ended, which is fine
        await it.forget(file_id)
        await it.forget(file_id)
        assert file_id not in service.files
    assert {seen.headers["authorization"] for seen in service.seen} == {f"Bearer {KEY}"}
    assert set(tmp_path.iterdir()) == {source, result}


async def test_the_key_alone_says_whose_batches_they_are(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    service.openai_batch()
    async with opened(service.url) as it:
        await it.state("batch_0")
    assert not [name for name in service.seen[0].headers if name.startswith("openai-")]


async def test_a_local_server_is_sent_no_key(service: Service) -> None:
    service.openai_batch()
    async with opened(service.url, key="") as it:
        await it.state("batch_0")
    assert "authorization" not in service.seen[0].headers


async def test_a_batch_is_found_among_many_whatever_their_times_are(service: Service) -> None:
    service.openai_batch(created_at=5_000, metadata=None)
    service.openai_batch(created_at=5_000, metadata={"edgen": TOKEN})
    for _ in range(230):
        service.openai_batch(created_at=4_000, metadata={"other": TOKEN})
    async with opened(service.url) as it:
        found = await it.find(Sending(token=TOKEN))
        assert found is not None
        assert found.id == "batch_1"
        assert len(service.seen) == 3
        assert await it.find(Sending(token="another")) is None


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *(
            (status, None)
            for status in ("validating", "in_progress", "finalizing", "cancelling", "new", None)
        ),
        *((status, status) for status in ("completed", "expired", "cancelled", "failed")),
    ],
)
async def test_states(service: Service, status: Any, outcome: Any) -> None:
    service.openai_batch(status=status, output_file_id="o", error_file_id="e")
    async with opened(service.url) as it:
        remote = await it.state("batch_0")
    assert remote.outcome == outcome
    assert remote.state == ("ended" if outcome else "working")
    assert remote.files == (("o", "e") if outcome else ())


@pytest.mark.parametrize(
    ("errors", "kind", "message"),
    [
        ([{"code": "token_limit_exceeded", "message": "full"}], FailureKind.RATE_LIMIT, "full"),
        ([{"message": "Enqueued token limit reached for m"}], FailureKind.RATE_LIMIT, "Enqueued"),
        ([{"code": "model_not_found", "message": "no m"}], FailureKind.NOT_FOUND, "no m"),
        ([{"code": "invalid_api_key", "message": "no"}], FailureKind.AUTHENTICATION, "no"),
        ([{"code": "billing_hard_limit_reached", "message": "no"}], FailureKind.QUOTA, "no"),
        (
            [{"code": "duplicate_custom_id", "message": "twice", "line": i} for i in range(2, 9)],
            FailureKind.BAD_REQUEST,
            "line 2: twice; line 3: twice; line 4: twice; and 4 more",
        ),
        ([{}], FailureKind.BAD_REQUEST, "no reason"),
        ([], FailureKind.SERVER_ERROR, "no reason"),
        (None, FailureKind.SERVER_ERROR, "no reason"),
    ],
)
async def test_a_batch_that_was_refused(
    service: Service, errors: Any, kind: FailureKind, message: str
) -> None:
    service.openai_batch(status="failed", errors=errors and {"object": "list", "data": errors})
    async with opened(service.url) as it:
        failure = (await it.state("batch_0")).failure
    assert failure is not None
    assert failure.kind is kind
    assert message in failure.message


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"null", b"[]", b"7", b"{}", b'{"id": 7}', b"", b'{"data": 3}', b"\xff"]
)
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
async def test_an_answer_of_something_else(service: Service, body: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"{}\n")
    async with opened(service.url) as it:
        calls: list[Any] = [
            it.state("b"),
            it.create(Sending(file_id="f", token=TOKEN)),
            it.upload(tmp_path / "in", TOKEN),
        ]
        for call in calls:
            service.next = [answer(body, Content_Type=kind)]
            assert (await failing(call)).kind is FailureKind.BAD_RESPONSE


async def test_a_batch_that_is_none_of_the_account_s(service: Service) -> None:
    async with opened(service.url) as it:
        for call in (it.state("batch_9"), it.cancel("batch_9")):
            failure = await failing(call)
            assert (failure.kind, failure.status) == (FailureKind.NOT_FOUND, 404)


async def test_cancelling_one_that_runs(service: Service) -> None:
    service.openai_batch(status="in_progress")
    async with opened(service.url) as it:
        await it.cancel("batch_0")
        assert service.batches["batch_0"]["status"] == "cancelling"
        service.next = [answer({"error": {"message": "not now"}}, 409)]
        assert (await failing(it.cancel("batch_0"))).message == "not now"
