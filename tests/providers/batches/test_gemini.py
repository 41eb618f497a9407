"""Gemini's batches through Google's own client: requests, states, result lines."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Usage
from edgen.providers import PATIENCE, find_batch_services
from edgen.providers.batches import BatchService, LineResult, NeverBegun, Sending
from edgen.providers.gemini.batches import read_line
from edgen.providers.gemini.config import GeminiConfig
from tests.providers.batches.service import Service, closed_at_last, make_both
from tests.providers.batches.test_openai import JSON, failing
from tests.providers.fakes import FakeServer, answer, request

KEY = "AIza0123456789abcdef"
TOKEN = "nightly-5d2f"
ANSWER = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4},
    "modelVersion": "g-001",
}


def made(
    url: str, key: str = KEY, *, patience: float = PATIENCE, **settings: Any
) -> tuple[Any, BatchService]:
    config = GeminiConfig(model="gemini-x", base_url=url, **settings)
    return make_both(config, {"GEMINI_API_KEY": key}, patience)


def opened(url: str, key: str = KEY, **settings: Any) -> AbstractAsyncContextManager[BatchService]:
    return closed_at_last(made(url, key, **settings))


# --- lines ---------------------------------------------------------------------------------------


async def test_a_line_holds_what_a_call_sends(fake: FakeServer) -> None:
    fake.says(answer(ANSWER))
    backend, it = made(fake.url, temperature=0.3, max_tokens=50, retry_max_tokens=100, seed="auto")
    asked = request("a \u2028 ü \x00 end", system="be kind", seed=41, scale=2)
    line = it.line("7-0-3-1", asked)
    await backend.complete(asked)
    await backend.aclose()
    await it.aclose()
    assert line == b'{"key":"7-0-3-1","request":' + fake.seen[0].body + b"}"
    assert b"\n" not in line
    assert json.loads(line)["request"]["generationConfig"]["seed"] == 41


def line(**parts: Any) -> bytes:
    return json.dumps({"key": "c", **parts}).encode()


def test_an_answer_is_read_as_online() -> None:
    read = read_line(line(response=ANSWER | {"simulated": True}))
    assert read == LineResult("c", Reply("hi", usage=Usage(3, 4), model="g-001", simulated=True))


def test_a_block_is_an_answer() -> None:
    read = read_line(line(response={"promptFeedback": {"blockReason": "SAFETY"}}))
    assert isinstance(read, LineResult)
    assert read.reply is not None
    assert (read.reply.finish_reason, read.reply.refusal) == ("content_filter", "SAFETY")


@pytest.mark.parametrize(
    "error",
    [
        {"code": 1, "message": "cancelled"},
        {"status": "CANCELLED", "message": "cancelled"},
        {"code": 4, "message": "The batch expired before this."},
    ],
)
@pytest.mark.parametrize("where", ["error", "status"])
def test_what_was_never_begun(error: dict[str, Any], where: str) -> None:
    assert read_line(line(**{where: error})) == NeverBegun("c", error["message"])


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 8, "message": "slow"}, FailureKind.RATE_LIMIT, 429),
        ({"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}, FailureKind.RATE_LIMIT, 429),
        ({"status": "RESOURCE_EXHAUSTED", "message": "slow"}, FailureKind.RATE_LIMIT, 429),
        ({"code": 3, "message": "bad"}, FailureKind.BAD_REQUEST, 400),
        ({"code": 3, "message": "API key not valid"}, FailureKind.AUTHENTICATION, 400),
        (
            {"code": 3, "message": "The input token count (9) exceeds the maximum"},
            FailureKind.CONTEXT_OVERFLOW,
            400,
        ),
        ({"code": 4, "message": "too slow"}, FailureKind.TIMEOUT, 504),
        ({"code": 5, "message": "no model"}, FailureKind.NOT_FOUND, 404),
        ({"code": 7, "message": "no"}, FailureKind.PERMISSION, 403),
        ({"code": 13, "message": "oops"}, FailureKind.SERVER_ERROR, 500),
        ({"code": 14, "message": "full"}, FailureKind.OVERLOADED, 503),
        ({"code": 16, "message": "who?"}, FailureKind.AUTHENTICATION, 401),
        ({"message": "oops"}, FailureKind.SERVER_ERROR, 500),
        ("oops", FailureKind.SERVER_ERROR, 500),
        (
            {
                "code": 8,
                "message": "quota",
                "details": [{"violations": [{"quotaId": "RequestsPerDayPerProject"}]}, {"retryDelay": "7s"}],
            },
            FailureKind.QUOTA,
            429,
        ),
    ],
)
def test_a_failure_is_classified_as_online(error: Any, kind: FailureKind, status: int) -> None:
    read = read_line(line(error=error))
    assert isinstance(read, LineResult)
    assert read.failure is not None
    assert (read.failure.kind, read.failure.status) == (kind, status)


@pytest.mark.parametrize(
    "parts", [{}, {"response": {}}, {"response": None}, {"response": [1]}, {"error": None}]
)
def test_a_line_without_an_answer(parts: dict[str, Any]) -> None:
    read = read_line(line(**parts))
    assert isinstance(read, LineResult)
    assert read.failure is not None
    assert read.failure.kind is FailureKind.BAD_RESPONSE


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_not(text: bytes) -> None:
    read_line(text)
    read_line(b'{"key":"c","response":%b}' % text)
    read_line(b'{"key":"c","error":%b}' % text)


@given(JSON, JSON)
def test_any_line_with_an_id_has_that_id(response: Any, error: Any) -> None:
    read = read_line(line(response=response, error=error))
    assert read is not None
    assert read.id == "c"


def test_lines_are_read_without_a_key_or_a_client() -> None:
    assert find_batch_services(GeminiConfig(model="m")).read_line is read_line
    read = read_line(line(response={"candidates": [{"content": {"parts": [{"text": KEY}]}}]}), (KEY,))
    assert read == LineResult("c", Reply("[key]"))


# --- calls ---------------------------------------------------------------------------------------


async def test_a_batch_from_upload_to_download(service: Service, tmp_path: Path) -> None:
    source, result = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    async with opened(service.url) as it:
        source.write_bytes(
            it.line("a", request("x")) + b"\n" + it.line("b", request("y" * 9_000_000)) + b"\n"
        )
        file_id = await it.upload(source, TOKEN)
        assert service.files[file_id] == source.read_bytes()  # uploaded in several pieces
        for _ in range(3):
            service.gemini_batch()
        begun = await it.create(Sending(file_id=file_id, token=TOKEN))
        assert begun.state == "working"
        stored = service.batches[begun.id]
        (asked,) = (seen for seen in service.seen if seen.path.endswith(":batchGenerateContent"))
        assert asked.path == "/v1beta/models/gemini-x:batchGenerateContent"
        assert asked.json == {"batch": {"inputConfig": {"fileName": file_id}, "displayName": TOKEN}}
        for _ in range(3):
            service.gemini_batch()
        found = await it.find(Sending(token=TOKEN))
        assert found is not None
        assert found.id == begun.id
        assert await it.find(Sending(token="another")) is None
        service.files["files/out"] = line(response=ANSWER) + b"\n"
        stored["metadata"].update(
            state="BATCH_STATE_SUCCEEDED", batchStats={"requestCount": 2, "successfulRequestCount": "2"}
        )
        stored["response"] = stored["metadata"]["output"] = {"responsesFile": "files/out"}
        ended = await it.state(begun.id)
        assert (ended.state, ended.outcome, ended.files) == ("ended", "completed", ("files/out",))
        assert (ended.done, ended.total) == (2, 2)
        await it.download("files/out", result)
        assert result.read_bytes() == service.files["files/out"]
        await it.cancel(begun.id)  # the batch has ended, which is fine
        await it.cancel("batches/0")
        await it.forget(file_id)
        await it.forget(file_id)
        assert file_id not in service.files
    assert {seen.headers["x-goog-api-key"] for seen in service.seen if "/session/" not in seen.path} == {KEY}
    assert not [seen for seen in service.seen if KEY in seen.path]
    assert set(tmp_path.iterdir()) == {source, result}


async def test_the_environment_says_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "another-key-of-this-machine")
    for name in ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.setenv(name, "true")
    for name in ("GOOGLE_GEMINI_BASE_URL", "HTTP_PROXY", "ALL_PROXY", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v1alpha")
    async with opened(service.url) as it:
        begun = await it.create(Sending(file_id="files/1", token=TOKEN))
        await it.state(begun.id)
    assert [seen.headers["x-goog-api-key"] for seen in service.seen] == [KEY, KEY]
    assert not [record for record in caplog.records if record.name.startswith("google")]
    assert all(seen.path.startswith("/v1beta/") for seen in service.seen)


async def test_a_local_server_is_sent_no_key(service: Service) -> None:
    async with opened(service.url, key="") as it:
        begun = await it.create(Sending(file_id="files/1", token=TOKEN))
        await it.state(begun.id)
    assert not [seen for seen in service.seen if "x-goog-api-key" in seen.headers]


@pytest.mark.parametrize("prefix", ["BATCH_STATE_", "JOB_STATE_"])
@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        *(
            (s, None)
            for s in ("PENDING", "QUEUED", "RUNNING", "CANCELLING", "UPDATING", "PAUSED", "UNSPECIFIED", "X")
        ),
        ("SUCCEEDED", "completed"),
        ("PARTIALLY_SUCCEEDED", "completed"),
        ("FAILED", "failed"),
        ("CANCELLED", "cancelled"),
        ("EXPIRED", "expired"),
    ],
)
async def test_states(service: Service, prefix: str, state: str, outcome: Any) -> None:
    batch = service.gemini_batch()
    batch["metadata"].update(state=prefix + state, output={"responsesFile": "files/o"})
    batch["metadata"]["batchStats"] = {
        "requestCount": "9",
        "successfulRequestCount": "3",
        "failedRequestCount": "2",
    }
    async with opened(service.url) as it:
        remote = await it.state("batches/0")
    assert remote.outcome == outcome
    assert remote.state == ("ended" if outcome else "working")
    assert remote.files == (("files/o",) if outcome else ())
    assert (remote.done, remote.total) == (5, 9)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 8, "message": "queue full"}, FailureKind.RATE_LIMIT),
        ({"code": 3, "message": "line 4 is no JSON"}, FailureKind.BAD_REQUEST),
        ({"code": 5, "message": "no such model"}, FailureKind.NOT_FOUND),
        ({"code": 13, "message": "oops"}, FailureKind.SERVER_ERROR),
        (None, FailureKind.SERVER_ERROR),
    ],
)
async def test_a_batch_that_was_refused(service: Service, error: Any, kind: FailureKind) -> None:
    batch = service.gemini_batch(error=error)
    batch["metadata"]["state"] = "BATCH_STATE_FAILED"
    async with opened(service.url) as it:
        failure = (await it.state("batches/0")).failure
    assert failure is not None
    assert failure.kind is kind
    assert failure.status is None
    assert failure.message == (
        error["message"] if error else "the batch failed, and the service gave no reason"
    )


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"null", b"[]", b"7", b"{}", b'{"name": 7}', b"", b"\xff"]
)
async def test_an_answer_of_something_else(service: Service, body: bytes, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"{}\n")
    async with opened(service.url) as it:
        calls: list[Any] = [
            it.state("b"),
            it.create(Sending(file_id="files/f", token=TOKEN)),
            it.upload(tmp_path / "in", TOKEN),
        ]
        for call in calls:
            service.next = [answer(body)]
            assert (await failing(call)).kind is FailureKind.BAD_RESPONSE


async def test_states_that_the_client_does_not_know_are_passed_over(
    service: Service, recwarn: pytest.WarningsRecorder
) -> None:
    service.gemini_batch()["metadata"]["state"] = "BATCH_STATE_NEW"
    service.gemini_batch(TOKEN)
    async with opened(service.url) as it:
        found = await it.find(Sending(token=TOKEN))
    assert found is not None
    assert found.id == "batches/1"
    assert not [warning for warning in recwarn if "JobState" in str(warning.message)]


async def test_a_batch_that_is_none_of_the_project_s(service: Service) -> None:
    async with opened(service.url) as it:
        for call in (
            it.state("batches/9"),
            it.state("9"),
            it.state("../x"),
            it.state(".."),
            it.cancel("batches/9"),
        ):
            assert (await failing(call)).kind is FailureKind.NOT_FOUND


async def test_a_file_that_is_gone(service: Service, tmp_path: Path) -> None:
    async with opened(service.url) as it:
        failure = await failing(it.download("files/9", tmp_path / "out"))
        assert (failure.kind, failure.status) == (FailureKind.NOT_FOUND, 403)
    assert not list(tmp_path.iterdir())


async def test_cancelling_what_cannot_be_cancelled_yet(service: Service) -> None:
    service.gemini_batch()
    async with opened(service.url) as it:
        service.next = [answer({"error": {"code": 400, "message": "not now"}}, 400)]
        failure: CallError = await failing(it.cancel("batches/0"))
        assert failure.message == "not now"
