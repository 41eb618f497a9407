"""Log probabilities in requests and answers: each provider's own fields, and invalid values
that are rejected."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from edgen.config.backends import BackendConfig, find_features
from edgen.core.values import Address, Message, Reply, Request, Token
from edgen.providers import make, make_batch_service
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.failures import without_secrets
from edgen.providers.function import FunctionBackend, make_config
from edgen.providers.gemini import online as gemini
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.openai import logprobs as openai
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai_responses.config import OpenAIResponsesConfig
from edgen.providers.vertex.config import VertexConfig
from edgen.simulator.config import SimulatorConfig
from edgen.simulator.service.server import serve_options
from tests.providers.fakes import FakeServer, answer
from tests.simulator.server import options

HELLO = (Message("user", "hello"),)
TOKENS = (Token("1", -0.2, (("1", -0.2), ("2", -1.75))), Token(".", -0.01, ((".", -0.01), ("\n", -5.0))))


def request(top: int | None = 2, text: str = "hello", scale: int = 1) -> Request:
    return Request(Address(0, 0), (Message("user", text),), seed=7, max_tokens_scale=scale, logprobs=top)


def configs(url: str, **more: Any) -> dict[str, BackendConfig]:
    """Return a backend of each type that supports log probabilities over HTTP, all at one server."""
    known: dict[str, Any] = {"model": "m", **more}
    return {
        "openai": OpenAIConfig(base_url=f"{url}/v1", **known),
        "openai-responses": OpenAIResponsesConfig(base_url=f"{url}/v1", **known),
        "gemini": GeminiConfig(base_url=url, **known),
        "vertex": VertexConfig(base_url=url, project="my-project", **known),
    }


KINDS = [*configs("http://127.0.0.1:1")]
CONTENTS = [{"role": "user", "parts": [{"text": "hello"}]}]
GENERATION = {"maxOutputTokens": 9, "responseLogprobs": True, "logprobs": 2}
# Each service's exact request.
BODIES: dict[str, Any] = {
    "openai": {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 9,
        "logprobs": True,
        "top_logprobs": 2,
    },
    "openai-responses": {
        "model": "m",
        "input": [{"role": "user", "content": "hello"}],
        "store": False,
        "max_output_tokens": 9,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
    },
    "gemini": {"contents": CONTENTS, "generationConfig": GENERATION},
    "vertex": {"contents": CONTENTS, "generationConfig": GENERATION},
}


def entry(text: str, logprob: Any, **more: Any) -> dict[str, Any]:
    return {"token": text, "bytes": list(text.encode()), "logprob": logprob, **more}


def listed(tokens: Any = TOKENS) -> list[dict[str, Any]]:
    return [
        entry(one.text, one.logprob, top_logprobs=[entry(*likely) for likely in one.top]) for one in tokens
    ]


def of_google(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "tokenId": 1, "logProbability": logprob}


_RESULT = {
    "chosenCandidates": [of_google(one.text, one.logprob) for one in TOKENS],
    "topCandidates": [{"candidates": [of_google(*likely) for likely in one.top]} for one in TOKENS],
    "logProbabilitySum": -0.21,
}
_CANDIDATE = {"content": {"parts": [{"text": "1."}]}, "finishReason": "STOP", "logprobsResult": _RESULT}
# Each service's answer, by its API reference.
ANSWERS: dict[str, Any] = {
    "openai": {
        "choices": [
            {
                "message": {"content": "1.", "refusal": None},
                "logprobs": {"content": listed(), "refusal": None},
                "finish_reason": "stop",
            }
        ]
    },
    "openai-responses": {
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": []},
            {
                "type": "message",
                "content": [{"type": "output_text", "text": "1.", "annotations": [], "logprobs": listed()}],
            },
        ],
    },
    "gemini": {"candidates": [_CANDIDATE]},
    "vertex": {"candidates": [{**_CANDIDATE, "avgLogprobs": -0.1}]},
}


def opened(config: BackendConfig) -> Any:
    return make(config, timeout=60, connections=2, environ={})


@pytest.mark.parametrize("kind", KINDS)
async def test_each_service_is_asked_in_its_own_way_and_its_tokens_are_read(
    fake: FakeServer, kind: str
) -> None:
    fake.says(answer(ANSWERS[kind]))
    it = opened(configs(fake.url, max_tokens=9)[kind])
    try:
        reply = await it.complete(request())
        await it.complete(request(None))
    finally:
        await it.aclose()
    asked, plain = (seen.json for seen in fake.seen)
    assert asked == BODIES[kind]
    assert reply.text == "1."
    assert reply.tokens == TOKENS
    assert "logprobs" not in json.dumps(plain).lower()


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_without_them_is_as_it_was(kind: str) -> None:
    it = opened(configs("http://127.0.0.1:1", max_tokens=9, temperature=0.5)[kind])
    before = it.body(request(None))
    assert it.body(request(5, scale=2)) != it.body(request(4, scale=2)) != before
    assert it.body(request(None)) == before


def of_llama(text: str, prob: float, *top: tuple[str, float]) -> dict[str, Any]:
    likely = [{"id": 1, "token": one, "bytes": [*one.encode()], "prob": share} for one, share in top]
    return {"id": 1, "token": text, "bytes": [*text.encode()], "prob": prob, "top_probs": likely}


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7}])
async def test_llama_cpp_is_asked_for_what_it_says_after_the_grammar(
    fake: FakeServer, settings: dict[str, Any]
) -> None:
    """llama.cpp is known by its first answer; no other service gets the field."""
    sampled = [of_llama("1", 0.25, ("1", 0.25), ("2", 0.75)), of_llama("}", 1.0000001, ("}", 1.0), ("x", 0))]
    said = {
        "choices": [{"message": {"content": "1}"}, "logprobs": {"content": listed()}}],
        "timings": {"prompt_n": 1},
    }
    after = {**said, "choices": [{"message": {"content": "1}"}, "logprobs": {"content": sampled}}]}
    fake.says(answer(said), answer(after))
    it = opened(configs(fake.url, **settings)["openai"])
    formed = msgspec.structs.replace(request(), schema=b'{"type":"object"}')
    try:
        replies = [await it.complete(formed), await it.complete(formed)]
        await it.complete(request())  # without a grammar
    finally:
        await it.aclose()
    sent = ["post_sampling_probs" in seen.json for seen in fake.seen]
    assert sent == [False, True, True, False]
    for reply in replies:
        first, last = reply.tokens
        assert first.text == "1"
        assert [(text, round(math.exp(log), 4)) for text, log in first.top] == [("2", 0.75), ("1", 0.25)]
        assert last.logprob == 0
        assert dict(last.top)["x"] < -1000


@pytest.mark.parametrize(
    ("settings", "timings"),
    [({"temperature": 0}, True), ({}, False), ({"extra_body": {"post_sampling_probs": False}}, True)],
)
async def test_others_are_not_asked_for_it(fake: FakeServer, settings: dict[str, Any], timings: bool) -> None:
    fake.says(answer({**ANSWERS["openai"], **({"timings": {}} if timings else {})}))
    it = opened(configs(fake.url, **settings)["openai"])
    formed = msgspec.structs.replace(request(), schema=b'{"type":"object"}')
    try:
        for _ in range(2):
            assert (await it.complete(formed)).tokens == TOKENS
    finally:
        await it.aclose()
    assert len(fake.seen) == 2
    assert not any(seen.json.get("post_sampling_probs") for seen in fake.seen)


@pytest.mark.parametrize("prob", [-0.1, 1.5, "0.5", None, True])
def test_a_probability_that_is_none_is_not_believed(prob: Any) -> None:
    assert openai.read_tokens([of_llama("1", prob)]) is None


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_line_of_a_batch_asks_and_is_read_alike(kind: str) -> None:
    config = configs("http://127.0.0.1:1")[kind]
    it = opened(config)
    service = make_batch_service(config, it, environ={}, offline=True)
    line = json.loads(service.line("0-0-0-a", request()))
    assert json.loads(it.body(request())) in line.values()
    body = ANSWERS[kind]
    result = (
        {"custom_id": "0-0-0-a", "response": {"status_code": 200, "body": body}}
        if kind == "openai"
        else {"key": "0-0-0-a", "response": body}
    )
    said: Any = service.read(json.dumps(result).encode())
    assert said.reply.tokens == TOKENS


# --- invalid values ------------------------------------------------------------------------------


def test_the_bytes_of_a_character_may_stand_in_several_tokens() -> None:
    parts = [b"\xe2\x9c", b"\x94", b" 2"]
    told = [{"token": "\ufffd", "bytes": list(part), "logprob": -0.5, "top_logprobs": []} for part in parts]
    tokens = openai.read_tokens(told)
    assert tokens is not None
    assert [one.text for one in tokens] == ["", "✔", " 2"]
    cut = openai.read_tokens(told[:1])
    assert cut is not None
    assert cut[0].text == "\ufffd"


@pytest.mark.parametrize(
    "wrong",
    [
        None, {}, [], "x", [None], [{}], [entry("1", None)], [entry("1", "0")], [entry("1", True)], [entry("1", 3.0)],
        [entry("1", math.nan)], [{"token": 1, "logprob": -1}], [*listed(), {"token": "x"}],
    ],
)  # fmt: skip
def test_what_is_no_list_of_tokens_is_none(wrong: Any) -> None:
    assert openai.read_tokens(wrong) is None
    of_google = json.loads(json.dumps(wrong).replace('"logprob"', '"logProbability"'))
    if wrong != [*listed(), {"token": "x"}]:  # Google omits a number that is 0
        assert gemini.read_tokens({"chosenCandidates": of_google}) is None


def test_numbers_are_held_against_what_they_can_be() -> None:
    told = [
        {
            "token": "1",
            "logprob": 0.0004,
            "top_logprobs": [
                entry("2", -math.inf),
                entry("x", 7),
                {"token": "1", "logprob": 0},
                5,
                *listed(),
            ],
        }
    ]
    tokens = openai.read_tokens(told)
    assert tokens == (Token("1", 0.0, (("1", 0.0), (".", -0.01), ("1", -0.2), ("2", -9999.0))),)
    many = [entry("1", -1.0, top_logprobs=[entry(str(i), -i) for i in range(100)])]
    found = openai.read_tokens(many)
    assert found is not None
    assert len(found[0].top) == 20


def test_google_leaves_out_what_is_0_and_may_tell_no_alternatives() -> None:
    told = {
        "chosenCandidates": [{"token": "1"}, of_google("x", -2)],
        "topCandidates": [{"candidates": [{"token": "1"}]}],
    }
    assert gemini.read_tokens(told) == (Token("1", 0.0, (("1", 0.0),)), Token("x", -2.0))


def test_a_key_that_tokens_spell_takes_them_along() -> None:
    key = "sk-0123456789abcdef"
    spelt = (Token(key[:9], -1.0), Token(key[9:], -1.0))
    offered = (Token("1", -1.0, ((key, -2.0),)),)
    for tokens in (spelt, offered):
        assert without_secrets(Reply("1", tokens=tokens), (key,)) == Reply("1")
    assert without_secrets(Reply("1", tokens=TOKENS), (key,)).tokens == TOKENS


# --- support -------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [AnthropicConfig(model="m"), GoogleGenerativeAIConfig(model="m")])
def test_who_tells_none_says_so(config: BackendConfig) -> None:
    assert "returns none" in str(find_features(config).logprobs_problem(config))


@pytest.mark.parametrize("kind", KINDS)
def test_an_extra_body_that_asks_for_others_is_refused(kind: str) -> None:
    plain = configs("http://127.0.0.1:1")[kind]
    assert find_features(plain).logprobs_problem(plain) is None
    for field in find_features(plain).logprobs_fields:
        extra: Any = 3
        for key in reversed(field.split(".")):
            extra = {key: extra}
        config = configs("http://127.0.0.1:1", extra_body=extra)[kind]
        assert f"its extra_body sets {field}, too" in str(find_features(config).logprobs_problem(config))


async def test_a_function_returns_them_by_itself() -> None:
    async def judge(asked: Request) -> Reply:
        return Reply("1.", tokens=TOKENS[: asked.logprobs])

    config = make_config(judge)
    assert find_features(config).logprobs_problem(config) is None
    assert (await FunctionBackend(judge, config, 5).complete(request())).tokens == TOKENS


async def test_the_simulator_tells_the_same_in_every_format_and_embedded() -> None:
    async with serve_options(options()) as url:
        found = {}
        for kind, config in configs(url, temperature=0.0).items():
            if kind == "vertex":
                continue
            it = opened(config)
            found[kind] = await it.complete(request(3, "How do plants grow?"))
            await it.aclose()
    texts = {kind: reply.text for kind, reply in found.items()}
    assert len(set(texts.values())) == 1, texts
    tokens = found["openai"].tokens
    assert "".join(one.text for one in tokens) == found["openai"].text
    assert {len(one.top) for one in tokens} == {3}
    assert found["openai-responses"].tokens == found["gemini"].tokens == tokens
    embedded = await opened(SimulatorConfig()).complete(request(3, "How do plants grow?"))
    assert embedded.tokens is not None
    assert "".join(one.text for one in embedded.tokens) == embedded.text
    assert {len(one.top) for one in embedded.tokens} == {3}
