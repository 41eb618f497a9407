"""The litellm adapter through the library itself, with servers that each accept one dialect only."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from typing import Any

import msgspec
import pytest

from edgen.config.backends import find_features
from edgen.core.errors import CallError, FailureKind, InputError
from edgen.core.values import Address, Message, Reply, Request, Token, Usage
from edgen.providers import make
from edgen.providers.litellm.config import LitellmConfig
from tests.providers.fakes import TRUSTING, Answer, FakeServer, answer, request
from tests.providers.litellm_service import (
    CHAT,
    CONTENT,
    DIALECTS,
    KEY,
    MESSAGE,
    SCHEMA,
    ask,
    backend,
    chat,
    failure,
    keys_of,
    worded,
)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_sent_and_read(fake: FakeServer, dialect: str) -> None:
    (model, below, settings), (path, (header, value), body), answered = DIALECTS[dialect]
    fake.says(answer(answered))
    it = backend(fake.url + below, model, **settings)
    reply = await ask(it, "hello", system="be kind", scale=2, schema=SCHEMA)
    (seen,) = fake.seen
    assert (seen.method, seen.path, keys_of(seen)) == ("POST", path, {header: value})
    assert seen.json == body
    assert KEY not in seen.path + seen.body.decode()
    assert reply == Reply("hi", usage=Usage(3, 4), model="m-001")


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason", "refusal"),
    [
        (chat(finish_reason="length"), "length", None),
        (chat(finish_reason="content_filter"), "content_filter", "content_filter"),
        (chat(finish_reason=None), "stop", None),
        (chat(finish_reason="eos_token"), "stop", None),
        (chat(finish_reason="tool_calls"), "other", None),
        (chat(finish_reason="the_moon"), "other", None),
        (chat(finish_reason="error"), "other", None),
        (chat(message={"role": "assistant", "content": None, "refusal": "I will not"}), "stop", "I will not"),
    ],
)
async def test_why_an_answer_ended(fake: FakeServer, body: Any, reason: str, refusal: str | None) -> None:
    fake.says(answer(body))
    reply = await ask(backend(f"{fake.url}/v1"))
    assert (reply.finish_reason, reply.refusal) == (reason, refusal)


async def test_a_reason_that_nobody_knows_is_named_once(
    fake: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    fake.says(answer(chat(finish_reason="the_moon")))
    it = backend(f"{fake.url}/v1")
    for _ in range(3):
        await it.complete(request())
    await it.aclose()
    assert [record.getMessage() for record in caplog.records if record.name == "edgen"] == [
        "openai/m ends answers for a reason that edgen does not know (the_moon); they are read as they are."
    ]


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": 3}, {"completion_tokens": 4}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}],
)  # fmt: skip
async def test_usage_that_counts_nothing_is_none(fake: FakeServer, usage: Any) -> None:
    fake.says(answer(CHAT | {"usage": usage}))
    assert (await ask(backend(f"{fake.url}/v1"))).usage is None


async def test_other_dialects_without_usage(fake: FakeServer) -> None:
    fake.says(answer(MESSAGE | {"usage": {}}))
    assert (await ask(backend(fake.url, "anthropic/claude-sonnet-4-5"))).usage is None
    fake.says(answer(CONTENT | {"usageMetadata": {}}))
    assert (await ask(backend(f"{fake.url}/v1beta", "gemini/gemini-2.5-flash"))).usage is None


async def test_a_blocked_prompt_of_gemini(fake: FakeServer) -> None:
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 3},
    }
    fake.says(answer(blocked))
    reply = await ask(backend(f"{fake.url}/v1beta", "gemini/gemini-2.5-flash"))
    assert (reply.text, reply.finish_reason) == ("", "content_filter")


async def test_a_prompt_that_moderation_turns_away(fake: FakeServer) -> None:
    said = {
        "message": "The response was filtered by the content management policy.",
        "code": "content_filter",
    }
    fake.says(answer({"error": said}, 400))
    it = backend(fake.url, "azure/DEPLOYMENT", api_version="2024-10-21")
    reply = await ask(it)
    assert (reply.text, reply.finish_reason) == ("", "content_filter")
    assert "content management policy" in str(reply.refusal)


# --- failures ------------------------------------------------------------------------------------

_OPENAI = ("openai/m", "/v1")
_CLAUDE = ("anthropic/claude-sonnet-4-5", "")
_GEMINI = ("gemini/gemini-2.5-flash", "/v1beta")


def claude(kind: str, message: str) -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}


def google(status: int, word: str, message: str, *details: Any) -> Any:
    return {"error": {"code": status, "status": word, "message": message, "details": list(details)}}


_WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}


@pytest.mark.parametrize(
    ("where", "said", "kind", "wait"),
    [
        (_OPENAI, answer(worded("slow down"), 429, Retry_After="3"), FailureKind.RATE_LIMIT, 3),
        (_OPENAI, answer(worded("slow down"), 429, retry_after_ms="250"), FailureKind.RATE_LIMIT, 0.25),
        (_OPENAI, answer(worded("pay", code="insufficient_quota"), 429), FailureKind.QUOTA, None),
        (_OPENAI, answer(worded("Incorrect API key", code="invalid_api_key"), 401), FailureKind.AUTHENTICATION, None),
        (_OPENAI, answer(worded("no"), 403), FailureKind.PERMISSION, None),
        (_OPENAI, answer(worded("no such model"), 404), FailureKind.NOT_FOUND, None),
        (_OPENAI, answer(worded("This model's maximum context length is 10 tokens"), 400), FailureKind.CONTEXT_OVERFLOW, None),
        (_OPENAI, answer(worded("Unrecognized request argument"), 400), FailureKind.BAD_REQUEST, None),
        (_OPENAI, answer(worded("oh"), 500), FailureKind.SERVER_ERROR, None),
        (_OPENAI, answer(worded("full"), 503, Retry_After="2"), FailureKind.OVERLOADED, 2),
        (_OPENAI, answer({}, 302, Location="https://elsewhere.example.org/"), FailureKind.NOT_FOUND, None),
        (_OPENAI, Answer(b"<html>", 502), FailureKind.SERVER_ERROR, None),
        (_OPENAI, Answer(b"<html>"), FailureKind.BAD_RESPONSE, None),
        (_OPENAI, answer({"choices": []}), FailureKind.BAD_RESPONSE, None),
        (_OPENAI, answer({"choices": "none"}), FailureKind.BAD_RESPONSE, None),
        (_OPENAI, answer(worded("a router broke off", code=503)), FailureKind.OVERLOADED, None),
        (_OPENAI, Answer(b"{", act="cut"), FailureKind.CONNECTION, None),
        (_OPENAI, Answer(act="hang"), FailureKind.TIMEOUT, None),
        (_CLAUDE, answer(claude("rate_limit_error", "slow"), 429, retry_after="5"), FailureKind.RATE_LIMIT, 5),
        (_CLAUDE, answer(claude("overloaded_error", "Overloaded"), 529), FailureKind.OVERLOADED, None),
        (_CLAUDE, answer(claude("authentication_error", "invalid x-api-key"), 401), FailureKind.AUTHENTICATION, None),
        (_CLAUDE, answer(claude("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), 400), FailureKind.CONTEXT_OVERFLOW, None),
        (_CLAUDE, answer(claude("invalid_request_error", "Your credit balance is too low"), 400), FailureKind.QUOTA, None),
        (_CLAUDE, answer(claude("api_error", "oh"), 500), FailureKind.SERVER_ERROR, None),
        (_CLAUDE, answer({"nothing": 1}), FailureKind.BAD_RESPONSE, None),
        (_CLAUDE, Answer(act="hang"), FailureKind.TIMEOUT, None),
        (_GEMINI, answer(google(429, "RESOURCE_EXHAUSTED", "slow", _WAIT), 429), FailureKind.RATE_LIMIT, 7),
        (_GEMINI, answer(google(400, "INVALID_ARGUMENT", "API key not valid."), 400), FailureKind.AUTHENTICATION, None),
        (_GEMINI, answer(google(404, "NOT_FOUND", "models/m is not found"), 404), FailureKind.NOT_FOUND, None),
        (_GEMINI, answer(google(503, "UNAVAILABLE", "The model is overloaded"), 503), FailureKind.OVERLOADED, None),
        (_GEMINI, Answer(b"{", act="cut"), FailureKind.CONNECTION, None),
        (_GEMINI, answer({"candidates": CONTENT["candidates"]}), FailureKind.BAD_RESPONSE, None),
    ],
)  # fmt: skip
async def test_failures_are_told_apart_and_nothing_is_tried_again(
    fake: FakeServer, where: tuple[str, str], said: Answer, kind: FailureKind, wait: float | None
) -> None:
    model, below = where
    fake.says(said)
    config = LitellmConfig(model=model, base_url=fake.url + below, api_key_env="MY_KEY")
    patience = 2.0 if said.act == "hang" else 60
    it = make(config, timeout=patience, connections=2, environ={"MY_KEY": KEY, **TRUSTING})
    caught = await failure(it)
    assert (caught.kind, caught.retry_after) == (kind, wait), caught
    assert len(fake.seen) == 1


@pytest.mark.parametrize(("model", "below"), [_OPENAI, _CLAUDE, _GEMINI])
async def test_no_connection_is_no_call(model: str, below: str) -> None:
    caught = await failure(backend(f"http://127.0.0.1:9{below}", model))
    assert (caught.kind, caught.unsent) == (FailureKind.CONNECTION, True)
    assert "check base_url" in caught.message


async def test_a_setting_that_a_service_lacks_is_a_sentence(fake: FakeServer) -> None:
    with pytest.raises(
        InputError, match=r"does not support parameters: \['seed'\].* Remove it from the backend"
    ):
        await ask(backend(f"{fake.url}/v1", "sambanova/m", seed=3))
    assert not fake.seen


async def test_a_call_can_be_cancelled(fake: FakeServer) -> None:
    fake.says(Answer(act="hang"))
    it = backend(f"{fake.url}/v1")
    call = asyncio.create_task(it.complete(request()))
    await fake.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    fake.says(answer(CHAT))
    assert (await ask(it)).text == "hi"


async def test_half_of_a_character_is_a_bad_request(fake: FakeServer) -> None:
    caught = await failure(backend(f"{fake.url}/v1"))
    assert caught.kind is FailureKind.BAD_RESPONSE
    it = backend(f"{fake.url}/v1")
    with pytest.raises(CallError, match="half of a character"):
        await it.complete(Request(Address(0, 0), (Message("user", "\ud800"),), seed=1))
    await it.aclose()


def test_each_loop_has_its_own_backend_and_leaves_nothing_open(caplog: pytest.LogCaptureFixture) -> None:
    """`edgen.env` and notebooks use one loop after the other, in a thread that has no other."""
    from tests.providers.fakes import serving

    async def once() -> str:
        async with serving() as fake:
            fake.says(answer(CHAT))
            return (await ask(backend(f"{fake.url}/v1"))).text

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [asyncio.run(once()) for _ in range(2)] == ["hi", "hi"]
        gc.collect()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


# --- log probabilities ---------------------------------------------------------------------------


async def test_log_probabilities_are_asked_for_and_read_in_openais_form(fake: FakeServer) -> None:
    likely = [{"token": "1", "bytes": [49], "logprob": -0.2}, {"token": "2", "bytes": [50], "logprob": -1.75}]
    told = {"content": [likely[0] | {"top_logprobs": likely}]}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "1"},
        "finish_reason": "stop",
        "logprobs": told,
    }
    fake.says(answer(CHAT | {"choices": [choice]}))
    it = backend(f"{fake.url}/v1")
    asked = msgspec.structs.replace(request("hello"), logprobs=2)
    try:
        reply = await it.complete(asked)
        plain = await it.complete(request("hello"))
    finally:
        await it.aclose()
    with_them, without = (seen.json for seen in fake.seen)
    assert with_them == without | {"logprobs": True, "top_logprobs": 2}
    assert reply.tokens == (Token("1", -0.2, (("1", -0.2), ("2", -1.75))),)
    assert plain.tokens == reply.tokens, "whoever asked, what is told is read"


def test_who_tells_none_is_known_to_litellm() -> None:
    def wrong(model: str, **options: Any) -> str | None:
        config = LitellmConfig(model=model, api_key_env="MY_KEY", options=options)
        return find_features(config).logprobs_problem(config)

    assert wrong("openai/gpt-4.1") is None
    assert "litellm asks no service for anthropic/claude-sonnet-4-5 for them" in str(
        wrong("anthropic/claude-sonnet-4-5")
    )
    assert "its options set top_logprobs, too" in str(wrong("openai/gpt-4.1", top_logprobs=3))
