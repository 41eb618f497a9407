"""Batches over HTTP in Gemini's format, used by Google's client."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from edgen.core.values import Message
from edgen.simulator.service.server import serve_options
from edgen.simulator.text import respond
from tests.late import Late
from tests.simulator.batching import (
    gemini_client,
    gemini_ended,
    gemini_line,
    jsonl,
    openai_client,
    rows,
    until,
)
from tests.simulator.server import options

google_errors = Late("google.genai.errors")
types = Late("google.genai.types")

pytestmark = pytest.mark.integration

JSONL: Any = {"mime_type": "jsonl"}


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with serve_options(options(batch_seconds=0)) as address:
        yield address


async def begin(api: Any, count: int, name: str = "job") -> types.BatchJob:
    file = await api.files.upload(file=io.BytesIO(jsonl(map(gemini_line, range(count)))), config=JSONL)
    return await api.batches.create(model="g", src=file.name, config={"display_name": name})


async def operation(address: str, name: str | None) -> dict[str, Any]:
    """Return an operation's fields that the client does not expose."""
    async with aiohttp.ClientSession() as http, http.get(f"{address}/v1beta/{name}") as answer:
        return dict(await answer.json())


async def test_a_batch_from_upload_to_results(address: str) -> None:
    api = gemini_client(address).aio
    data = jsonl(map(gemini_line, range(50)))
    file = await api.files.upload(
        file=io.BytesIO(data), config=types.UploadFileConfig(display_name="mine", mime_type="jsonl")
    )
    assert (file.display_name, file.mime_type, file.size_bytes) == ("mine", "jsonl", len(data))
    assert (file.state, file.source) == (types.FileState.ACTIVE, types.FileSource.UPLOADED)
    begun = await api.batches.create(model="g", src=file.name, config={"display_name": "token"})
    assert begun.name is not None
    assert begun.name.startswith("batches/")
    assert (begun.state, begun.display_name) == (types.JobState.JOB_STATE_PENDING, "token")
    job = await gemini_ended(api, begun.name)
    assert (job.state, job.model) == (types.JobState.JOB_STATE_SUCCEEDED, "models/g")
    assert job.create_time is not None
    assert job.end_time is not None
    assert job.create_time <= job.end_time
    assert job.dest is not None
    assert job.dest.file_name is not None
    lines = rows(await api.files.download(file=job.dest.file_name))
    assert {line["key"] for line in lines} == {f"r{i}" for i in range(50)}
    for line in lines:
        seed = int(line["key"][1:])
        assert line["response"].pop("simulated")
        answer = types.GenerateContentResponse.model_validate(line["response"])
        assert answer.text == respond((Message("user", f"hello {seed}"),), seed=seed).text
        assert answer.model_version == "g"
    stats = (await operation(address, job.name))["metadata"]["batchStats"]
    assert stats == {"requestCount": "50", "successfulRequestCount": "50"}


async def test_a_body_is_answered_as_online(address: str) -> None:
    api = gemini_client(address).aio
    job = await gemini_ended(api, (await begin(api, 1)).name or "")
    assert job.dest is not None
    [line] = rows(await api.files.download(file=job.dest.file_name or ""))
    url = f"{address}/v1beta/models/g:generateContent"
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, json=gemini_line(0)["request"]) as answer,
    ):
        assert line["response"] == await answer.json()


async def test_a_large_file_goes_up_in_pieces(address: str) -> None:
    """Google's client sends 8 MB at once."""
    api = gemini_client(address).aio
    data = jsonl([gemini_line(0) | {"padding": "x" * 20_000_000}])
    file = await api.files.upload(file=io.BytesIO(data), config=JSONL)
    assert file.size_bytes == len(data)
    job = await gemini_ended(api, (await api.batches.create(model="g", src=file.name)).name or "")
    assert job.state == types.JobState.JOB_STATE_SUCCEEDED


async def test_an_upload_that_broke_off_goes_on(address: str) -> None:
    data = jsonl([gemini_line(0)])
    async with aiohttp.ClientSession() as http:

        async def send(url: str, command: str, offset: int | None, body: bytes) -> tuple[int, Any]:
            headers = {"X-Goog-Upload-Command": command}
            if offset is not None:
                headers["X-Goog-Upload-Offset"] = str(offset)
            async with http.post(url, data=body, headers=headers) as answer:
                return answer.status, {**answer.headers, **await answer.json()}

        start = f"{address}/upload/v1beta/files"
        assert (await send(start, "upload", 0, data))[0] == 400
        async with http.post(
            start,
            json={"file": {"name": "files/mine"}},
            headers={"X-Goog-Upload-Command": "start", "X-Goog-Upload-Header-Content-Length": str(len(data))},
        ) as answer:
            url = answer.headers["X-Goog-Upload-URL"]
        assert (await send(url, "upload", 0, data[:10]))[0] == 200
        assert (await send(url, "upload", 0, data[:10]))[0] == 400, "twice"
        status, told = await send(url, "query", None, b"")
        assert (status, told["X-Goog-Upload-Size-Received"], told["X-Goog-Upload-Status"]) == (
            200,
            "10",
            "active",
        )
        assert (await send(url, "upload, finalize", 10, data[10:-5]))[0] == 400, "fewer than announced"
        status, told = await send(url, "upload, finalize", len(data) - 5, data[-5:])
        assert (status, told["X-Goog-Upload-Status"], told["file"]["name"]) == (200, "final", "files/mine")
        assert told["file"]["sizeBytes"] == str(len(data))
        assert (await send(url, "upload, finalize", len(data), b""))[0] == 404
        for name, status in (("files/mine", 409), ("mine", 400), ("files/../x", 400)):
            async with http.post(
                start, json={"file": {"name": name}}, headers={"X-Goog-Upload-Command": "start"}
            ) as answer:
                assert answer.status == status


async def test_files_are_listed_read_and_deleted(address: str) -> None:
    api = gemini_client(address).aio
    names = [(await api.files.upload(file=io.BytesIO(b"x"), config=JSONL)).name for _ in range(5)]
    assert [file.name async for file in await api.files.list()] == names[::-1]
    assert [file.name async for file in await api.files.list(config={"page_size": 2})] == names[::-1]
    assert (await api.files.get(name=names[0] or "")).name == names[0]
    with pytest.raises(google_errors.ClientError, match="generated"):
        await api.files.download(file=names[0] or "")
    await api.files.delete(name=names[0] or "")
    for gone in (api.files.get(name=names[0] or ""), api.files.delete(name=names[0] or "")):
        with pytest.raises(google_errors.ClientError) as caught:
            await gone
        assert (caught.value.code, caught.value.status) == (403, "PERMISSION_DENIED")
    async with openai_client(address) as other:
        assert [file async for file in other.files.list()] == [], "another vendor's"


async def test_batches_are_listed_newest_first_and_deleted(address: str) -> None:
    api = gemini_client(address).aio
    made = [(await begin(api, 1, f"job {i}")).name for i in range(5)]
    assert [job.name async for job in await api.batches.list(config={"page_size": 2})] == made[::-1]
    assert [job.display_name async for job in await api.batches.list()] == [
        f"job {i}" for i in range(4, -1, -1)
    ]
    await api.batches.delete(name=made[2] or "")
    with pytest.raises(google_errors.ClientError) as caught:
        await api.batches.get(name=made[2] or "")
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    assert len([job async for job in await api.batches.list()]) == 4


async def test_deleting_a_batch_at_work_ends_it() -> None:
    async with serve_options(options(batch_seconds=900)) as address:
        api = gemini_client(address).aio
        job = await begin(api, 10)
        await api.batches.delete(name=job.name or "")
        assert [job async for job in await api.batches.list()] == []


async def test_inline_requests(address: str) -> None:
    api = gemini_client(address).aio
    src: Any = [
        {"contents": [{"role": "user", "parts": [{"text": f"hello {i}"}]}], "config": {"seed": i}}
        for i in range(40)
    ]
    job = await gemini_ended(api, (await api.batches.create(model="g", src=src)).name or "")
    assert job.dest is not None
    answers = [line.response for line in job.dest.inlined_responses or []]
    assert [answer and answer.text for answer in answers] == [
        respond((Message("user", f"hello {i}"),), seed=i).text for i in range(40)
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no request"),
        (jsonl([gemini_line(0)]) + b"{nonsense\n", "Line 2"),
        (jsonl([{"key": "a"}]), "request"),
    ],
)
async def test_a_bad_file_fails_as_a_whole(address: str, data: bytes, words: str) -> None:
    api = gemini_client(address).aio
    file = await api.files.upload(file=io.BytesIO(data or b"\n"), config=JSONL)
    if not data:  # Google's client cannot send nothing
        src: Any = []
        begun = await api.batches.create(model="g", src=types.BatchJobSource(inlined_requests=src))
    else:
        begun = await api.batches.create(model="g", src=file.name)
    job = await gemini_ended(api, begun.name or "")
    assert (job.state, job.dest) == (types.JobState.JOB_STATE_FAILED, None)
    error = (await operation(address, job.name))["error"]
    assert error["code"] == 3
    assert words in error["message"]


async def test_what_is_refused_at_once(address: str) -> None:
    api = gemini_client(address).aio
    with pytest.raises(google_errors.ClientError) as caught:
        await api.batches.create(model="g", src="files/none")
    assert (caught.value.code, caught.value.status) == (403, "PERMISSION_DENIED")
    for call in (api.batches.get, api.batches.cancel, api.batches.delete):
        with pytest.raises(google_errors.ClientError) as caught:
            await call(name="batches/none")
        assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    async with aiohttp.ClientSession() as http:
        for method, path, body, status in (
            ("POST", "models/g:batchGenerateContent", b"nonsense", 400),
            ("POST", "models/g:batchGenerateContent", b'{"batch": {}}', 400),
            ("GET", "models/g:batchGenerateContent", b"", 405),
            ("PUT", "batches", b"", 404),
            ("GET", "batches?pageSize=many", b"", 400),
            ("GET", "files?pageToken=nobody", b"", 200),
        ):
            async with http.request(method, f"{address}/v1beta/{path}", data=body) as answer:
                assert answer.status == status, (method, path)
                assert answer.headers["x-edgen-simulated"] == "true"


@pytest.mark.parametrize(
    ("changes", "cancel", "state", "code"),
    [
        ({"batch_seconds": 900}, True, "JOB_STATE_CANCELLED", 1),
        ({"batch_seconds": 1.0, "batch_window": 0.5}, False, "JOB_STATE_EXPIRED", 4),
    ],
)
async def test_what_ended_early_leaves_nothing(
    changes: dict[str, float], cancel: bool, state: str, code: int
) -> None:
    async with serve_options(options(**changes)) as address:
        api = gemini_client(address).aio
        name = (await begin(api, 20)).name or ""
        if cancel:
            await until(lambda: api.batches.get(name=name), lambda job: job.state == "JOB_STATE_RUNNING")
            await api.batches.cancel(name=name)
        job = await gemini_ended(api, name)
        assert (job.state, job.dest) == (types.JobState[state], None)
        told = await operation(address, name)
        assert (told["done"], told["error"]["code"]) == (True, code)
        assert "response" not in told
        if not cancel:
            assert told["metadata"]["batchStats"] == {
                "requestCount": "20",
                "successfulRequestCount": "10",
                "pendingRequestCount": "10",
            }
        await api.batches.cancel(name=name)


@pytest.mark.parametrize(
    ("fault", "code"), [("429", 8), ("500", 13), ("503", 14), ("401", 16), ("404", 5), ("quota", 8)]
)
async def test_a_fault_fails_its_line(fault: str, code: int) -> None:
    async with serve_options(options(batch_seconds=0, faults=f"{fault}=0.5")) as address:
        api = gemini_client(address).aio
        job = await gemini_ended(api, (await begin(api, 40)).name or "")
        assert job.state == types.JobState.JOB_STATE_SUCCEEDED
        assert job.dest is not None
        lines = rows(await api.files.download(file=job.dest.file_name or ""))
        assert len(lines) == 40
        failed = [line for line in lines if "error" in line]
        assert 8 <= len(failed) <= 32
        for line in failed:
            assert "response" not in line
            assert line["error"]["code"] == code
            assert ("PerDay" in str(line["error"])) == (fault == "quota")
        stats = (await operation(address, job.name))["metadata"]["batchStats"]
        assert stats["failedRequestCount"] == str(len(failed))


async def test_a_request_that_is_none_fails_alone(address: str) -> None:
    api = gemini_client(address).aio
    data = jsonl([gemini_line(0), {"key": "bad", "request": {"contents": []}}, {"request": {"contents": 3}}])
    file = await api.files.upload(file=io.BytesIO(data), config=JSONL)
    job = await gemini_ended(api, (await api.batches.create(model="g", src=file.name)).name or "")
    assert job.dest is not None
    lines = {line.get("key"): line for line in rows(await api.files.download(file=job.dest.file_name or ""))}
    assert set(lines) == {"r0", "bad", None}
    assert "response" in lines["r0"]
    assert lines["bad"]["error"]["code"] == lines[None]["error"]["code"] == 3


async def test_a_lost_creation_is_a_batch_all_the_same() -> None:
    async with serve_options(options(batch_seconds=0, faults="batch_create_lost=1")) as address:
        api = gemini_client(address).aio
        with pytest.raises(aiohttp.ClientError):
            await begin(api, 3, "token")
        [job] = [job async for job in await api.batches.list()]
        assert job.display_name == "token"
        assert (await gemini_ended(api, job.name or "")).state == types.JobState.JOB_STATE_SUCCEEDED
        await begin(api, 3, "token")
        assert len([job async for job in await api.batches.list()]) == 2, "whoever submits twice is seen"


async def test_calls_about_batches_can_be_refused() -> None:
    async with serve_options(options(faults="batch_503=1")) as address:
        api = gemini_client(address).aio
        with pytest.raises(google_errors.ServerError) as caught:
            await api.batches.list()
        assert caught.value.status == "UNAVAILABLE"
        with pytest.raises(google_errors.ServerError):
            await api.files.list()
        await api.models.generate_content(model="g", contents="hello")
