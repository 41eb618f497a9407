"""Batches over HTTP in Anthropic's format, used by Anthropic's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from edgen.core.values import Message
from edgen.simulator.service.server import serve_options
from edgen.simulator.text import respond
from tests.late import Late
from tests.simulator.batching import until
from tests.simulator.sdks import anthropic_client
from tests.simulator.server import options

anthropic = Late("anthropic")

pytestmark = pytest.mark.integration


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with serve_options(options(batch_seconds=0)) as address:
        yield address


def client(address: str) -> Any:
    return anthropic_client(address).messages.batches


def params(number: int, **changes: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": f"hello {number}"}]
    return {"model": "m", "max_tokens": 500, "temperature": 0, "messages": said} | changes


def asked(*each: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"custom_id": f"r{number}", "params": one} for number, one in enumerate(each)]


async def begin(api: Any, count: int) -> anthropic.types.messages.MessageBatch:
    made: anthropic.types.messages.MessageBatch = await api.create(requests=asked(*map(params, range(count))))
    return made


async def ended(api: Any, name: str) -> anthropic.types.messages.MessageBatch:
    found: anthropic.types.messages.MessageBatch = await until(
        lambda: api.retrieve(name), lambda batch: batch.processing_status == "ended"
    )
    return found


async def results(api: Any, name: str) -> dict[str, anthropic.types.messages.MessageBatchIndividualResponse]:
    return {line.custom_id: line async for line in await api.results(name)}


def counts(batch: anthropic.types.messages.MessageBatch) -> dict[str, int]:
    return {name: count for name, count in batch.request_counts.model_dump().items() if count}


async def test_a_batch_from_its_beginning_to_its_results(address: str) -> None:
    api = client(address)
    begun = await begin(api, 50)
    assert (begun.processing_status, begun.results_url, counts(begun)) == (
        "in_progress",
        None,
        {"processing": 50},
    )
    batch = await ended(api, begun.id)
    assert counts(batch) == {"succeeded": 50}
    assert batch.ended_at is not None
    assert batch.created_at <= batch.ended_at < batch.expires_at
    lines = await results(api, begun.id)
    assert lines.keys() == {f"r{number}" for number in range(50)}
    for name, line in lines.items():
        assert line.result.type == "succeeded"
        assert isinstance(line.result.message, anthropic.types.Message)
        prompt = (Message("user", f"hello {name[1:]}"),)
        assert line.result.message.content[0].text == respond(prompt, seed=0, max_tokens=500).text  # type: ignore[union-attr]
    assert (await api.delete(begun.id)).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        await api.retrieve(begun.id)


async def test_a_body_is_answered_as_online(address: str) -> None:
    api = client(address)
    batch = await ended(api, (await begin(api, 1)).id)
    async with aiohttp.ClientSession() as http:
        async with http.get(batch.results_url or "") as answer:
            line = await answer.json(content_type=None)
        async with http.post(f"{address}/v1/messages", json=params(0)) as answer:
            assert line["result"]["message"] == await answer.json()


async def test_a_request_that_is_none_fails_alone(address: str) -> None:
    api = client(address)
    made = asked(params(0), params(1, frobnicate=1), params(2, stream=True), {"model": "m"})
    batch = await ended(api, (await api.create(requests=made)).id)
    assert counts(batch) == {"succeeded": 1, "errored": 3}
    lines = await results(api, batch.id)
    for name in ("r1", "r2", "r3"):
        assert lines[name].result.type == "errored"
        assert lines[name].result.error.error.type == "invalid_request_error"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([], "1 to 100000"),
        (asked(params(0)) * 2, "'r0' is there twice"),
        ([{"custom_id": "a b", "params": params(0)}], r"requests\.0\.custom_id"),
        ([{"custom_id": "a" * 65, "params": params(0)}], "should match pattern"),
        ([{"params": params(0)}], "custom_id"),
    ],
)
async def test_a_batch_that_is_none_is_refused(address: str, requests: list[Any], said: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=said):
        await client(address).create(requests=requests)


async def test_the_list_has_the_newest_first_and_goes_both_ways(address: str) -> None:
    api = client(address)
    names = [(await begin(api, 1)).id for _ in range(5)][::-1]
    assert [batch.id async for batch in api.list(limit=2)] == names
    assert [batch.id async for batch in api.list(limit=2, before_id=names[3])] == [
        *names[1:3],
        names[0],
    ]
    assert (await api.list(after_id=names[2])).data[0].id == names[3]
    for wrong in ({"limit": 0}, {"limit": 1001}, {"after_id": names[0], "before_id": names[1]}):
        with pytest.raises(anthropic.BadRequestError):
            await api.list(**wrong)
    with pytest.raises(anthropic.NotFoundError):
        await api.list(after_id="msgbatch_unknown")


async def test_one_that_was_cancelled_half_way() -> None:
    async with serve_options(options(batch_seconds=900)) as address:
        api = client(address)
        begun = await begin(api, 10)
        with pytest.raises(anthropic.BadRequestError, match="has not ended"):
            await api.delete(begun.id)
        assert (await api.cancel(begun.id)).processing_status == "canceling"
        batch = await ended(api, begun.id)
        assert batch.cancel_initiated_at is not None
        assert counts(batch) == {"canceled": 10}
        assert {line.result.type for line in (await results(api, begun.id)).values()} == {"canceled"}
        with pytest.raises(anthropic.BadRequestError, match="has ended"):
            await api.cancel(begun.id)


async def test_one_that_expired_half_way() -> None:
    async with serve_options(options(batch_seconds=0.8, batch_window=0.4)) as address:
        api = client(address)
        batch = await ended(api, (await begin(api, 20)).id)
        assert counts(batch) == {"succeeded": 10, "expired": 10}
        lines = [line.result.type for line in (await results(api, batch.id)).values()]
        assert (lines.count("succeeded"), lines.count("expired")) == (10, 10)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429", "rate_limit_error"), ("500", "api_error"), ("503", "overloaded_error"), ("401", "authentication_error"),
        ("quota", "invalid_request_error"),
    ],
)  # fmt: skip
async def test_a_fault_fails_its_request(fault: str, kind: str) -> None:
    async with serve_options(options(batch_seconds=0, faults=f"{fault}=0.5")) as address:
        api = client(address)
        batch = await ended(api, (await begin(api, 40)).id)
        failed = [line for line in (await results(api, batch.id)).values() if line.result.type == "errored"]
        assert 8 <= len(failed) == batch.request_counts.errored <= 32
        assert {line.result.error.error.type for line in failed} == {kind}  # type: ignore[union-attr]


async def test_a_lost_creation_is_a_batch_all_the_same() -> None:
    async with serve_options(options(batch_seconds=0, faults="batch_create_lost=1")) as address:
        api = client(address)
        with pytest.raises(anthropic.APIConnectionError):
            await begin(api, 3)
        [batch] = [batch async for batch in api.list()]
        assert counts(await ended(api, batch.id)) == {"succeeded": 3}


async def test_calls_about_batches_can_be_refused() -> None:
    async with serve_options(options(faults="batch_503=1")) as address:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client(address).list()
        assert caught.value.status_code == 529
