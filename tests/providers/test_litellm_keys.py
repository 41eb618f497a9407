"""Keys through litellm go to the one host with consent, and into no state of litellm."""

from __future__ import annotations

from typing import Any

import pytest

from edgen.core.errors import FailureKind, InputError, ProviderError
from edgen.core.values import Usage
from edgen.providers.litellm.services import SERVICES
from tests.providers.fakes import FakeServer, answer, raw_serving
from tests.providers.litellm_service import (
    DIALECTS,
    KEY,
    ask,
    backend,
    failure,
    keys_of,
    worded,
)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_without_consent_no_key_goes_anywhere(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    """Neither the job's key nor one that litellm would find in the environment is sent."""
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
    """litellm reads GROQ_API_BASE, but edgen's consent is for Groq's own host."""
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
    """A proxy sees the host of every https call."""
    variable, host = SERVICES[service].variables[0], SERVICES[service].address.removeprefix("https://")
    async with raw_serving(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as proxy:
        environ = {variable: KEY, "HTTPS_PROXY": proxy.url}
        caught = await failure(backend(None, f"{service}/m", environ, api_key_env=None))
    assert caught.kind is FailureKind.CONNECTION
    assert f"the proxy refused the way to {host}:443" in caught.message
    assert proxy.received.startswith(f"CONNECT {host}:443 ".encode())
    assert KEY.encode() not in proxy.received
