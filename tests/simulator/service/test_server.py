"""The simulator over HTTP, used by OpenAI's client and without a client."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.error
import urllib.request
from typing import Any

import aiohttp
import pytest

from edgen.core.errors import InputError
from edgen.core.values import Message
from edgen.simulator.service import server
from edgen.simulator.service.server import serve_options
from edgen.simulator.text import respond
from tests.late import Late
from tests.simulator import lessons
from tests.simulator.prompts import every_scenario, probability_of, prompt
from tests.simulator.sdks import openai_client
from tests.simulator.server import options

openai = Late("openai")

pytestmark = pytest.mark.integration

ASK: list[Any] = [{"role": "user", "content": prompt()[0].content}]


def client(address: str) -> openai.AsyncOpenAI:
    return openai_client(address, timeout=60)


async def test_openai_completion(address: str) -> None:
    async with client(address) as api:
        answer = await api.chat.completions.create(model="some-model", messages=ASK, seed=5)
    reply = respond(prompt(), seed=5)
    assert answer.choices[0].message.content == reply.text
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "some-model"
    assert answer.object == "chat.completion"
    assert answer.usage is not None
    assert reply.usage is not None
    assert answer.usage.prompt_tokens == reply.usage.prompt_tokens
    assert answer.usage.completion_tokens == reply.usage.completion_tokens
    assert answer.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


async def test_openai_system_message_and_parts(address: str) -> None:
    text = prompt()[0].content
    first, rest = text.split("\n", 1)
    messages: list[Any] = [
        {"role": "developer", "content": first},
        {"role": "user", "content": [{"type": "text", "text": rest}]},
    ]
    async with client(address) as api:
        answer = await api.chat.completions.create(model="m", messages=messages, seed=5)
    assert (
        answer.choices[0].message.content
        == respond((Message("system", first), Message("user", rest)), seed=5).text
    )


async def test_openai_selfplay_closing_and_verdict(address: str) -> None:
    for asked in lessons.samples():
        messages: list[Any] = [{"role": message.role, "content": message.content} for message in asked]
        async with client(address) as api:
            answer = await api.chat.completions.create(model="m", messages=messages, seed=5)
        assert answer.choices[0].message.content == respond(asked, seed=5).text


async def test_openai_streaming(address: str) -> None:
    async with client(address) as api:
        stream = await api.chat.completions.create(
            model="m", messages=ASK, seed=5, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == respond(prompt(), seed=5).text
    assert len(chunks) > 10
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == -(-len(text) // 4)
    assert all(c.usage is None for c in chunks[:-1])


async def test_openai_stream_of_several_choices(address: str) -> None:
    async with client(address) as api:
        whole = await api.chat.completions.create(model="m", messages=ASK, seed=5, n=2)
        stream = await api.chat.completions.create(model="m", messages=ASK, seed=5, n=2, stream=True)
        texts = ["", ""]
        async for chunk in stream:
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [choice.message.content for choice in whole.choices]


async def test_openai_choices_tokens_stop_and_json(address: str) -> None:
    async with client(address) as api:
        three = await api.chat.completions.create(model="m", messages=ASK, n=3, seed=1)
        cut = await api.chat.completions.create(model="m", messages=ASK, max_completion_tokens=20, seed=1)
        stopped = await api.chat.completions.create(model="m", messages=ASK, stop="Probability", seed=1)
        as_json = await api.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hello"}],
            response_format={"type": "json_object"},
        )
    assert [choice.index for choice in three.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in three.choices}) == 3
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage is not None
    assert cut.usage.completion_tokens == 20
    assert "Probability" not in (stopped.choices[0].message.content or "")
    assert re.fullmatch(r'\{"answer":".+"\}', as_json.choices[0].message.content or "")


async def test_without_seed_each_repetition_is_a_variation(address: str) -> None:
    async with client(address) as api:
        texts = [
            (await api.chat.completions.create(model="m", messages=ASK)).choices[0].message.content
            for _ in range(4)
        ]
        cold = [
            (await api.chat.completions.create(model="m", messages=ASK, temperature=0))
            .choices[0]
            .message.content
            for _ in range(3)
        ]
    assert len(set(texts)) == 4
    assert set(cold) == {texts[0]}


async def test_openai_models(address: str) -> None:
    async with client(address) as api:
        assert [model.id async for model in api.models.list()] == ["edgen-simulator"]
        assert (await api.models.retrieve("anything")).id == "anything"


@pytest.mark.parametrize(
    ("fault", "error", "status"),
    [
        ("429", "RateLimitError", 429),
        ("quota", "RateLimitError", 429),
        ("500", "InternalServerError", 500),
        ("503", "InternalServerError", 503),
        ("401", "AuthenticationError", 401),
        ("404", "NotFoundError", 404),
    ],
)
async def test_openai_errors(fault: str, error: str, status: int) -> None:
    async with serve_options(options(faults=f"{fault}=1")) as address, client(address) as api:
        with pytest.raises(getattr(openai, error)) as caught:
            await api.chat.completions.create(model="m", messages=ASK)
    assert caught.value.status_code == status
    assert "simulated" in caught.value.message
    assert caught.value.response.headers.get("retry-after") == ("1" if fault == "429" else None)
    assert caught.value.response.headers["x-edgen-simulated"] == "true"
    if fault == "quota":
        assert caught.value.code == "insufficient_quota"


async def test_openai_fraction_of_a_second() -> None:
    async with serve_options(options(faults="429=1:1.25")) as address, client(address) as api:
        with pytest.raises(openai.RateLimitError) as caught:
            await api.chat.completions.create(model="m", messages=ASK)
    headers = caught.value.response.headers
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("2", "1250")


async def test_openai_clients_own_retry_gets_through() -> None:
    async with serve_options(options(faults="429=0.4:0.01,500=0.2")) as address:
        api = openai_client(address, max_retries=8, timeout=60)
        async with api:
            answers = await asyncio.gather(
                *(api.chat.completions.create(model="m", messages=ASK, seed=i) for i in range(8))
            )
    # The storm changes no answer.
    assert [a.choices[0].message.content for a in answers] == [
        respond(prompt(), seed=i).text for i in range(8)
    ]


async def test_openai_hang_and_reset() -> None:
    async with serve_options(options(faults="hang=1")) as address, client(address) as api:
        with pytest.raises(openai.APITimeoutError):
            await api.with_options(timeout=0.1).chat.completions.create(model="m", messages=ASK)
    async with serve_options(options(faults="reset=1")) as address, client(address) as api:
        with pytest.raises(openai.APIConnectionError):
            await api.chat.completions.create(model="m", messages=ASK)


async def test_hung_requests_do_not_hold_up_the_end() -> None:
    start = time.monotonic()
    async with aiohttp.ClientSession() as session:
        async with serve_options(options(faults="hang=1")) as address:
            post = session.post(f"{address}/v1/chat/completions", json={"messages": ASK})
            waiting = asyncio.create_task(post.__aenter__())
            await asyncio.sleep(0.1)
        with pytest.raises(aiohttp.ClientError):
            await waiting
    assert time.monotonic() - start < 30


async def test_openai_content_faults() -> None:
    async with serve_options(options(faults="filtered=1")) as address, client(address) as api:
        filtered = await api.chat.completions.create(model="m", messages=ASK)
    assert filtered.choices[0].finish_reason == "content_filter"
    assert not filtered.choices[0].message.content
    async with serve_options(options(faults="refusal=1")) as address, client(address) as api:
        answers = [await api.chat.completions.create(model="m", messages=ASK, seed=i) for i in range(30)]
        stream = await api.chat.completions.create(model="m", messages=ASK, seed=2, stream=True)
        streamed = [chunk.choices[0].delta async for chunk in stream]
    messages = [answer.choices[0].message for answer in answers]
    assert any(message.refusal for message in messages)
    assert all(bool(message.refusal) != bool(message.content) for message in messages)
    said = "".join((delta.refusal or "") + (delta.content or "") for delta in streamed)
    assert said == (messages[2].refusal or messages[2].content)


# ---- plain HTTP ----


async def test_says_what_it_is(address: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(address) as response:
        text = await response.text()
        assert response.headers["x-edgen-simulated"] == "true"
    assert "every answer is simulated" in text


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/v1/chat/completions", b"{", 400, "cannot be read"),
        ("POST", "/v1/chat/completions", b"", 400, "cannot be read"),
        ("POST", "/v1/chat/completions", b"\xff\xfe", 400, "cannot be read"),
        ("POST", "/v1/chat/completions", b"[" * 100_000, 400, "cannot be read"),
        ("POST", "/v1/chat/completions", b'{"model": "m"}', 400, "messages"),
        ("POST", "/v1/chat/completions", b'{"messages": []}', 400, "no message"),
        ("POST", "/v1/chat/completions", b'{"messages": [{"role": "king", "content": ""}]}', 400, "king"),
        (
            "POST",
            "/v1/chat/completions",
            b'{"messages": [{"role": "user", "content": "x"}], "n": 0}',
            400,
            "Between 1 and 128",
        ),
        (
            "POST",
            "/v1/chat/completions",
            b'{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            400,
            "Only text",
        ),
        ("GET", "/v1/chat/completions", b"", 405, "takes POST"),
        ("POST", "/v1/models", b"", 405, "takes GET"),
        ("GET", "/v1/nowhere", b"", 404, "nothing at /v1/nowhere"),
        ("GET", "/%2e%2e/etc/passwd", b"", 404, "nothing at"),
        ("OPTIONS", "", b"", 405, "takes GET"),
        ("POST", "/v1beta/models/g:countTokens", b"{}", 400, "no message"),
        ("POST", "/v1beta/models/:generateContent", b"{}", 404, "nothing at"),
        ("POST", "/v1beta/models/g:generateContent", b"{}", 400, "contents"),
        (
            "POST",
            "/v1beta/models/g:generateContent",
            b'{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":0}}',
            400,
            "at least 1",
        ),
    ],
)
async def test_bad_requests_are_answered_with_a_sentence(
    address: str, method: str, path: str, body: bytes, status: int, words: str
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, address + path, data=body) as response,
    ):
        error = (await response.json())["error"]
        assert response.status == status
        assert words in error["message"]
        assert response.headers["x-edgen-simulated"] == "true"


async def test_many_at_once_are_all_answered(address: str) -> None:
    async with aiohttp.ClientSession() as session:

        async def one(i: int, messages: tuple[Message]) -> str:
            body = {"messages": [{"role": "user", "content": messages[0].content}], "seed": i}
            async with session.post(f"{address}/v1/chat/completions", json=body) as response:
                return str((await response.json())["choices"][0]["message"]["content"])

        texts = await asyncio.gather(*(one(i, m) for i, m in enumerate(every_scenario(300))))
    assert len(set(texts)) == 300
    assert all(0 <= probability_of(text) <= 1 for text in texts)


async def test_latency() -> None:
    async with serve_options(options(latency_ms=80)) as address, client(address) as api:
        start = time.monotonic()
        await asyncio.gather(
            *(api.chat.completions.create(model="m", messages=ASK, seed=i) for i in range(10))
        )
        assert time.monotonic() - start >= 0.08


async def test_servers_seed_is_another_world_of_answers() -> None:
    texts = set()
    for seed in (0, 1):
        async with serve_options(options(seed=seed)) as address, client(address) as api:
            answer = await api.chat.completions.create(model="m", messages=ASK, seed=5)
            texts.add(answer.choices[0].message.content)
    assert len(texts) == 2


async def test_address_that_cannot_be_had(address: str) -> None:
    port = int(address.rsplit(":", 1)[1])
    with pytest.raises(
        InputError, match=f"Port {port} on 127.0.0.1 is in use. Choose another one with --port"
    ):
        async with serve_options(options(port=port)):
            pass
    with pytest.raises(InputError, match=r"Cannot listen on 192\.0\.2\.1"):
        async with serve_options(options(host="192.0.2.1")):
            pass


async def test_faults_are_read_before_anything_listens() -> None:
    with pytest.raises(InputError, match="no fault 'x'"):
        async with serve_options(options(faults="x=1")):
            pass


@pytest.mark.parametrize(
    ("path", "headers", "status", "error"),
    [
        ("/v1/chat/completions", {"Origin": "https://evil.example"}, 403, "error"),
        ("/v1/models", {}, 405, "error"),
        ("/v1/nothing", {}, 404, "error"),
        ("/v1/chat/completions", {}, 413, "error"),
        ("/v1/messages", {"x-api-key": "k"}, 413, "request_too_large"),
        ("/v1beta/models/m:generateContent", {"x-goog-api-key": "k"}, 413, "INVALID_ARGUMENT"),
        ("/v1/batches", {}, 413, "error"),
        ("/v1/files", {}, 400, "error"),
    ],
)
async def test_whoever_sends_a_large_body_that_is_refused_gets_the_answer(
    monkeypatch: pytest.MonkeyPatch, path: str, headers: dict[str, str], status: int, error: str
) -> None:
    """This holds for a client, too, that reads nothing before it has sent everything."""
    monkeypatch.setattr(server, "_MAX_BODY", 1 << 20)

    def send(url: str) -> tuple[int, str]:
        asked = urllib.request.Request(url, b" " * (20 << 20), {"Content-Type": "text/plain", **headers})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked, timeout=60)
        return refused.value.code, refused.value.read().decode()

    async with serve_options(options()) as address:
        code, said = await asyncio.to_thread(send, address + path)
    assert code == status, said
    assert "error" in json.loads(said)
    assert error in said
