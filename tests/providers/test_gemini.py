"""The gemini adapter with a scripted server: requests, answers, failures."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import CallError, FailureKind, InputError, ProviderError
from edgen.core.values import Reply, Usage
from edgen.providers import make
from edgen.providers.failures import ErrorBody
from edgen.providers.gemini import PROVIDER
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.gemini.online import classify, make_model_path, read_reply
from tests.providers.fakes import TRUSTING, Answer, FakeServer, answer, request

KEY = "AIza0123456789abcdef"
RPC = "type.googleapis.com/google.rpc."


def candidate(*texts: str, reason: str | None = "STOP", **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text} for text in texts]}
    return {"candidates": [{"content": content, "finishReason": reason, "index": 0, **more}]}


ANSWER = candidate("hi") | {
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
    "modelVersion": "m-001",
}


def backend(fake: FakeServer, *, timeout: float = 60.0, **settings: Any) -> Any:
    config = GeminiConfig(**{"model": "m", "base_url": fake.url, **settings})
    return make(config, timeout=timeout, connections=4, environ={"GEMINI_API_KEY": KEY, **TRUSTING})


def local(**settings: Any) -> Any:
    config = GeminiConfig(model="m", base_url="http://localhost", **settings)
    return make(config, timeout=1, connections=1, environ={})


async def ask(it: Any, *texts: str, **more: Any) -> Reply:
    try:
        reply: Reply = await it.complete(request(*texts, **more))
    finally:
        await it.aclose()
    return reply


# --- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gemini-3-pro-preview", "low", {"thinkingLevel": "LOW"}),
        ("gemini-3-flash", "minimal", {"thinkingLevel": "MINIMAL"}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("models/gemini-2.5-pro", "high", {"thinkingBudget": 24576}),
    ],
)
def test_effort_and_tier_are_sent_in_gemini_s_own_way(model: str, effort: Any, sent: dict[str, Any]) -> None:
    config = GeminiConfig(model=model, reasoning_effort=effort, service_tier="flex", seed="auto")
    assert not PROVIDER.problems(config)
    it: Any = make(config, timeout=1, connections=1, environ={"GEMINI_API_KEY": KEY})
    body = json.loads(it.body(request(seed=5)))
    assert body["generationConfig"] == {"thinkingConfig": sent, "seed": 5}
    assert body["serviceTier"] == "flex"
    assert "service_tier" not in it.identity


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"model": "gemini-3-pro", "reasoning_effort": "none"},
            "gemini-3-pro has minimal, low, medium, high, xhigh",
        ),
        (
            {"model": "gemini-2.5-pro", "reasoning_effort": "max"},
            "gemini-2.5-pro has none, minimal, low, medium, high",
        ),
        ({"model": "gemini-3-pro", "service_tier": "scale"}, "the Gemini API has standard, flex, priority"),
    ],
)
def test_what_gemini_cannot_be_told_is_a_sentence(settings: dict[str, Any], said: str) -> None:
    (problem,) = PROVIDER.problems(GeminiConfig(**settings))
    assert problem.path in settings
    assert problem.message == said


async def test_the_least_that_is_sent(fake: FakeServer) -> None:
    fake.says(answer(ANSWER))
    await ask(backend(fake), "hello")
    (seen,) = fake.seen
    assert (seen.method, seen.path) == ("POST", "/v1beta/models/m:generateContent")
    assert seen.json == {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    assert seen.headers["x-goog-api-key"] == KEY
    assert "authorization" not in seen.headers


async def test_every_setting_is_sent(fake: FakeServer) -> None:
    fake.says(answer(ANSWER))
    settings: dict[str, Any] = {
        "temperature": 0.9,
        "top_p": 0.5,
        "top_k": 40,
        "max_tokens": 100,
        "retry_max_tokens": 300,
        "stop": ("END",),
        "seed": "auto",
        "safety_settings": {"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
        "extra_body": {
            "generationConfig": {"topK": 1, "thinkingConfig": {"thinkingBudget": 0}},
            "cachedContent": "cachedContents/1",
        },
    }
    await ask(backend(fake, **settings), "hello", "hi", "bye", system="be kind", seed=41, scale=3)
    assert fake.seen[0].json == {
        "contents": [
            {"role": "user", "parts": [{"text": "hello"}]},
            {"role": "model", "parts": [{"text": "hi"}]},
            {"role": "user", "parts": [{"text": "bye"}]},
        ],
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "generationConfig": {
            "temperature": 0.9,
            "topP": 0.5,
            "topK": 1,
            "maxOutputTokens": 300,
            "stopSequences": ["END"],
            "thinkingConfig": {"thinkingBudget": 0},
            "seed": 41,
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "cachedContent": "cachedContents/1",
    }


@pytest.mark.parametrize(
    ("seed", "extra", "sent"),
    [
        (None, {}, {}),
        ("auto", {}, {"generationConfig": {"seed": 7}}),
        ("auto", {"labels": {}}, {"labels": {}, "generationConfig": {"seed": 7}}),
        (5, {}, {"generationConfig": {"seed": 5}}),
        ("auto", {"generationConfig": {"seed": 9}}, {"generationConfig": {"seed": 9}}),
        (5, {"generationConfig": {"seed": 9}}, {"generationConfig": {"seed": 9}}),
    ],
)
async def test_seeds(fake: FakeServer, seed: Any, extra: dict[str, Any], sent: dict[str, Any]) -> None:
    fake.says(answer(ANSWER))
    await ask(backend(fake, seed=seed, extra_body=extra), "hello")
    body = fake.seen[0].json
    assert body.pop("contents")
    assert body == sent


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("tunedModels/mine-1", "tunedModels/mine-1"),
    ],
)
def test_model_names(model: str, path: str) -> None:
    assert make_model_path(model) == path


@pytest.mark.parametrize("model", ["", "../x", "a?key=b", "a b", "a//b", "/a", "a:generateContent"])
def test_a_name_that_would_change_the_address_is_refused(model: str) -> None:
    with pytest.raises(InputError, match="not the name of a Gemini model"):
        make_model_path(model)


@pytest.mark.parametrize(
    ("extra", "said"),
    [({"contents": [1]}, "contents"), ({"generationConfig": [1]}, "mapping"), ({"x": {1, 2j}}, "JSON")],
)
def test_an_extra_body_that_cannot_be_sent_is_refused(extra: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        local(extra_body=extra)


@given(st.text(), st.text(), st.integers(0, 2**31 - 1))
def test_any_prompt_is_written_as_json(text: str, system: str, seed: int) -> None:
    body = json.loads(local(seed="auto").body(request(text, system=system, seed=seed)))
    assert body == {
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "systemInstruction": {"parts": [{"text": system}]},
        "generationConfig": {"seed": seed},
    }


async def test_half_a_character_in_a_prompt_fails_that_call_alone(fake: FakeServer) -> None:
    with pytest.raises(CallError) as caught:
        await ask(backend(fake), "\ud800")
    assert caught.value.kind is FailureKind.BAD_REQUEST
    assert not fake.seen


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "environ", "sent"),
    [
        (None, {"GOOGLE_API_KEY": "google-key", "GEMINI_API_KEY": "gemini-key"}, "google-key"),
        (None, {"GOOGLE_API_KEY": "", "GEMINI_API_KEY": "gemini-key"}, "gemini-key"),
        ("MINE", {"GOOGLE_API_KEY": "google-key", "MINE": "my-own-key"}, "my-own-key"),
        ("MINE", {"GOOGLE_API_KEY": "google-key"}, None),
        (None, {}, None),
    ],
)
async def test_which_key_is_sent(
    fake: FakeServer,
    caplog: pytest.LogCaptureFixture,
    named: str | None,
    environ: dict[str, str],
    sent: str | None,
) -> None:
    fake.says(answer(ANSWER))
    config = GeminiConfig(model="m", base_url=fake.url, api_key_env=named)
    with caplog.at_level(logging.WARNING, "edgen"):
        await ask(make(config, timeout=60, connections=1, environ={**environ, **TRUSTING}))
    assert fake.seen[0].headers.get("x-goog-api-key") == sent
    assert ("both set" in caplog.text) == (named is None and all(environ.values()) and len(environ) == 2)


def test_the_service_without_a_key_is_refused() -> None:
    with pytest.raises(ProviderError, match="GOOGLE_API_KEY and GEMINI_API_KEY are not set: export"):
        make(GeminiConfig(model="m"), timeout=1, connections=1, environ={"OPENAI_API_KEY": "x"})


def test_the_identity_is_what_shapes_answers() -> None:
    config = GeminiConfig(model="m", base_url="http://localhost:8000/", top_k=3, api_key_env="MINE")
    it = make(config, timeout=1, connections=1, environ={"MINE": KEY})
    assert it.identity == {"type": "gemini", "base_url": "http://localhost:8000", "model": "m", "top_k": 3}
    assert it.model == "m"


# --- answers -------------------------------------------------------------------------------------


async def test_a_reply(fake: FakeServer) -> None:
    fake.says(answer(ANSWER))
    assert await ask(backend(fake)) == Reply("hi", "stop", None, Usage(3, 4), "m-001")


THOUGHT = {
    "candidates": [
        {"content": {"parts": [{"text": "hm", "thought": True}, {"text": "a"}, {"inlineData": {}}]}}
    ]
}


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (candidate("a", "b"), Reply("ab")),
        (candidate("a", reason=None), Reply("a")),
        (candidate("a", reason="MAX_TOKENS"), Reply("a", "length")),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, Reply("", "length")),
        ({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}, Reply("")),
        (THOUGHT, Reply("a")),
        *[
            (candidate("a", reason=reason), Reply("a", "content_filter", reason))
            for reason in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")
        ],
        *[
            (candidate(reason=reason), Reply("", "other"))
            for reason in ("OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "SOMETHING_NEW")
        ],
        (
            candidate(reason="SAFETY", finishMessage="harmful"),
            Reply("", "content_filter", "SAFETY: harmful"),
        ),
        (
            {
                "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": {"promptTokenCount": 9},
            },
            Reply("", "content_filter", "PROHIBITED_CONTENT", Usage(9, 0)),
        ),
        (
            candidate("a")
            | {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 5}},
            Reply("a", usage=Usage(3, 9)),
        ),
        (
            candidate("a") | {"usageMetadata": {"candidatesTokenCount": 4, "thoughtsTokenCount": 5}},
            Reply("a"),
        ),
        (candidate("half \ud83d"), Reply("half �")),
        ({}, None),
        ({"candidates": []}, None),
        ({"candidates": [], "promptFeedback": {}}, None),
        ({"candidates": "text"}, None),
        ([], None),
    ],
)
def test_replies_of_every_shape(body: Any, reply: Reply | None) -> None:
    assert read_reply(json.dumps(body).encode()) == reply


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_comes_through_but_for_lone_surrogates(text: str) -> None:
    reply = read_reply(json.dumps(candidate(text)).encode())
    assert reply is not None
    assert reply.text == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- failures ------------------------------------------------------------------------------------


def quota(*ids: str) -> ErrorBody:
    violations = [{"quotaId": name, "quotaMetric": "x"} for name in ids]
    details = (
        {"@type": f"{RPC}QuotaFailure", "violations": violations},
        {"@type": f"{RPC}RetryInfo", "retryDelay": "3s"},
    )
    return ErrorBody("You exceeded your current quota", "429", status="RESOURCE_EXHAUSTED", details=details)


def reason(word: str) -> tuple[dict[str, Any], ...]:
    return ({"@type": f"{RPC}ErrorInfo", "reason": word},)


E = ErrorBody
KINDS = [
    (400, E("API key not valid. Please pass a valid API key."), FailureKind.AUTHENTICATION),
    (400, E("API Key not found. Please pass a valid API key."), FailureKind.AUTHENTICATION),
    (400, E("Renew it", details=reason("API_KEY_INVALID")), FailureKind.AUTHENTICATION),
    (401, E("Request had invalid credentials", status="UNAUTHENTICATED"), FailureKind.AUTHENTICATION),
    (403, E("Method doesn't allow unregistered callers", status="PERMISSION_DENIED"), FailureKind.PERMISSION),
    (400, E("User location is not supported", status="FAILED_PRECONDITION"), FailureKind.PERMISSION),
    (404, E("models/m is not found for API version v1beta", status="NOT_FOUND"), FailureKind.NOT_FOUND),
    (
        400,
        E("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."),
        FailureKind.CONTEXT_OVERFLOW,
    ),
    (400, E("Invalid value at 'generation_config'", status="INVALID_ARGUMENT"), FailureKind.BAD_REQUEST),
    (429, quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), FailureKind.RATE_LIMIT),
    (429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), FailureKind.QUOTA),
    (429, quota("RequestsPerMinute", "GenerateRequestsPerDayPerProject"), FailureKind.QUOTA),
    (429, E("Resource has been exhausted (e.g. check quota)."), FailureKind.RATE_LIMIT),
    (429, E("odd", details=({"violations": 5}, {"violations": [5]})), FailureKind.RATE_LIMIT),
    (429, E("No capacity", details=reason("MODEL_CAPACITY_EXHAUSTED")), FailureKind.OVERLOADED),
    (499, E("cancelled", status="CANCELLED"), FailureKind.CONNECTION),
    (500, E("An internal error has occurred", status="INTERNAL"), FailureKind.SERVER_ERROR),
    (503, E("The model is overloaded", status="UNAVAILABLE"), FailureKind.OVERLOADED),
    (504, E("Deadline expired", status="DEADLINE_EXCEEDED"), FailureKind.TIMEOUT),
]


@pytest.mark.parametrize(("status", "error", "kind"), KINDS)
def test_errors_have_their_kind(status: int, error: ErrorBody, kind: FailureKind) -> None:
    assert classify(status, error) is kind


def test_the_table_meets_every_kind_that_an_answer_can_have() -> None:
    assert {kind for *_, kind in KINDS} == set(FailureKind) - {
        FailureKind.BAD_RESPONSE,
        FailureKind.BAD_OUTPUT,
        FailureKind.LEFT,
    }


LATER = {
    "error": {
        "code": 429,
        "message": "quota",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": f"{RPC}RetryInfo", "retryDelay": "1.5s"}],
    }
}


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        (answer(LATER, 429), FailureKind.RATE_LIMIT, "quota"),
        (answer([LATER], 429), FailureKind.RATE_LIMIT, "quota"),
        (
            answer({"error": {"message": f"API key not valid: {KEY}"}}, 400),
            FailureKind.AUTHENTICATION,
            "[key]",
        ),
        (Answer(b"<html><h1>502 Bad Gateway</h1>", 502), FailureKind.SERVER_ERROR, "502 Bad Gateway"),
        (Answer(b"<html>Log in</html>"), FailureKind.BAD_RESPONSE, "the answer is not a valid reply: Log in"),
        (answer({}), FailureKind.BAD_RESPONSE, "the answer is not a valid reply: {}"),
        (
            Answer(b'{"candidates":[{"content":{"parts":[{"text":"\xff"}]}}]}'),
            FailureKind.BAD_RESPONSE,
            "not a valid reply",
        ),
        (Answer(act="hang"), FailureKind.TIMEOUT, "gave no complete answer"),
        (Answer(b'{"can', act="cut"), FailureKind.CONNECTION, "in the middle of its answer"),
    ],
)
async def test_failures_over_the_wire(fake: FakeServer, script: Answer, kind: FailureKind, said: str) -> None:
    fake.says(script)
    with pytest.raises(CallError) as caught:
        await ask(backend(fake, timeout=1.0 if script.act == "hang" else 60))
    assert caught.value.kind is kind
    assert said in caught.value.message
    assert caught.value.retry_after == (1.5 if kind is FailureKind.RATE_LIMIT else None)
    assert KEY not in repr(caught.value)
    assert len(fake.seen) == 1


# --- models --------------------------------------------------------------------------------------


async def test_models_are_read_page_by_page(fake: FakeServer) -> None:
    fake.says(
        answer(
            {
                "models": [
                    {"name": "models/a", "supportedGenerationMethods": ["generateContent", "countTokens"]},
                    {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
                ],
                "nextPageToken": "p/2",
            }
        ),
        answer({"models": [{"name": "models/b"}]}),
    )
    it = backend(fake)
    assert await it.models() == ["a", "b"]
    await it.aclose()
    assert [seen.path for seen in fake.seen] == [
        "/v1beta/models?pageSize=1000",
        "/v1beta/models?pageSize=1000&pageToken=p/2",
    ]
    assert all(KEY not in seen.path for seen in fake.seen)


async def test_a_list_of_models_without_end_ends(fake: FakeServer) -> None:
    fake.says(answer({"models": [], "nextPageToken": "again"}))
    it = backend(fake)
    assert await it.models() == []
    await it.aclose()
    assert len(fake.seen) == 20
