"""Batches over HTTP in OpenAI's format, used by OpenAI's client."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from edgen.core.values import Message
from edgen.simulator.service.server import serve_options
from edgen.simulator.text import respond
from tests.late import Late
from tests.simulator.batching import (
    ENDPOINT,
    content,
    create,
    ended,
    jsonl,
    openai_client,
    openai_line,
    until,
    upload,
)
from tests.simulator.server import options

openai = Late("openai")

pytestmark = pytest.mark.integration


@pytest.fixture
async def api() -> AsyncIterator[openai.AsyncOpenAI]:
    async with serve_options(options(batch_seconds=0)) as address, openai_client(address) as client:
        yield client


async def test_a_batch_from_upload_to_results(api: openai.AsyncOpenAI) -> None:
    data = jsonl(openai_line(i) for i in range(100))
    assert (await api.files.create(file=data, purpose="batch")).filename == "upload"  # as curator does it
    file = await api.files.create(file=("in.jsonl", data), purpose="batch")
    assert (file.bytes, file.filename, file.purpose, file.status) == (
        len(data),
        "in.jsonl",
        "batch",
        "processed",
    )
    begun = await create(api, file.id, metadata={"token": "a"})
    assert (begun.status, begun.output_file_id, begun.metadata) == ("validating", None, {"token": "a"})
    batch = await ended(api, begun.id)
    assert (batch.status, batch.model, batch.errors, batch.error_file_id) == ("completed", "m", None, None)
    assert batch.request_counts is not None
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (
        100,
        100,
        0,
    )
    assert batch.expires_at == batch.created_at + 86_400
    for stamp in (batch.in_progress_at, batch.finalizing_at, batch.completed_at):
        assert stamp is not None
        assert 0 <= stamp - batch.created_at <= 20
    lines = await content(api, batch.output_file_id)
    assert {line["custom_id"] for line in lines} == {f"r{i}" for i in range(100)}
    assert [line["custom_id"] for line in lines] != [f"r{i}" for i in range(100)], "no order is promised"
    for line in lines:
        assert line["error"] is None
        assert line["response"]["status_code"] == 200
        body = openai.types.chat.ChatCompletion.model_validate(line["response"]["body"])
        seed = int(line["custom_id"][1:])
        assert body.choices[0].message.content == respond((Message("user", f"hello {seed}"),), seed=seed).text
        assert body.usage is not None


async def test_a_body_is_answered_as_online(api: openai.AsyncOpenAI) -> None:
    line = openai_line(7)
    batch = await ended(api, (await create(api, await upload(api, jsonl([line])))).id)
    [result] = await content(api, batch.output_file_id)
    online = (await api.chat.completions.create(**line["body"])).model_dump(mode="json", exclude_unset=True)
    assert result["response"]["body"] | {"created": 0} == online | {"created": 0}


async def test_without_a_seed_online_and_batch_count_together(api: openai.AsyncOpenAI) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    texts = {(await api.chat.completions.create(**body)).choices[0].message.content for _ in range(2)}  # type: ignore[call-overload]
    batch = await ended(api, (await create(api, await upload(api, jsonl([openai_line(0, body=body)])))).id)
    [result] = await content(api, batch.output_file_id)
    texts.add(result["response"]["body"]["choices"][0]["message"]["content"])
    assert texts == {respond((Message("user", "hello"),), seed=i).text for i in range(3)}


@pytest.mark.parametrize(
    ("data", "code", "line", "param"),
    [
        (b"", "empty_file", None, None),
        (jsonl([openai_line(0)]) + b"{nonsense\n", "invalid_json_line", 2, None),
        (jsonl([openai_line(0)]) + b"\n", "invalid_json_line", 2, None),
        (jsonl([[1]]), "invalid_json_line", 1, None),
        (b'{"a": ' + b"[" * 10_000 + b"\n", "invalid_json_line", 1, None),
        (b'{"custom_id": "\xff"}\n', "invalid_json_line", 1, None),
        (jsonl([{k: v for k, v in openai_line(0).items() if k != "custom_id"}]), "missing_required_parameter", 1, "custom_id"),
        (jsonl([{k: v for k, v in openai_line(0).items() if k != "method"}]), "missing_required_parameter", 1, "method"),
        (jsonl([{k: v for k, v in openai_line(0).items() if k != "url"}]), "missing_required_parameter", 1, "url"),
        (jsonl([{k: v for k, v in openai_line(0).items() if k != "body"}]), "missing_required_parameter", 1, "body"),
        (jsonl([openai_line(0, custom_id=3)]), "invalid_type", 1, "body"),
        (jsonl([openai_line(0, body=[])]), "invalid_type", 1, "body"),
        (jsonl([openai_line(0), openai_line(1), openai_line(0)]), "duplicate_custom_id", 3, "custom_id"),
        (jsonl([openai_line(0, url="/v1/embeddings")]), "invalid_url", 1, "url"),
        (jsonl([openai_line(0, method="GET")]), "invalid_method", 1, "method"),
        (jsonl([openai_line(0), openai_line(1, body={"model": "other"})]), "mismatched_model", 2, "body.model"),
        pytest.param(jsonl([openai_line(0)]) * 50_001, "too_many_tasks", None, None, id="too many"),
    ],
)  # fmt: skip
async def test_a_bad_file_fails_as_a_whole(
    api: openai.AsyncOpenAI, data: bytes, code: str, line: int | None, param: str | None
) -> None:
    batch = await ended(api, (await create(api, await upload(api, data))).id)
    assert batch.status == "failed"
    assert batch.failed_at is not None
    assert batch.errors is not None
    assert batch.errors.data is not None
    [error] = batch.errors.data
    assert (error.code, error.line, error.param) == (code, line, param)
    assert error.message
    assert (batch.output_file_id, batch.error_file_id, batch.in_progress_at) == (None, None, None)


async def test_every_bad_line_is_told(api: openai.AsyncOpenAI) -> None:
    batch = await ended(api, (await create(api, await upload(api, b"{\n" * 300))).id)
    assert batch.errors is not None
    assert [error.line for error in batch.errors.data or []] == list(range(1, 101))


async def test_files_are_listed_read_and_deleted(api: openai.AsyncOpenAI) -> None:
    ids = [await upload(api, jsonl([openai_line(i)])) for i in range(5)]
    other = (await api.files.create(file=("notes.txt", b"x"), purpose="user_data")).id
    assert [file.id async for file in api.files.list()] == [other, *reversed(ids)]
    assert [file.id async for file in api.files.list(limit=2, order="asc")] == [*ids, other], "page by page"
    assert [file.id async for file in api.files.list(purpose="batch")] == ids[::-1]
    assert (await api.files.retrieve(ids[0])).id == ids[0]
    assert (await api.files.content(ids[0])).content == jsonl([openai_line(0)])
    assert (await api.files.delete(ids[0])).deleted
    for gone in (api.files.retrieve(ids[0]), api.files.content(ids[0]), api.files.delete(ids[0])):
        with pytest.raises(openai.NotFoundError, match="No such File object"):
            await gone
    with pytest.raises(openai.BadRequestError, match="limit"):
        await api.files.list(limit=0)


async def test_batches_are_listed_newest_first(api: openai.AsyncOpenAI) -> None:
    file = await upload(api, jsonl([openai_line(0)]))
    made = [(await create(api, file, metadata={"token": str(i)})).id for i in range(25)]
    assert [batch.id async for batch in api.batches.list()] == made[::-1]
    assert [batch.id async for batch in api.batches.list(limit=3)] == made[::-1]
    page = await api.batches.list(limit=2, after=made[10])
    assert [(batch.id, batch.metadata) for batch in page.data] == [
        (made[9], {"token": "9"}),
        (made[8], {"token": "8"}),
    ]


async def test_what_is_refused_at_once(api: openai.AsyncOpenAI) -> None:
    file = await upload(api, jsonl([openai_line(0)]))
    other = (await api.files.create(file=("notes.txt", b"x"), purpose="user_data")).id
    with pytest.raises(openai.BadRequestError, match=r"Must be \.jsonl"):
        await upload(api, b"{}", "in.json")
    with pytest.raises(openai.NotFoundError, match="No such File object"):
        await create(api, "file-none")
    with pytest.raises(openai.BadRequestError, match="purpose"):
        await create(api, other)
    with pytest.raises(openai.BadRequestError, match="/v1/chat/completions"):
        await api.batches.create(input_file_id=file, endpoint="/v1/embeddings", completion_window="24h")
    window: Any = "1h"
    with pytest.raises(openai.BadRequestError, match="24h"):
        await api.batches.create(input_file_id=file, endpoint=ENDPOINT, completion_window=window)
    for metadata in ({"k" * 65: ""}, {"k": "v" * 513}, {str(i): "" for i in range(17)}):
        with pytest.raises(openai.BadRequestError, match="metadata"):
            await create(api, file, metadata=metadata)
    with pytest.raises(openai.NotFoundError, match="No batch found"):
        await api.batches.retrieve("batch_none")
    with pytest.raises(openai.NotFoundError, match="No batch found"):
        await api.batches.cancel("batch_none")
    await api.files.delete(file)
    with pytest.raises(openai.NotFoundError, match="No such File object"):
        await create(api, file)
    assert [batch async for batch in api.batches.list()] == []


async def test_a_batch_that_has_begun_keeps_its_input() -> None:
    async with serve_options(options(batch_seconds=0.3)) as address, openai_client(address) as api:
        file = await upload(api, jsonl(openai_line(i) for i in range(20)))
        batch = await create(api, file)
        await api.files.delete(file)
        done = await ended(api, batch.id)
        assert done.status == "completed"
        assert len(await content(api, done.output_file_id)) == 20


async def test_requests_are_answered_evenly() -> None:
    async with serve_options(options(batch_seconds=2.0)) as address, openai_client(address) as api:
        began = time.monotonic()
        id_ = (await create(api, await upload(api, jsonl(openai_line(i) for i in range(200))))).id
        last = 0
        while (batch := await api.batches.retrieve(id_)).status not in ("completed", "finalizing"):
            counts = batch.request_counts
            assert counts is not None
            if batch.status == "in_progress":
                assert counts.total == 200
                assert last <= counts.completed <= 100 * (time.monotonic() - began) + 1
                last = counts.completed
            assert batch.output_file_id is None
            await asyncio.sleep(0.05)
        assert time.monotonic() - began >= 1.95
        assert last > 0


async def test_cancelled_half_way() -> None:
    async with serve_options(options(batch_seconds=4.0)) as address, openai_client(address) as api:
        id_ = (await create(api, await upload(api, jsonl(openai_line(i) for i in range(40))))).id
        await until(lambda: api.batches.retrieve(id_), lambda batch: batch.request_counts.completed >= 4)
        assert (await api.batches.cancel(id_)).status in ("cancelling", "cancelled")
        batch = await ended(api, id_)
        assert batch.status == "cancelled"
        assert batch.cancelling_at is not None
        assert batch.cancelled_at is not None
        assert batch.request_counts is not None
        await check_partial(api, batch, "batch_cancelled")
        with pytest.raises(openai.ConflictError, match="Cannot cancel"):
            await api.batches.cancel(id_)


async def test_expired_half_way() -> None:
    """Two numbers say how much is there: half of the seconds, half of the answers."""
    async with (
        serve_options(options(batch_seconds=1.0, batch_window=0.5)) as address,
        openai_client(address) as api,
    ):
        id_ = (await create(api, await upload(api, jsonl(openai_line(i) for i in range(40))))).id
        batch = await ended(api, id_)
        assert (batch.status, batch.expired_at is not None) == ("expired", True)
        assert batch.request_counts is not None
        assert batch.request_counts.completed == 20
        await check_partial(api, batch, "batch_expired")


async def check_partial(api: openai.AsyncOpenAI, batch: openai.types.Batch, code: str) -> None:
    answered = {line["custom_id"] for line in await content(api, batch.output_file_id)}
    rest = await content(api, batch.error_file_id)
    assert batch.request_counts is not None
    assert 0 < len(answered) == batch.request_counts.completed < 40
    assert answered | {line["custom_id"] for line in rest} == {f"r{i}" for i in range(40)}
    assert len(answered) + len(rest) == 40
    assert {(line["error"]["code"], line["response"]) for line in rest} == {(code, None)}


async def test_nothing_answered_before_the_end() -> None:
    async with (
        serve_options(options(batch_seconds=900, batch_window=0.2)) as address,
        openai_client(address) as api,
    ):
        batch = await ended(api, (await create(api, await upload(api, jsonl([openai_line(0)])))).id)
        assert (batch.status, batch.output_file_id) == ("expired", None)
        assert len(await content(api, batch.error_file_id)) == 1


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("429", 429, "rate_limit_exceeded"),
        ("500", 500, None),
        ("503", 503, None),
        ("401", 401, "invalid_api_key"),
        ("404", 404, "model_not_found"),
        ("quota", 429, "insufficient_quota"),
    ],
)
async def test_a_fault_fails_its_line(fault: str, status: int, code: str | None) -> None:
    async with (
        serve_options(options(batch_seconds=0, faults=f"{fault}=0.5")) as address,
        openai_client(address) as api,
    ):
        file = await upload(api, jsonl(openai_line(i) for i in range(40)))
        batch = await ended(api, (await create(api, file)).id)
        failed = await content(api, batch.error_file_id)
        answered = await content(api, batch.output_file_id)
        assert batch.status == "completed"
        assert batch.request_counts is not None
        assert (batch.request_counts.failed, batch.request_counts.completed) == (len(failed), len(answered))
        assert 8 <= len(failed) <= 32
        for line in failed:
            assert line["error"] is None
            assert line["response"]["status_code"] == status
            assert line["response"]["body"]["error"]["code"] == code


async def test_each_try_of_a_line_is_drawn_anew_and_as_online() -> None:
    faults = "429=0.5"
    async with (
        serve_options(options(batch_seconds=0, faults=faults)) as address,
        openai_client(address) as api,
    ):
        file = await upload(api, jsonl(openai_line(i) for i in range(40)))
        batches = [await ended(api, (await create(api, file)).id) for _ in range(2)]
        once, twice = [
            {line["custom_id"] for line in await content(api, batch.error_file_id)} for batch in batches
        ]
        assert once != twice
    async with serve_options(options(faults=faults)) as address, openai_client(address) as api:
        for expected in (once, twice):
            assert {f"r{i}" for i in range(40) if await refused(api, i)} == expected, "as online"


async def refused(api: openai.AsyncOpenAI, number: int) -> bool:
    try:
        await api.chat.completions.create(**openai_line(number)["body"])
    except openai.APIStatusError:
        return True
    return False


async def test_all_failed_leaves_no_output() -> None:
    async with (
        serve_options(options(batch_seconds=0, faults="500=1")) as address,
        openai_client(address) as api,
    ):
        batch = await ended(api, (await create(api, await upload(api, jsonl([openai_line(0)])))).id)
        assert (batch.status, batch.output_file_id) == ("completed", None)
        assert len(await content(api, batch.error_file_id)) == 1


async def test_faults_of_a_connection_mean_nothing_in_a_batch() -> None:
    faults = "hang=0.4,reset=0.3,slow=0.3:100"
    async with (
        serve_options(options(batch_seconds=0, faults=faults)) as address,
        openai_client(address) as api,
    ):
        batch = await ended(api, (await create(api, await upload(api, jsonl([openai_line(0)])))).id)
        assert len(await content(api, batch.output_file_id)) == 1


async def test_a_body_that_is_no_request_fails_alone(api: openai.AsyncOpenAI) -> None:
    streamed = openai_line(2)["body"] | {"stream": True}
    bodies = [openai_line(0)["body"], {"model": "m", "messages": []}, {"model": "m"}, streamed]
    data = jsonl(openai_line(i, body=body) for i, body in enumerate(bodies))
    batch = await ended(api, (await create(api, await upload(api, data))).id)
    assert [line["custom_id"] for line in await content(api, batch.output_file_id)] == ["r0"]
    failed = {line["custom_id"]: line["response"] for line in await content(api, batch.error_file_id)}
    assert sorted(failed) == ["r1", "r2", "r3"]
    assert {response["status_code"] for response in failed.values()} == {400}
    assert "stream" in failed["r3"]["body"]["error"]["message"]


async def test_content_faults_are_as_online() -> None:
    async with (
        serve_options(options(batch_seconds=0, faults="empty=1")) as address,
        openai_client(address) as api,
    ):
        batch = await ended(api, (await create(api, await upload(api, jsonl([openai_line(0)])))).id)
        [line] = await content(api, batch.output_file_id)
        assert line["response"]["body"]["choices"][0]["message"]["content"] == ""


async def test_a_lost_creation_is_a_batch_all_the_same() -> None:
    faults = "batch_create_lost=1"
    async with (
        serve_options(options(batch_seconds=0, faults=faults)) as address,
        openai_client(address) as api,
    ):
        file = await upload(api, jsonl([openai_line(0)]))
        with pytest.raises(openai.APIConnectionError):
            await create(api, file, metadata={"token": "a"})
        [batch] = [batch async for batch in api.batches.list()]
        assert batch.metadata == {"token": "a"}
        assert (await ended(api, batch.id)).status == "completed"
        await create(api, file, metadata={"token": "a"})
        with pytest.raises(openai.APIConnectionError):
            await create(api, file, metadata={"token": "b"})
        assert len([batch async for batch in api.batches.list()]) == 3, "whoever submits twice is seen"


async def test_a_slow_creation_is_a_batch_from_the_start() -> None:
    faults = "batch_create_lost=1:30"
    async with (
        serve_options(options(batch_seconds=0, faults=faults)) as address,
        openai_client(address) as api,
    ):
        file = await upload(api, jsonl([openai_line(0)]))
        with pytest.raises(openai.APITimeoutError):
            await create(api, file, timeout=2.0)
        [batch] = [batch async for batch in api.batches.list()]
        assert (await ended(api, batch.id)).status == "completed"


async def test_calls_about_batches_can_be_refused() -> None:
    async with (
        serve_options(options(batch_seconds=0, faults="batch_503=0.5")) as address,
        openai_client(address) as api,
    ):
        seen: list[bool] = []
        for _ in range(40):
            try:
                await api.batches.list()
                seen.append(True)
            except openai.InternalServerError:
                seen.append(False)
        assert 8 <= sum(seen) <= 32
        await api.chat.completions.create(**openai_line(0)["body"])


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/v1/files", None, 405),
        ("POST", "/v1/files", b"{}", 400),
        ("DELETE", "/v1/batches", None, 405),
        ("POST", "/v1/batches", b"nonsense", 400),
        ("POST", "/v1/batches", b"{}", 400),
        ("GET", "/v1/batches?limit=many", None, 400),
        ("GET", "/batches", None, 200),
        ("GET", "/v1/batches?after=nobody", None, 200),
        ("GET", "/v1/files/a/b/c", None, 404),
    ],
)
async def test_raw_calls(method: str, path: str, body: bytes | None, status: int) -> None:
    async with (
        serve_options(options()) as address,
        aiohttp.ClientSession() as http,
        http.request(method, address + path, data=body) as answer,
    ):
        assert answer.status == status
        assert answer.headers["x-edgen-simulated"] == "true"
        assert ("error" in await answer.json()) == (status != 200)


async def test_forms_that_are_none() -> None:
    async with serve_options(options()) as address, aiohttp.ClientSession() as http:
        for kind, body in (
            ("multipart/form-data", b""),
            ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
            ("multipart/form-data; boundary=x", b"--x--\r\n"),
            ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n\xff\r\n--x--\r\n'),
        ):  # fmt: skip
            async with http.post(f"{address}/v1/files", data=body, headers={"Content-Type": kind}) as answer:
                assert answer.status == 400, (kind, body)
                assert json.loads(await answer.text())["error"]["message"]


@pytest.mark.only_long
async def test_more_than_200_mb_are_refused() -> None:
    async with serve_options(options()) as address, openai_client(address) as api:
        with pytest.raises((openai.APIStatusError, openai.APIConnectionError)) as caught:
            await upload(api, bytes(200 * 1024 * 1024 + 1))
        if isinstance(caught.value, openai.APIStatusError):
            assert caught.value.status_code == 413
        assert [file async for file in api.files.list()] == []


async def test_a_large_batch_leaves_the_server_responsive() -> None:
    async with serve_options(options(batch_seconds=0)) as address, openai_client(address) as api:
        id_ = (await create(api, await upload(api, jsonl(openai_line(i) for i in range(2_000))))).id
        answered = 0
        while (await api.batches.retrieve(id_)).status not in ("completed", "failed"):
            await api.chat.completions.create(**openai_line(0)["body"])
            answered += 1
        assert answered > 2, "calls wait until the batch has ended"
        assert len(await content(api, (await ended(api, id_)).output_file_id)) == 2_000
