"""The litellm adapter: through the library itself, against servers that each take one dialect and nothing else."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from edgen.config import load_job
from edgen.core.errors import CallError, FailureKind, InputError, JobError, ProviderError
from edgen.core.values import Address, Message, Reply, Request, Token, Usage
from edgen.providers import make, provider_of
from edgen.providers.litellm.config import LitellmConfig
from edgen.providers.litellm.services import SERVICES
from tests import ROOT
from tests.cli.command import Command
from tests.execution.service import end, files, job_text, start
from tests.providers.dialects import COMMON, OLDER, Dialect
from tests.providers.dialects import serving as serving_dialect
from tests.providers.fakes import TRUSTING, Answer, FakeServer, Seen, answer, raw_serving, request


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


KEY = "the-key-of-this-service-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"said": {"type": "string"}},
    "required": ["said"],
    "additionalProperties": False,
}


def backend(url: str | None, model: str = "openai/m", environ: Any = None, **settings: Any) -> Any:
    named = {"api_key_env": "MY_KEY"} if settings.get("auth") != "library" else {}
    config = LitellmConfig(**{"model": model, "base_url": url, **named, **settings})
    return make(
        config, timeout=5, connections=4, environ={"MY_KEY": KEY, **TRUSTING} if environ is None else environ
    )


async def ask(it: Any, *texts: str, schema: Any = None, **more: Any) -> Reply:
    asked = request(*texts, **more)
    if schema is not None:
        asked = msgspec.structs.replace(asked, schema=msgspec.json.encode(schema))
    try:
        reply: Reply = await it.complete(asked)
    finally:
        await it.aclose()
    return reply


async def failure(it: Any, **more: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        await ask(it, **more)
    return caught.value


# --- what is sent and read, in each dialect ------------------------------------------------------

CHAT: Any = {
    "id": "c",
    "object": "chat.completion",
    "model": "m-001",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
MESSAGE: Any = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "m-001",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}
CONTENT: Any = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
    "modelVersion": "m-001",
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
_SAID = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
_BLOCKS = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
# model, path below the address, settings; then what has to arrive: path, header of the key, body; what is answered
DIALECTS: dict[str, Any] = {
    "openai": (
        ("openai/gpt-5-mini", "/v1", {"max_tokens": 50, "reasoning_effort": "low", "verbosity": "low", "service_tier": "flex"}),
        ("/v1/chat/completions", ("authorization", f"Bearer {KEY}"), {
            "model": "gpt-5-mini", "messages": _SAID, "max_completion_tokens": 100, "reasoning_effort": "low", "verbosity": "low",
            "service_tier": "flex", "response_format": FORMAT,
        }),
        CHAT,
    ),
    "openai-compatible": (
        ("hosted_vllm/m", "/v1", {
            "max_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop": ("END",), "seed": "auto", "options": {"top_k": 4},
        }),
        ("/v1/chat/completions", ("authorization", f"Bearer {KEY}"), {
            "model": "m", "messages": _SAID, "max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7,
            "top_k": 4, "response_format": FORMAT,
        }),
        CHAT,
    ),
    "anthropic": (
        ("anthropic/claude-sonnet-4-5", "", {"max_tokens": 50, "temperature": 0.5, "stop": ("END",), "options": {"top_k": 4}}),
        ("/v1/messages", ("x-api-key", KEY), {
            "model": "claude-sonnet-4-5", "messages": _BLOCKS, "system": [{"type": "text", "text": "be kind"}], "max_tokens": 100,
            "temperature": 0.5, "stop_sequences": ["END"], "top_k": 4, "output_format": {"type": "json_schema", "schema": SCHEMA},
        }),
        MESSAGE,
    ),
    "gemini": (
        ("gemini/gemini-2.5-flash", "/v1beta", {"max_tokens": 50, "seed": "auto", "reasoning_effort": "low"}),
        ("/v1beta/models/gemini-2.5-flash:generateContent", ("x-goog-api-key", KEY), {
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "system_instruction": {"parts": [{"text": "be kind"}]},
            "generationConfig": {
                "max_output_tokens": 100, "seed": 7, "response_mime_type": "application/json", "response_json_schema": SCHEMA,
                "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024},
            },
        }),
        CONTENT,
    ),
    "azure": (
        ("azure/DEPLOYMENT", "", {"max_tokens": 50, "temperature": 0.5, "api_version": "2024-10-21"}),
        ("/openai/deployments/DEPLOYMENT/chat/completions?api-version=2024-10-21", ("api-key", KEY), {
            "model": "DEPLOYMENT", "messages": _SAID, "max_tokens": 100, "temperature": 0.5, "response_format": FORMAT,
        }),
        CHAT,
    ),
}  # fmt: skip


def keys_of(seen: Seen) -> dict[str, str]:
    """The headers of a request that hold the key."""
    return {name: value for name, value in seen.headers.items() if KEY in value}


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


# --- what comes back -----------------------------------------------------------------------------


def chat(**choice: Any) -> Any:
    return CHAT | {"choices": [CHAT["choices"][0] | choice]}


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


# --- what goes wrong -----------------------------------------------------------------------------

_OPENAI = ("openai/m", "/v1")
_CLAUDE = ("anthropic/claude-sonnet-4-5", "")
_GEMINI = ("gemini/gemini-2.5-flash", "/v1beta")


def worded(message: str, **more: Any) -> Any:
    return {"error": {"message": message, "type": "t", "param": None, "code": None, **more}}


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
    patience = 0.3 if said.act == "hang" else 20
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
    """As `edgen.env` and notebooks use them: one loop after the other, in a thread that has no other."""
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


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_without_consent_no_key_goes_anywhere(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    """Not the job's, and none that litellm would find in the environment."""
    (model, below, settings), _, answered = DIALECTS[dialect]
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "AZURE", "AZURE_OPENAI", "HOSTED_VLLM"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    fake.says(answer(answered))
    await ask(backend(fake.url + below, model, {"MY_KEY": KEY}, **settings))
    (seen,) = fake.seen
    assert not keys_of(seen)
    assert not {"authorization", "x-api-key", "api-key", "x-goog-api-key"} & set(seen.headers)


async def test_a_key_that_the_environment_brings_is_not_sent(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"x-other-key: {KEY}")
    it = backend(f"{fake.url}/v1", "openai/m", options={"extra_headers": {"x-team-token": "of-another"}})
    caught = await failure(it)
    assert (caught.kind, caught.unsent) == (FailureKind.PERMISSION, True)
    assert "litellm brings a key of its own in the header x-team-token" in caught.message
    assert not fake.seen


async def test_an_address_of_the_environment_is_not_called(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """litellm reads GROQ_API_BASE; edgen's consent was to Groq's own host."""
    monkeypatch.setenv("GROQ_API_BASE", f"{fake.url}/v1")
    caught = await failure(backend(None, "groq/m", {"GROQ_API_KEY": KEY}, api_key_env=None))
    assert (caught.kind, caught.unsent) == (FailureKind.PERMISSION, True)
    assert "litellm calls 127.0.0.1, and not api.groq.com" in caught.message
    assert not fake.seen


def test_a_key_goes_to_its_own_service_alone() -> None:
    with pytest.raises(InputError, match=r"--trust-host models\.example\.org=OPENAI_API_KEY"):
        backend("https://models.example.org/v1", "openai/m", {"OPENAI_API_KEY": KEY}, api_key_env=None)
    with pytest.raises(InputError, match=r"--trust-host api\.groq\.com=OPENAI_API_KEY"):
        backend(None, "groq/m", {"OPENAI_API_KEY": KEY}, api_key_env="OPENAI_API_KEY")
    with pytest.raises(ProviderError, match="GROQ_API_KEY is not set"):
        backend(None, "groq/m", {}, api_key_env=None)


async def test_a_library_that_finds_out_who_calls_needs_consent(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", KEY)
    fake.says(answer(worded(f"you sent {KEY}"), 401))
    hint = "127.0.0.1=LITELLM_AUTH"
    caught = await failure(backend(f"{fake.url}/v1", "hosted_vllm/m", {}, auth="library"))
    assert hint in caught.message
    assert not keys_of(fake.seen[-1])
    it = backend(f"{fake.url}/v1", "hosted_vllm/m", {"EDGEN_TRUSTED_HOSTS": hint}, auth="library")
    caught = await failure(it)
    assert keys_of(fake.seen[-1]) == {"authorization": f"Bearer {KEY}"}
    assert KEY not in f"{caught!r} {caught}"
    with pytest.raises(InputError, match=r"--trust-host bedrock\.example\.org=LITELLM_AUTH"):
        backend("https://bedrock.example.org", "bedrock/m", {}, auth="library")


async def test_amazons_keys_sign_where_that_was_consented_to(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, session = "secret-of-amazon-0123456789", "session-of-amazon-0123456789"
    named = {"ACCESS_KEY_ID": "AKIA0123456789", "SECRET_ACCESS_KEY": secret, "SESSION_TOKEN": session}
    for name, value in {**named, "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    said = {"output": {"message": {"role": "assistant", "content": [{"text": f"hi {session}"}]}}}
    counts = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
    fake.says(answer({**said, "stopReason": "end_turn", "usage": counts}))
    asked: Any = {
        "model": "bedrock/converse/m",
        "auth": "library",
        "options": {"aws_region_name": "us-west-2"},
    }
    reply = await ask(backend(fake.url, environ={"EDGEN_TRUSTED_HOSTS": "127.0.0.1=LITELLM_AUTH"}, **asked))
    assert (reply.text, reply.usage) == ("hi [key]", Usage(3, 4))
    (seen,) = fake.seen
    assert seen.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIA0123456789/")
    assert seen.headers["x-amz-security-token"] == session
    assert secret not in str(seen)
    fake.seen.clear()
    await ask(backend(fake.url, environ={}, **asked))
    assert not {"authorization", "x-amz-security-token"} & set(fake.seen[0].headers)


@pytest.mark.parametrize("service", SERVICES)
async def test_the_hosts_that_edgen_knows_are_those_that_litellm_calls(service: str) -> None:
    """By the proxy that every call over https asks for its way."""
    variable, host = SERVICES[service].variables[0], SERVICES[service].address.removeprefix("https://")
    async with raw_serving(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as proxy:
        environ = {variable: KEY, "HTTPS_PROXY": proxy.url}
        caught = await failure(backend(None, f"{service}/m", environ, api_key_env=None))
    assert caught.kind is FailureKind.CONNECTION
    assert f"the proxy refused the way to {host}:443" in caught.message
    assert proxy.received.startswith(f"CONNECT {host}:443 ".encode())
    assert KEY.encode() not in proxy.received


# --- whole runs ----------------------------------------------------------------------------------

_SERVICE = Dialect(path="/v1/chat/completions", model="m", fields=COMMON | {OLDER, "seed"})


@pytest.fixture
def run_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1=MY_KEY")

    def write(url: str, **changes: Any) -> Path:
        settings = {"base_url": f"{url}/v1", "api_key_env": "MY_KEY", "max_tokens": 2000, "seed": "auto"}
        default = {"type": "litellm", "model": "hosted_vllm/m", **settings, **changes.pop("backend", {})}
        path = tmp_path / "job.yaml"
        path.write_text(job_text("", backends={"default": default}, **changes))
        return path

    return write


async def kill_after(answers: int, server: Any, *arguments: str | Path) -> None:
    """Run `edgen`, and kill it once the server has answered so often."""
    process = await start(*arguments)
    while process.returncode is None and len(server.bodies) < answers:
        await asyncio.sleep(0.01)
    process.kill()
    await end(process)


@pytest.mark.crash
def test_a_killed_run_ends_with_the_same_bytes_and_pays_nothing_twice(
    command: Command, tmp_path: Path, run_job: Callable[..., Path]
) -> None:
    with serving_dialect(_SERVICE, KEY) as server:
        path = run_job(server.url, conversations=60, limits={"in_flight": 4})
        asyncio.run(kill_after(20, server, "generate", path, "-o", tmp_path / "killed", "--json"))
        resumed = command("generate", path, "-o", tmp_path / "killed", "--json")
        assert resumed.code == 0, resumed.err
        assert 60 <= len(server.bodies) <= 60 + 4, "what was in flight may be asked again"
        calm = command("generate", path, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0, calm.err
    assert files(tmp_path / "killed") == files(tmp_path / "calm")
    assert KEY not in resumed.err + resumed.out


def test_a_cap_stops_a_run_and_a_higher_one_ends_it(
    command: Command, tmp_path: Path, run_job: Callable[..., Path]
) -> None:
    price = {"price": {"prompt": 1000, "completion": 1000}}  # an answer of this server costs 0.03
    with serving_dialect(_SERVICE, KEY) as server:
        path = run_job(server.url, conversations=12, limits={"max_cost": 8, "in_flight": 2}, backend=price)
        stopped = command("generate", path, "-o", tmp_path / "run", "--json", "--set", "limits.max_cost=4.2")
        assert stopped.code == 4, stopped.err
        assert 0 < len(server.bodies) < 12
        assert json.loads(stopped.out)["cost_usd"] <= 4.2
        ended = command("generate", path, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        assert len(server.bodies) == 12


def test_batches_are_refused_with_a_sentence(command: Command, run_job: Callable[..., Path]) -> None:
    done = command("generate", run_job("http://127.0.0.1:9"), "--via", "batch")
    assert done.code == 2
    assert "litellm has no batch service. Leave --via batch out" in " ".join(done.err.split())


def test_doctor_makes_its_call(command: Command, run_job: Callable[..., Path]) -> None:
    with serving_dialect(_SERVICE, KEY) as server:
        done = command("doctor", run_job(server.url))
        assert done.code == 0, done.out
        assert len(server.bodies) == 1
    assert KEY not in done.out + done.err


# --- jobs ----------------------------------------------------------------------------------------


def job(**backend: Any) -> Any:
    return {
        "name": "j",
        "conversations": 2,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "backends": {"default": {"type": "litellm", **backend}},
        "limits": {"max_cost": 1},
    }


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ({"model": "gpt-5"}, "model"),
        ({"model": "watsonx/m", "api_key_env": "MY_KEY"}, "does not know where watsonx is"),
        ({"model": "watsonx/m", "base_url": "https://a.example.org"}, "name it with api_key_env"),
        ({"model": "bedrock/m", "base_url": "https://a.example.org", "auth": "library", "api_key_env": "K"}, "takes no key"),
        ({"model": "groq/m", "options": {"api_base": "https://a.example.org"}}, "edgen writes this argument itself"),
        ({"model": "groq/m", "options": {"aws_secret_access_key": "x"}}, "no key belongs here"),
        ({"model": "groq/m", "options": {"extra": "sk-0123456789abcdef"}}, "no key belongs here"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_job(tmp_path: Any, backend: dict[str, Any], said: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job(max_tokens=100, price={"prompt": 1, "completion": 1}, **backend)))
    with pytest.raises(JobError, match=said) as caught:
        load_job(path)
    assert "sk-0123456789abcdef" not in str(caught.value)


def test_prices_are_those_of_litellms_list() -> None:
    def price(**backend: Any) -> Any:
        config = LitellmConfig(**backend)
        return provider_of(config).list_price(config)

    found = price(model="groq/openai/gpt-oss-20b")
    assert 0 < found.prompt < found.completion < 10
    assert found.source.startswith("the price list of litellm 1.")
    assert price(model="openai/gpt-4o").completion == 10
    assert price(model="anthropic/claude-sonnet-4-5").prompt == 3
    for unknown in (
        {"model": "groq/of-tomorrow"},
        {"model": "openai/claude-sonnet-4-5"},  # another service's model
        {"model": "groq/openai/gpt-oss-20b", "base_url": "https://a.example.org"},
        {"model": "openai/gpt-4o", "service_tier": "priority"},
    ):
        assert price(**unknown) is None


def test_a_cap_without_a_price_names_one_to_start_from(tmp_path: Path) -> None:
    elsewhere = job(model="groq/openai/gpt-oss-20b", base_url="https://a.example.org", max_tokens=100)
    (tmp_path / "job.yaml").write_text(json.dumps(elsewhere))
    with pytest.raises(JobError) as caught:
        load_job(tmp_path / "job.yaml")
    (line,) = re.findall(r"price: (\{.*\})", str(caught.value))
    elsewhere["backends"]["default"]["price"] = yaml.safe_load(line)
    (tmp_path / "job.yaml").write_text(json.dumps(elsewhere))
    assert (
        load_job(tmp_path / "job.yaml")
        .backends["default"]
        .price.source.startswith("the price list of litellm")
    )


def test_a_job_is_read_and_priced_without_importing_litellm(tmp_path: Any) -> None:
    (tmp_path / "job.yaml").write_text(json.dumps(job(model="groq/openai/gpt-oss-20b", max_tokens=100)))
    script = (
        "import sys\nfrom pathlib import Path\nfrom edgen.config import load_job\njob = load_job(Path('job.yaml'))\n"
        "assert job.backends['default'].price.prompt > 0\nprint('litellm' in sys.modules, 'openai' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.split() == ["False", "False"]


def test_without_the_extra_there_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(InputError, match=r"type litellm needs more packages: .*litellm"):
        backend("http://127.0.0.1:9/v1")


def test_a_service_that_litellm_does_not_know_is_a_sentence() -> None:
    with pytest.raises(InputError, match=r"litellm 1\.\S+ knows no service 'nonsense'"):
        backend("http://127.0.0.1:9/v1", "nonsense/m")


@pytest.mark.parametrize("name", ["drop_params", "modify_params"])
def test_litellm_is_not_to_change_what_is_asked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    import litellm

    monkeypatch.setattr(litellm, name, True)
    with pytest.raises(InputError, match=f"Unset LITELLM_{name.upper()}"):
        backend("http://127.0.0.1:9/v1")


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
        return provider_of(config).logprobs_problem(config)

    assert wrong("openai/gpt-4.1") is None
    assert "litellm asks no service for anthropic/claude-sonnet-4-5 for them" in str(
        wrong("anthropic/claude-sonnet-4-5")
    )
    assert "its options set top_logprobs, too" in str(wrong("openai/gpt-4.1", top_logprobs=3))
