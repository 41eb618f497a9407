"""The anthropic adapter with a server that accepts only the Messages API."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from edgen.config import load_job
from edgen.core.errors import CallError, FailureKind, InputError, ProviderError
from edgen.core.values import Message, Reply, Usage
from edgen.providers import find_provider, make
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.anthropic.online import classify, read_reply
from edgen.providers.failures import ErrorBody
from edgen.simulator.text import respond
from tests.execution.service import Service, edgen, end, files, job_text, serve, start
from tests.providers.fakes import TRUSTING, FakeServer, answer, request

KEY = "sk-ant-0123456789abcdef"
ANSWER: dict[str, Any] = {
    "id": "msg_01", "type": "message", "role": "assistant", "model": "m-1",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}  # fmt: skip


def backend(url: str, *, environ: dict[str, str] | None = None, **settings: Any) -> Any:
    config = AnthropicConfig(**{"model": "m", "base_url": url, **settings})
    keys = {"ANTHROPIC_API_KEY": KEY} if environ is None else environ
    return make(config, timeout=60, connections=4, environ={**keys, **TRUSTING})


async def ask(it: Any, *texts: str, **more: Any) -> Reply:
    try:
        reply: Reply = await it.complete(request(*texts, **more))
    finally:
        await it.aclose()
    return reply


# --- a server that demands the dialect -----------------------------------------------------------

# The fields of anthropic 2.12's MessageCreateParams with their types, as far as edgen can send them.
FIELDS: dict[str, type | tuple[type, ...]] = {
    "model": str, "max_tokens": int, "messages": list, "system": (str, list), "temperature": (int, float),
    "top_p": (int, float), "top_k": int, "stop_sequences": list, "service_tier": str, "output_config": dict,
    "metadata": dict, "thinking": dict,
}  # fmt: skip


def refusal(status: int, kind: str, message: str) -> web.Response:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_01"}
    return web.json_response(body, status=status)


def wrong_with(body: Any) -> str | None:
    """Return the Messages API's complaint about a body; None if the body is valid."""
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            return f"{name}: Field required"
    for name, value in body.items():
        if name not in FIELDS:
            return f"{name}: Extra inputs are not permitted"
        if not isinstance(value, FIELDS[name]):
            return f"{name}: Input should be valid"
    if not 0 <= body.get("temperature", 1) <= 1:
        return "temperature: range: 0..1"
    for message in body["messages"]:
        if set(message) != {"role", "content"} or message["role"] not in ("user", "assistant"):
            return "messages: Unexpected role"
    if not body["messages"] or body["messages"][0]["role"] != "user":
        return "messages: first message must use the user role"
    return None


async def strict(request: web.BaseRequest) -> web.StreamResponse:
    if request.headers.get("x-api-key") != KEY or "Authorization" in request.headers:
        return refusal(401, "authentication_error", "invalid x-api-key")
    if request.headers.get("anthropic-version") != "2023-06-01":
        return refusal(400, "invalid_request_error", "anthropic-version: header is required")
    if request.query_string and request.path != "/v1/models":
        return refusal(400, "invalid_request_error", "no query is taken")
    if (request.method, request.path) == ("GET", "/v1/models"):
        page = (
            [{"type": "model", "id": "m-1"}]
            if "after_id" in request.query
            else [{"type": "model", "id": "m-0"}]
        )
        return web.json_response({"data": page, "has_more": page[0]["id"] == "m-0", "last_id": page[0]["id"]})
    if (request.method, request.path) != ("POST", "/v1/messages"):
        return refusal(404, "not_found_error", "Not Found")
    if request.headers.get("Content-Type") != "application/json":
        return refusal(400, "invalid_request_error", "application/json is required")
    body = await request.json()
    if (wrong := wrong_with(body)) is not None:
        return refusal(400, "invalid_request_error", wrong)
    return web.json_response(ANSWER | {"content": [{"type": "text", "text": json.dumps(body)}]})


@pytest.fixture
async def service() -> AsyncIterator[str]:
    server = web.Server(strict)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_the_least_that_is_sent(service: str) -> None:
    reply = await ask(backend(service), "hello")
    assert json.loads(reply.text) == {
        "model": "m", "max_tokens": 8192, "messages": [{"role": "user", "content": "hello"}]
    }  # fmt: skip
    assert (reply.finish_reason, reply.usage, reply.model) == ("stop", Usage(3, 4), "m-1")


async def test_every_setting_is_sent(service: str) -> None:
    it = backend(
        service + "/", temperature=0.9, top_p=0.5, top_k=40, max_tokens=100, retry_max_tokens=300, stop=("END",),
        reasoning_effort="low", service_tier="standard_only",
        extra_body={"metadata": {"user_id": "u"}, "output_config": {"format": {"type": "json_schema"}}},
    )  # fmt: skip
    reply = await ask(it, "hello", "hi", "bye", system="be kind", scale=3)
    assert json.loads(reply.text) == {
        "model": "m",
        "max_tokens": 300,
        "temperature": 0.9,
        "top_p": 0.5,
        "top_k": 40,
        "stop_sequences": ["END"],
        "service_tier": "standard_only",
        "system": "be kind",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hi"},
            {"role": "user", "content": "bye"},
        ],
        "output_config": {"effort": "low", "format": {"type": "json_schema"}},
        "metadata": {"user_id": "u"},
    }


async def test_all_pages_of_models_are_read(service: str) -> None:
    it = backend(service)
    assert await it.models() == ["m-0", "m-1"]
    await it.aclose()


async def test_what_the_service_refuses_is_said_in_its_words(service: str) -> None:
    with pytest.raises(CallError, match="frobnicate: Extra inputs are not permitted") as caught:
        await ask(backend(service, extra_body={"frobnicate": 1}), "hello")
    assert caught.value.kind is FailureKind.BAD_REQUEST
    with pytest.raises(CallError) as caught:
        await ask(backend(service, environ={"ANTHROPIC_API_KEY": "sk-ant-of-another"}), "hello")
    assert caught.value.kind is FailureKind.AUTHENTICATION
    assert "sk-ant" not in str(caught.value)


@given(st.text(), st.text())
def test_any_prompt_is_written_as_json(text: str, system: str) -> None:
    body = json.loads(backend("http://localhost").body(request(text, system=system)))
    assert body["messages"] == [{"role": "user", "content": text}]
    assert body.get("system", "") == system


async def test_half_a_character_in_a_prompt_fails_that_call_alone(fake: FakeServer) -> None:
    with pytest.raises(CallError) as caught:
        await ask(backend(fake.url), "\ud800")
    assert caught.value.kind is FailureKind.BAD_REQUEST
    assert not fake.seen


@pytest.mark.parametrize(
    "extra",
    [{"messages": [1]}, {"system": "x"}, {"stream": True}, {"cache_control": {"type": "ephemeral"}},
     {"output_config": [1]}, {"x": {1, 2j}}],
)  # fmt: skip
def test_an_extra_body_that_cannot_be_sent_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"extra_body|JSON"):
        backend("http://localhost", extra_body=extra)


# --- answers -------------------------------------------------------------------------------------


def message(**changes: Any) -> bytes:
    return msgspec.json.encode(ANSWER | changes)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"), ("stop_sequence", "stop"), (None, "stop"), ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"), ("refusal", "content_filter"), ("tool_use", "other"),
        ("pause_turn", "other"), ("a reason of tomorrow", "other"),
    ],
)  # fmt: skip
def test_why_it_stopped(reason: str | None, finish: str) -> None:
    reply = read_reply(message(stop_reason=reason))
    assert reply is not None
    assert reply.finish_reason == finish


@pytest.mark.parametrize(
    ("details", "said"),
    [
        (None, "refusal"),
        ({"type": "refusal", "category": None, "explanation": None}, "refusal"),
        ({"type": "refusal", "category": "bio", "explanation": "No."}, "bio: No."),
    ],
)
def test_a_refusal_is_said(details: Any, said: str) -> None:
    reply = read_reply(message(stop_reason="refusal", stop_details=details, content=[]))
    assert reply is not None
    assert (reply.text, reply.refusal) == ("", said)


def test_thoughts_are_no_part_of_the_text() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "a"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "b", "citations": None},
    ]
    reply = read_reply(message(content=blocks))
    assert reply is not None
    assert reply.text == "ab"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, None),
        ("many", None),
        ({}, None),
        ({"input_tokens": 5}, None),
        ({"output_tokens": 5}, None),
        ({"input_tokens": -1, "output_tokens": 5}, None),
        ({"input_tokens": 5, "output_tokens": 7, "service_tier": "standard"}, Usage(5, 7)),
        ({"input_tokens": 5, "output_tokens": 7, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20}, Usage(35, 7, 20, 10)),
        ({"input_tokens": 0, "output_tokens": 7, "cache_read_input_tokens": 2_000_000}, Usage(2_000_000, 7, 2_000_000)),
        ({"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": "x"}, None),
    ],
)  # fmt: skip
def test_what_it_counted(usage: Any, counted: Usage | None) -> None:
    reply = read_reply(message(usage=usage))
    assert reply is not None
    assert reply.usage == counted


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"content":null}', b"<html>", b'{"content":[1]}'])
def test_what_is_no_message(body: bytes) -> None:
    assert read_reply(body) is None


@pytest.mark.parametrize(
    ("status", "kind", "words", "expected"),
    [
        (400, "invalid_request_error", "max_tokens: Field required", FailureKind.BAD_REQUEST),
        (400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum", FailureKind.CONTEXT_OVERFLOW),
        (400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2", FailureKind.CONTEXT_OVERFLOW),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", FailureKind.QUOTA),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", FailureKind.QUOTA),
        (401, "authentication_error", "invalid x-api-key", FailureKind.AUTHENTICATION),
        (402, "billing_error", "pay", FailureKind.QUOTA),
        (403, "permission_error", "no", FailureKind.PERMISSION),
        (404, "not_found_error", "model: m", FailureKind.NOT_FOUND),
        (413, "request_too_large", "too large", FailureKind.BAD_REQUEST),
        (429, "rate_limit_error", "slow down", FailureKind.RATE_LIMIT),
        (500, "api_error", "oh", FailureKind.SERVER_ERROR),
        (504, "timeout_error", "slow", FailureKind.TIMEOUT),
        (529, "overloaded_error", "Overloaded", FailureKind.OVERLOADED),
        (529, "", "", FailureKind.OVERLOADED),
    ],
)  # fmt: skip
def test_what_went_wrong(status: int, kind: str, words: str, expected: FailureKind) -> None:
    assert classify(status, ErrorBody(words, type=kind)) is expected


async def test_an_overloaded_service_says_when_to_come_back(fake: FakeServer) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    fake.says(answer(error, 529, retry_after="7"))
    with pytest.raises(CallError) as caught:
        await ask(backend(fake.url), "hello")
    assert (caught.value.kind, caught.value.retry_after) == (FailureKind.OVERLOADED, 7.0)


# --- settings of a job ---------------------------------------------------------------------------


def test_the_service_without_a_key_is_refused() -> None:
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY is not set"):
        make(AnthropicConfig(model="m"), timeout=1, connections=1, environ={})


@pytest.mark.parametrize(
    ("setting", "said"), [("seed: auto", "takes no seed"), ("temperature: 1.5", "0 to 1")]
)
def test_what_it_cannot_do_is_said_before_anything_is_asked(tmp_path: Path, setting: str, said: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: t\nspace: education_dialogue\nprompt: education_dialogue\nconversations: 1\n"
        f"backends: {{default: {{type: anthropic, model: m, {setting}}}}}\n"
    )
    with pytest.raises(InputError, match=rf"\$\.backends\.default\.{setting.split(':')[0]}.*{said}"):
        load_job(path)


def test_prices_are_those_of_the_list_at_its_own_host_alone() -> None:
    provider = find_provider(AnthropicConfig(model="m"))
    at_home = provider.list_price(AnthropicConfig(model="claude-haiku-4-5"))
    assert at_home is not None
    assert (at_home.prompt, at_home.completion, at_home.batch) == (1, 5, 0.5)
    assert provider.list_price(AnthropicConfig(model="claude-haiku-4-5", base_url="http://localhost")) is None


class Messages(Service):
    """A server that answers like the simulator, as the Messages API."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.json()
        assert wrong_with(body) is None
        said = [Message(one["role"], one["content"]) for one in body["messages"]]
        seed = zlib.crc32(repr(said).encode())
        self.asked[seed] += 1
        await asyncio.sleep(self.latency)
        content = [{"type": "text", "text": respond(said, seed=seed).text}]
        return web.json_response(ANSWER | {"content": content})


async def test_a_job_that_is_killed_goes_on_and_ends_with_the_same_files(tmp_path: Path) -> None:
    async with serve(Messages(latency=0.05)) as service:
        job, folder = tmp_path / "job.yaml", tmp_path / "run"
        own = {"type": "anthropic", "model": "m", "base_url": service.url.removesuffix("/v1")}
        changes = {"backends": {"default": own}, "limits": {"in_flight": 4}}
        # The service ignores schemas; the number of calls until edgen notices this is random.
        job.write_text(job_text(service.url, conversations=24, forms="prose", **changes))
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert (calm.code, calm.facts["accepted"]) == (0, 24), calm.err
        service.asked.clear()
        process = await start("generate", job, "-o", folder)
        while process.returncode is None and service.asked.total() < 12:
            await asyncio.sleep(0.002)
        process.kill()
        await end(process)
        ended = await edgen("generate", job, "-o", folder, "--json")
        assert ended.code == 0, ended.err
    assert service.asked.total() <= 24 + 4, "no more than what was in flight is asked again"
    assert files(folder) == files(tmp_path / "calm")
