"""The openai adapter with a scripted server: requests, answers, failures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.config import Price
from edgen.core.errors import CallError, FailureKind, InputError, ProviderError
from edgen.core.values import Reply, Usage
from edgen.providers import make
from edgen.providers.failures import ErrorBody
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai.online import classify, find_room_field, read_reply
from tests.providers.fakes import TRUSTING, Answer, FakeServer, answer, request

KEY = "sk-0123456789abcdef"
COMPLETION = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m-2026-01-01",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}


def backend(fake: FakeServer, *, key: str = KEY, timeout: float = 60.0, **settings: Any) -> Any:
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1", **settings)
    return make(config, timeout=timeout, connections=4, environ={"OPENAI_API_KEY": key, **TRUSTING})


async def ask(it: Any, *texts: str, **more: Any) -> Reply:
    try:
        reply: Reply = await it.complete(request(*texts, **more))
    finally:
        await it.aclose()
    return reply


def choice(message: dict[str, Any], finish_reason: str | None = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish_reason}]}


# --- requests ------------------------------------------------------------------------------------


async def test_the_least_that_is_sent(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    await ask(backend(fake), "hello")
    (seen,) = fake.seen
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.json == {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["content-type"] == "application/json"


async def test_every_setting_is_sent(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    settings: dict[str, Any] = {
        "temperature": 0.9,
        "top_p": 0.5,
        "max_tokens": 100,
        "retry_max_tokens": 300,
        "stop": ("END", "\n\n"),
        "seed": "auto",
        "frequency_penalty": 0.0,
        "presence_penalty": -1.5,
        "extra_body": {"top_k": 5, "temperature": 0.1, "chat_template_kwargs": {"enable_thinking": False}},
    }
    await ask(backend(fake, **settings), "hello", "hi", "bye", system="be kind", seed=41, scale=3)
    assert fake.seen[0].json == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hi"},
            {"role": "user", "content": "bye"},
        ],
        "temperature": 0.1,
        "top_p": 0.5,
        "max_tokens": 300,
        "stop": ["END", "\n\n"],
        "frequency_penalty": 0.0,
        "presence_penalty": -1.5,
        "top_k": 5,
        "chat_template_kwargs": {"enable_thinking": False},
        "seed": 41,
    }


@pytest.mark.parametrize(
    ("seed", "extra", "sent"),
    [(None, {}, None), ("auto", {}, 7), (5, {}, 5), ("auto", {"seed": 9}, 9), (5, {"seed": 9}, 9)],
)
async def test_seeds(fake: FakeServer, seed: Any, extra: dict[str, Any], sent: int | None) -> None:
    fake.says(answer(COMPLETION))
    await ask(backend(fake, seed=seed, extra_body=extra))
    assert fake.seen[0].json.get("seed") == sent


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://eu.api.openai.com/v1", "max_completion_tokens"),
        ("https://api.openai.com.example.org/v1", "max_tokens"),
        ("http://localhost:8000/v1", "max_tokens"),
    ],
)
def test_openai_itself_takes_another_name_for_max_tokens(url: str, name: str) -> None:
    assert find_room_field(OpenAIConfig(model="m", base_url=url)) == name


async def test_extra_body_can_rename_the_model_on_the_wire(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    await ask(backend(fake, extra_body={"model": "other"}))
    assert fake.seen[0].json["model"] == "other"


@pytest.mark.parametrize(
    ("extra", "said"),
    [({"messages": [1]}, "messages"), ({"stream": True}, "stream"), ({"x": {1, 2j}}, "JSON")],
)
def test_an_extra_body_that_cannot_be_sent_is_refused(extra: dict[str, Any], said: str) -> None:
    config = OpenAIConfig(model="m", base_url="http://localhost/v1", extra_body=extra)
    with pytest.raises(InputError, match=said):
        make(config, timeout=1, connections=1, environ={})


@given(st.text(), st.integers(0, 2**31 - 1))
def test_any_prompt_is_written_as_json(text: str, seed: int) -> None:
    config = OpenAIConfig(model='a "model"', base_url="http://localhost/v1", seed="auto", max_tokens=1)
    it = make(config, timeout=1, connections=1, environ={})
    body = json.loads(it.body(request(text, seed=seed)))  # type: ignore[attr-defined]
    assert body == {
        "model": 'a "model"',
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 1,
        "seed": seed,
    }


async def test_half_a_character_in_a_prompt_fails_that_call_alone(fake: FakeServer) -> None:
    with pytest.raises(CallError) as caught:
        await ask(backend(fake), "\ud800")
    assert caught.value.kind is FailureKind.BAD_REQUEST
    assert not fake.seen


# --- keys ----------------------------------------------------------------------------------------


async def test_a_local_server_needs_no_key(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    await ask(backend(fake, key=""))
    assert "authorization" not in fake.seen[0].headers


def test_a_public_server_without_a_key_is_refused_with_what_to_do() -> None:
    config = OpenAIConfig(model="m", api_key_env="MY_KEY")
    with pytest.raises(
        ProviderError, match=r"api\.openai\.com needs an API key, and MY_KEY is not set: export"
    ):
        make(config, timeout=1, connections=1, environ={"OPENAI_API_KEY": KEY})


def test_the_identity_is_what_shapes_answers() -> None:
    config = OpenAIConfig(
        model="m",
        base_url="http://localhost:8000/v1/",
        temperature=0.0,
        price=Price(prompt=1, completion=2),
        extra_body={"top_k": 5},
    )
    it = make(config, timeout=1, connections=1, environ={"OPENAI_API_KEY": KEY})
    assert it.identity == {
        "type": "openai",
        "base_url": "http://localhost:8000/v1",
        "model": "m",
        "temperature": 0.0,
        "extra_body": {"top_k": 5},
    }
    assert json.loads(json.dumps(it.identity)) == it.identity
    assert it.model == "m"


# --- answers -------------------------------------------------------------------------------------


async def test_a_reply(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    assert await ask(backend(fake)) == Reply("hi", "stop", None, Usage(3, 4), "m-2026-01-01")


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (choice({"content": "a"}, "length"), Reply("a", "length")),
        (choice({"content": "a"}, "content_filter"), Reply("a", "content_filter")),
        (choice({"content": None, "tool_calls": []}, "tool_calls"), Reply("", "other")),
        (choice({"content": "a"}, "function_call"), Reply("a", "other")),
        (choice({"content": "a"}, "eos_token"), Reply("a", "stop")),
        (choice({"content": "a"}, "max_tokens"), Reply("a", "length")),
        (choice({"content": "a"}, "MAX_TOKENS"), Reply("a", "length")),
        (choice({"content": "a"}, "model_length"), Reply("a", "length")),
        (choice({"content": "a"}, None), Reply("a", "stop")),
        (choice({}), Reply("")),
        (choice({"content": "", "refusal": "I cannot."}), Reply("", refusal="I cannot.")),
        (choice({"content": "a", "reasoning_content": "secret thoughts", "reasoning": "more"}), Reply("a")),
        (
            choice(
                {
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                        {"type": "text", "text": "a"},
                        {"type": "text", "text": "b"},
                        {"type": "image_url", "image_url": {}},
                    ]
                }
            ),
            Reply("ab"),
        ),
        (choice({"content": "a"}) | {"usage": None, "model": None}, Reply("a")),
        (choice({"content": "a"}) | {"usage": {}}, Reply("a")),
        (
            choice({"content": "a"}) | {"usage": {"prompt_tokens": "3", "completion_tokens": 4.0}},
            Reply("a", usage=Usage(3, 4)),
        ),
        (choice({"content": "a"}) | {"error": None}, Reply("a")),
        (choice({"content": "half \ud83d"}) | {"model": "m\ud83d"}, Reply("half �", model="m�")),
        (choice({"content": None, "refusal": "no\ud83d"}), Reply("", refusal="no�")),
        ({"choices": []}, None),
        ({"choices": None}, None),
        ({"choices": [{"finish_reason": "stop"}]}, None),
        ({"choices": [{"message": None}]}, None),
        (choice({"content": 5}), None),
        (choice({"content": "half"}, "error"), None),
        ({"message": {"content": "not this format"}}, None),
        ([], None),
        (None, None),
    ],
)
def test_replies_of_every_shape(body: Any, reply: Reply | None) -> None:
    assert read_reply(json.dumps(body).encode()) == reply


def test_a_reply_with_raw_control_characters_is_read() -> None:
    assert read_reply(b'{"choices":[{"message":{"content":"a\nb\x1b"}}]}') == Reply("a\nb\x1b")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_comes_through_but_for_lone_surrogates(text: str) -> None:
    reply = read_reply(json.dumps(choice({"content": text})).encode())
    assert reply is not None
    assert reply.text == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@given(st.binary(max_size=300))
def test_no_body_makes_the_reader_raise(body: bytes) -> None:
    read_reply(body)
    assert read_reply(b'{"choices":[{"message":{"content":"' + b"[" * 5000 + body) is None


# --- failures ------------------------------------------------------------------------------------

E = ErrorBody
KINDS = [
    (401, E("Incorrect API key provided", code="invalid_api_key"), FailureKind.AUTHENTICATION),
    (400, E("Incorrect API key provided", code="invalid_api_key"), FailureKind.AUTHENTICATION),
    (401, E("Invalid API Key", type="authentication_error"), FailureKind.AUTHENTICATION),
    (403, E("Country not supported", code="unsupported_country_region_territory"), FailureKind.PERMISSION),
    (404, E("The model `m` does not exist", code="model_not_found"), FailureKind.NOT_FOUND),
    (400, E("no such model", code="model_not_found"), FailureKind.NOT_FOUND),
    (404, E("model 'm' not found", type="api_error"), FailureKind.NOT_FOUND),
    (429, E("Rate limit reached for m", type="tokens", code="rate_limit_exceeded"), FailureKind.RATE_LIMIT),
    (429, E("You exceeded your current quota", type="insufficient_quota"), FailureKind.QUOTA),
    (429, E("You exceeded your current quota", code="insufficient_quota"), FailureKind.QUOTA),
    # Google uses the same words for a quota per minute.
    (429, E("You exceeded your current quota", status="RESOURCE_EXHAUSTED"), FailureKind.RATE_LIMIT),
    (429, E("Billing hard limit", code="billing_hard_limit_reached"), FailureKind.QUOTA),
    (402, E("Insufficient Balance"), FailureKind.QUOTA),
    (429, E("Request too large for m on tokens per min (TPM)", type="tokens"), FailureKind.BAD_REQUEST),
    (400, E("too many tokens", code="context_length_exceeded"), FailureKind.CONTEXT_OVERFLOW),
    (400, E("This model's maximum context length is 8192 tokens."), FailureKind.CONTEXT_OVERFLOW),
    (
        400,
        E("The decoder prompt (length 9) is longer than the maximum model length of 8."),
        FailureKind.CONTEXT_OVERFLOW,
    ),
    (400, E("max_tokens must be at least 1, got -186.", code="400"), FailureKind.CONTEXT_OVERFLOW),
    (500, E("the request exceeds the available context size"), FailureKind.CONTEXT_OVERFLOW),
    (400, E("x", type="exceed_context_size_error"), FailureKind.CONTEXT_OVERFLOW),
    (400, E("The input is longer than the model's context length (8 tokens)."), FailureKind.CONTEXT_OVERFLOW),
    (400, E("Unsupported parameter", type="invalid_request_error"), FailureKind.BAD_REQUEST),
    (422, E("field required"), FailureKind.BAD_REQUEST),
    (413, E("too large"), FailureKind.BAD_REQUEST),
    (503, E("Loading model", type="unavailable_error"), FailureKind.OVERLOADED),
    (529, E("overloaded"), FailureKind.OVERLOADED),
    (500, E("The server had an error"), FailureKind.SERVER_ERROR),
    (500, E("Failed to parse input at pos 0: <|channel|>", code="500"), FailureKind.BAD_OUTPUT),
    (
        500,
        E("The model produced output that does not match the expected peg-native format"),
        FailureKind.BAD_OUTPUT,
    ),
    (500, E("error parsing tool call: raw='x', err=invalid", type="api_error"), FailureKind.BAD_OUTPUT),
    (400, E("Failed to parse input at pos 3: the request's own grammar"), FailureKind.BAD_REQUEST),
    (502, E("Bad Gateway"), FailureKind.SERVER_ERROR),
    (409, E("conflict"), FailureKind.SERVER_ERROR),
    (408, E("timeout"), FailureKind.TIMEOUT),
    (504, E("gateway timeout"), FailureKind.TIMEOUT),
]


@pytest.mark.parametrize(("status", "error", "kind"), KINDS)
def test_errors_have_their_kind(status: int, error: ErrorBody, kind: FailureKind) -> None:
    assert classify(status, error) is kind


def test_the_table_meets_every_kind_that_an_answer_can_have() -> None:
    without_an_answer = {FailureKind.CONNECTION, FailureKind.BAD_RESPONSE, FailureKind.LEFT}
    assert {kind for *_, kind in KINDS} == set(FailureKind) - without_an_answer


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        (answer({"error": {"message": f"no {KEY}"}}, 401), FailureKind.AUTHENTICATION, "no [key]"),
        (answer({"error": {"message": "slow", "code": 429}}), FailureKind.RATE_LIMIT, "slow"),
        (answer({"error": {"message": "no", "code": "insufficient_quota"}}), FailureKind.QUOTA, "no"),
        (Answer(b"<html><h1>502 Bad Gateway</h1>", 502), FailureKind.SERVER_ERROR, "502 Bad Gateway"),
        (Answer(b"<html>Log in</html>"), FailureKind.BAD_RESPONSE, "the answer is not a valid reply: Log in"),
        (
            Answer(b'{"choices": ['),
            FailureKind.BAD_RESPONSE,
            'the answer is not a valid reply: {"choices": [',
        ),
        (Answer(b""), FailureKind.BAD_RESPONSE, "nothing at all"),
        (answer({"choices": []}), FailureKind.BAD_RESPONSE, '{"choices": []}'),
        (
            Answer(b'{"choices":[{"message":{"content":"\xff"}}]}'),
            FailureKind.BAD_RESPONSE,
            "the answer is not a valid reply",
        ),
        (Answer(act="hang"), FailureKind.TIMEOUT, "gave no complete answer"),
        (Answer(b'{"cho', act="cut"), FailureKind.CONNECTION, "in the middle of its answer"),
    ],
)
async def test_failures_over_the_wire(fake: FakeServer, script: Answer, kind: FailureKind, said: str) -> None:
    fake.says(script)
    with pytest.raises(CallError) as caught:
        await ask(backend(fake, timeout=1.0 if script.act == "hang" else 60))
    assert caught.value.kind is kind
    assert said in caught.value.message
    assert KEY not in repr(caught.value)
    assert len(fake.seen) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choices": [{"message": {"content": "hi"}, "finish_reason": "tired"}]}, "does not know (tired)"),
        ({"usage": {}}, "reports no token counts; under a budget"),
        ({"usage": {"prompt_tokens": 3}}, "reports no token counts; under a budget"),
        ({"choices": [{"message": {"content": "hi"}, "finish_reason": "tool_calls"}]}, None),
        ({"usage": None}, None),
    ],
)
async def test_what_is_odd_about_answers_is_said_once_and_the_answers_are_kept(
    fake: FakeServer, caplog: pytest.LogCaptureFixture, change: dict[str, Any], said: str | None
) -> None:
    fake.says(answer(COMPLETION | change))
    it = backend(fake)
    texts = [(await it.complete(request())).text for _ in range(3)]
    await it.aclose()
    assert texts == ["hi"] * 3
    assert len(caplog.messages) == (said is not None)
    assert said is None or said in caplog.text


# --- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "names"),
    [
        (answer({"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b"}]}), ["a", "b"]),
        (answer({"data": []}), []),
        (answer({"detail": "Not Found"}, 404), None),
        (answer(["other"]), None),
    ],
)
async def test_models(fake: FakeServer, script: Answer, names: list[str] | None) -> None:
    fake.says(script)
    it = backend(fake)
    assert await it.models() == names
    await it.aclose()
    assert (fake.seen[0].method, fake.seen[0].path) == ("GET", "/v1/models")


async def test_models_with_a_wrong_key(fake: FakeServer) -> None:
    fake.says(answer({"error": {"message": "no"}}, 401))
    it = backend(fake)
    with pytest.raises(CallError, match="authentication"):
        await it.models()
    await it.aclose()
