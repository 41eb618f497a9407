"""The openai adapter with a real llama.cpp server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply
from edgen.providers import Backend, make
from edgen.providers.openai.config import OpenAIConfig
from edgen.reading.answers.verdict import read_verdict
from edgen.reading.answers.verdict_logprobs import Bounds, read_preference
from tests.providers import llama
from tests.providers.fakes import TRUSTING, request

Build = Callable[..., Backend]


def _counts(reply: Reply) -> tuple[int, int]:
    """Return the tokens of prompt and answer. The share that a cache served depends on earlier requests."""
    assert reply.usage is not None
    return reply.usage.prompt_tokens, reply.usage.completion_tokens


SCHEMA = {
    "type": "object",
    "properties": {"understood": {"enum": ["yes", "no"]}},
    "required": ["understood"],
    "additionalProperties": False,
}
JSON_SCHEMA = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": SCHEMA}}
}


@pytest.fixture
async def build(llama_server: llama.Server) -> AsyncIterator[Build]:
    built = []

    def one(*, key: str = llama_server.key, **settings: Any) -> Backend:
        config = OpenAIConfig(model=llama_server.model, base_url=llama_server.base_url, **settings)
        it = make(config, timeout=60, connections=4, environ={"OPENAI_API_KEY": key, **TRUSTING})
        built.append(it)
        return it

    yield one
    for it in built:
        await it.aclose()


async def failing(it: Backend, *texts: str) -> CallError:
    with pytest.raises(CallError) as caught:
        await it.complete(request(*texts))
    return caught.value


async def test_max_tokens_end_an_answer_and_usage_counts_it(build: Build) -> None:
    reply = await build(max_tokens=6, temperature=0).complete(request("hi"))
    assert reply.finish_reason == "length"
    assert reply.text
    # Two letters in two brackets, and the assistant's opening, by the chat template.
    assert _counts(reply) == (5, 6)
    assert reply.model == llama.MODEL


async def test_an_answer_cut_off_is_given_more_room(build: Build) -> None:
    reply = await build(max_tokens=6, retry_max_tokens=12, temperature=0).complete(request("hi", scale=2))
    assert _counts(reply) == (5, 12)


async def test_json_by_schema_and_the_models_own_end(build: Build) -> None:
    it = build(max_tokens=200, temperature=0.5, seed="auto", extra_body=JSON_SCHEMA)
    reply = await it.complete(request("did the student understand?", system="answer"))
    assert reply.finish_reason == "stop"
    assert json.loads(reply.text)["understood"] in ("yes", "no")


async def test_stop(build: Build) -> None:
    it = build(max_tokens=200, temperature=0.5, seed=1, stop=("stood",), extra_body=JSON_SCHEMA)
    reply = await it.complete(request("did the student understand?"))
    assert reply.finish_reason == "stop"
    assert reply.text.rstrip().endswith('"under')


async def test_a_seed_repeats_an_answer(build: Build) -> None:
    it = build(max_tokens=20, temperature=1.0, seed="auto", extra_body={"cache_prompt": False})
    texts = [(await it.complete(request("hi", seed=seed))).text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


async def test_a_wrong_key(build: Build) -> None:
    error = await failing(build(key="not-the-key"))
    assert (error.kind, error.status) == (FailureKind.AUTHENTICATION, 401)


async def test_no_key(build: Build) -> None:
    assert (await failing(build(key=""))).kind is FailureKind.AUTHENTICATION


async def test_a_prompt_that_does_not_fit(build: Build) -> None:
    error = await failing(build(), "many words " * llama.CONTEXT)
    assert (error.kind, error.status) == (FailureKind.CONTEXT_OVERFLOW, 400)


async def test_a_parameter_that_the_server_refuses(build: Build) -> None:
    error = await failing(build(extra_body={"temperature": "hot"}))
    assert (error.kind, error.status) == (FailureKind.BAD_REQUEST, 400)
    assert "temperature" in error.message


async def test_a_path_that_is_not_there(build: Build, llama_server: llama.Server) -> None:
    config = OpenAIConfig(model="m", base_url=llama_server.base_url + "/v2")
    it = make(config, timeout=60, connections=1, environ={"OPENAI_API_KEY": llama_server.key, **TRUSTING})
    assert (await failing(it)).kind is FailureKind.NOT_FOUND
    await it.aclose()


async def test_models(build: Build) -> None:
    assert await build().models() == [llama.MODEL]


# --- log probabilities, and several answers ------------------------------------------------------


async def test_tokens_spell_the_answer_and_share_their_probability(build: Build) -> None:
    """A random model splits characters. The server reports no tokens after one that ended
    within a character."""
    asked = msgspec.structs.replace(request("which one?"), logprobs=5)
    backend = build(max_tokens=12, temperature=0.8)
    spelled = []
    for seed in range(8):
        reply = await backend.complete(msgspec.structs.replace(asked, seed=seed))
        told = reply.tokens or ()
        text, of_tokens = (
            re.sub("[\\s\N{REPLACEMENT CHARACTER}]", "", said)
            for said in (reply.text, "".join(token.text for token in told))
        )
        assert text.startswith(of_tokens)
        spelled.append(len(of_tokens) > 3 and text == of_tokens)
        for token in told:
            assert len(token.top) == 5
            assert 0 < sum(math.exp(logprob) for _, logprob in token.top) <= 1.001
    assert any(spelled)


async def test_the_verdicts_place_is_found_in_what_a_real_server_tells(build: Build) -> None:
    """With random weights and probabilities from before the schema ruled out all but two numbers, either
    number may be unlikely."""
    schema: Any = {"type": "object", "properties": {"answer": {"enum": [1, 2]}}, "required": ["answer"]}
    sent = msgspec.json.encode(schema | {"additionalProperties": False})
    asked = msgspec.structs.replace(request("1 or 2?"), logprobs=20, schema=sent)
    reply = await build(max_tokens=60, temperature=0).complete(asked)
    said = read_verdict(reply.text)
    assert said is not None, reply.text
    found = read_preference(reply.text, said, reply.tokens)
    assert isinstance(found, Bounds), found
    assert 0 <= found.low <= found.high <= 1
    assert (found.high >= 0.5) if said == 1 else (found.low <= 0.5)


async def test_as_many_answers_come_as_it_has_slots_and_more_are_a_bad_request(build: Build) -> None:
    it = build(max_tokens=6, temperature=0)  # a random answer may end before its sixth token
    reply = await it.complete(msgspec.structs.replace(request("hi"), choices=2))
    assert len(reply.others) == 1
    assert _counts(reply) == (5, 6), "it counts the first of them alone"
    with pytest.raises(CallError, match="'n'") as refused:
        await it.complete(msgspec.structs.replace(request("hi"), choices=3))
    assert refused.value.kind is FailureKind.BAD_REQUEST
