"""The simulator over HTTP, used by Google's client."""

from __future__ import annotations

import math
import re
from typing import Any

import aiohttp
import pytest

from edgen.core.values import Message
from edgen.simulator.service.server import serve_options
from edgen.simulator.text import respond
from tests.late import Late
from tests.simulator import lessons
from tests.simulator.prompts import prompt, turns_of
from tests.simulator.sdks import gemini_client
from tests.simulator.server import options

genai = Late("google.genai")
google_errors = Late("google.genai.errors")
types = Late("google.genai.types")

pytestmark = pytest.mark.integration


def gemini(address: str) -> genai.Client:
    return gemini_client(address)


async def test_gemini_completion(address: str) -> None:
    text = prompt()[0].content
    first, rest = text.split("\n", 1)
    answer = await gemini(address).aio.models.generate_content(
        model="gemini-any",
        contents=rest,
        config=types.GenerateContentConfig(seed=5, system_instruction=first, temperature=0.3),
    )
    reply = respond((Message("system", first), Message("user", rest)), seed=5)
    assert answer.text == reply.text
    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason == types.FinishReason.STOP
    assert answer.model_version == "gemini-any"
    assert answer.usage_metadata is not None
    assert reply.usage is not None
    assert answer.usage_metadata.prompt_token_count == reply.usage.prompt_tokens
    assert answer.usage_metadata.candidates_token_count == reply.usage.completion_tokens
    assert len(turns_of(answer.text)) >= 10


async def test_paths_without_a_version(address: str) -> None:
    expected = respond(prompt(), seed=5).text
    wanted = types.GenerateContentConfig(seed=5)
    models = gemini_client(address, api_version="").aio.models
    asked: Any = {"model": "g", "contents": prompt()[0].content, "config": wanted}
    assert (await models.generate_content(**asked)).text == expected
    streamed = [part.text or "" async for part in await models.generate_content_stream(**asked)]
    assert "".join(streamed) == expected
    assert (await models.count_tokens(model="g", contents="x" * 400)).total_tokens == 100
    assert [model.name async for model in await models.list()] == ["models/edgen-simulator"]
    assert (await models.get(model="g")).name == "models/g"
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{address}/models/g:generateContent",
            json={"contents": [{"parts": [{"text": prompt()[0].content}]}], "generationConfig": {"seed": 5}},
        ) as response,
    ):
        said = (await response.json())["candidates"][0]["content"]["parts"][0]["text"]
    assert said == expected


async def test_log_probabilities(address: str) -> None:
    wanted = types.GenerateContentConfig(seed=5, response_logprobs=True, logprobs=3)
    asked: Any = {"model": "g", "contents": prompt()[0].content, "config": wanted}
    models = gemini(address).aio.models
    (candidate,) = (await models.generate_content(**asked)).candidates or ()
    told = candidate.logprobs_result
    assert told is not None
    assert "".join(one.token or "" for one in told.chosen_candidates or ()) == respond(prompt(), seed=5).text
    for one, likely in zip(told.chosen_candidates or (), told.top_candidates or (), strict=True):
        assert one in (likely.candidates or ())
        assert sum(math.exp(each.log_probability or 0) for each in likely.candidates or ()) <= 1
    assert candidate.avg_logprobs is not None
    assert candidate.avg_logprobs < 0
    parts: list[Any] = [part async for part in await models.generate_content_stream(**asked)]
    streamed = [part.candidates[0].logprobs_result for part in parts]
    tokens = [one for result in streamed if result for one in result.chosen_candidates]
    assert tokens == told.chosen_candidates


@pytest.mark.parametrize(
    ("contents", "config", "said"),
    [
        ("hello", {"logprobs": 3}, "needs 'responseLogprobs'"),
        ("hello", {"response_logprobs": True, "logprobs": 21}, "Between 0 and 20"),
        ("hello", {"response_modalities": ["AUDIO"]}, "AUDIO cannot be simulated"),
        ("hello", {"tools": [{"google_search": {}}]}, "'googleSearch' cannot be simulated"),
        ("hello", {"cached_content": "cachedContents/1"}, "'cachedContent' cannot be simulated"),
        ({"inline_data": {"data": b"x", "mime_type": "image/png"}}, {}, "Only text"),
    ],
)  # fmt: skip
async def test_what_is_not_obeyed_is_refused(
    address: str, contents: Any, config: dict[str, Any], said: str
) -> None:
    with pytest.raises(google_errors.ClientError, match=said) as caught:
        await gemini(address).aio.models.generate_content(
            model="g", contents=contents, config=types.GenerateContentConfig(**config)
        )
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")


async def test_gemini_selfplay_closing_and_verdict(address: str) -> None:
    for asked in lessons.samples():
        system = [message.content for message in asked if message.role == "system"]
        contents: list[Any] = [
            types.Content(
                role="model" if message.role == "assistant" else "user",
                parts=[types.Part(text=message.content)],
            )
            for message in asked
            if message.role != "system"
        ]
        answer = await gemini(address).aio.models.generate_content(
            model="g",
            contents=contents,
            config=types.GenerateContentConfig(seed=5, system_instruction=system[0] if system else None),
        )
        assert answer.text == respond(asked, seed=5).text


async def test_gemini_streaming(address: str) -> None:
    stream = await gemini(address).aio.models.generate_content_stream(
        model="g", contents=prompt()[0].content, config=types.GenerateContentConfig(seed=5)
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.text or "" for chunk in chunks) == respond(prompt(), seed=5).text
    assert len(chunks) > 10
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].candidates is not None
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP


async def test_gemini_candidates_tokens_stop_and_json(address: str) -> None:
    models = gemini(address).aio.models
    text = prompt()[0].content
    two = await models.generate_content(
        model="g", contents=text, config=types.GenerateContentConfig(seed=1, candidate_count=2)
    )
    cut = await models.generate_content(
        model="g", contents=text, config=types.GenerateContentConfig(seed=1, max_output_tokens=20)
    )
    stopped = await models.generate_content(
        model="g", contents=text, config=types.GenerateContentConfig(seed=1, stop_sequences=["Probability"])
    )
    as_json = await models.generate_content(
        model="g",
        contents="hello",
        config=types.GenerateContentConfig(response_mime_type="application/json"),
    )
    assert two.candidates is not None
    assert len(two.candidates) == 2
    assert cut.candidates is not None
    assert cut.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    assert "Probability" not in (stopped.text or "")
    assert re.fullmatch(r'\{"answer":".+"\}', as_json.text or "")


async def test_gemini_models(address: str) -> None:
    """Models are listed at the default path of Google's client and at v1beta, which older clients use."""
    for version in (None, "v1beta"):
        await check_models(gemini_client(address, api_version=version).aio.models)


async def check_models(models: Any) -> None:
    assert [model.name async for model in await models.list()] == ["models/edgen-simulator"]
    assert (await models.get(model="anything")).name == "models/anything"


@pytest.mark.parametrize(
    ("fault", "error", "code", "status"),
    [
        ("429", "ClientError", 429, "RESOURCE_EXHAUSTED"),
        ("quota", "ClientError", 429, "RESOURCE_EXHAUSTED"),
        ("500", "ServerError", 500, "INTERNAL"),
        ("503", "ServerError", 503, "UNAVAILABLE"),
        ("401", "ClientError", 401, "UNAUTHENTICATED"),
        ("404", "ClientError", 404, "NOT_FOUND"),
    ],
)
async def test_gemini_errors(fault: str, error: str, code: int, status: str) -> None:
    async with serve_options(options(faults=f"{fault}=1")) as address:
        with pytest.raises(getattr(google_errors, error)) as caught:
            await gemini(address).aio.models.generate_content(model="g", contents="hello")
    assert (caught.value.code, caught.value.status) == (code, status)
    details = str(caught.value.details)
    assert ("'retryDelay': '1s'" in details) == (fault == "429")
    assert ("PerDay" in details) == (fault == "quota")


async def test_gemini_filtered() -> None:
    blocked, cut = 0, 0
    async with serve_options(options(faults="filtered=1")) as address:
        models = gemini(address).aio.models
        for seed in range(12):
            answer = await models.generate_content(
                model="g", contents="hello", config=types.GenerateContentConfig(seed=seed)
            )
            assert not answer.text
            if answer.prompt_feedback is not None:
                blocked += answer.prompt_feedback.block_reason == types.BlockedReason.PROHIBITED_CONTENT
            else:
                assert answer.candidates is not None
                cut += answer.candidates[0].finish_reason == types.FinishReason.SAFETY
        stream = await models.generate_content_stream(model="g", contents="hello")
        assert not "".join(chunk.text or "" for chunk in [c async for c in stream])
    assert blocked > 0
    assert cut > 0
    assert blocked + cut == 12


async def test_gemini_refusal_is_text() -> None:
    async with serve_options(options(faults="refusal=1")) as address:
        for seed in range(10):
            answer = await gemini(address).aio.models.generate_content(
                model="g", contents="hello", config=types.GenerateContentConfig(seed=seed)
            )
            assert answer.text


async def test_gemini_tokens_are_counted(address: str) -> None:
    counted = await gemini(address).aio.models.count_tokens(model="g", contents="x" * 400)
    assert counted.total_tokens == 100
