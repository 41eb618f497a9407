"""No header with a key arrives at a forbidden host: real adapters, real SDKs, real local servers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgen.config import BackendConfig
from edgen.core.errors import CallError, FailureKind, InputError, ProviderError
from edgen.providers import make, make_batch_service
from edgen.providers.batches import Sending
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.trust import Consents, gather_consents
from tests.providers.batches import service as batch_service
from tests.providers.fakes import FakeServer, answer, request, serving
from tests.providers.gemini_grpc import Certificate, grpc_serving

KEY = "sk-0123456789abcdef"
ENVIRON = dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY", "MY_KEY", "AWS_SECRET_ACCESS_KEY"), KEY)
COMPLETION = {"choices": [{"message": {"content": "hi"}}]}
CANDIDATE = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
KINDS = ["openai", "gemini"]
HEADER = {"openai": "authorization", "gemini": "x-goog-api-key"}


def config(kind: str, url: str, variable: str | None = None) -> BackendConfig:
    named = {} if variable is None else {"api_key_env": variable}
    if kind == "openai":
        return OpenAIConfig(model="m", base_url=f"{url}/v1", **named)
    return GeminiConfig(model="m", base_url=url, **named)


def arrived(fake: FakeServer | batch_service.Service) -> set[bool]:
    """Return, for each request as a set, whether the request contained the key."""
    return {KEY in f"{seen.headers} {seen.path}" or KEY.encode() in seen.body for seen in fake.seen}


@pytest.fixture
async def services() -> AsyncIterator[batch_service.Service]:
    async with batch_service.serving() as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variable", [None, "MY_KEY"])
async def test_a_local_server_is_called_without_the_key_until_the_user_consents(
    fake: FakeServer, kind: str, variable: str | None
) -> None:
    for consents, there in ((Consents(), False), (gather_consents({}, ["127.0.0.1"]), True)):
        fake.says(answer({**COMPLETION, **CANDIDATE}))
        it = make(
            config(kind, fake.url, variable), timeout=60, connections=1, environ=ENVIRON, consents=consents
        )
        assert (await it.complete(request())).text == "hi"
        await it.models()
        await it.aclose()
        assert len(fake.seen) == 2
        assert arrived(fake) == {there}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_batch_service_is_called_without_the_key_until_the_user_consents(
    services: batch_service.Service, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_text("{}\n")
    for consents, there in ((Consents(), False), (gather_consents({}, ["127.0.0.1"]), True)):
        services.seen.clear()
        chosen = config(kind, services.url)
        backend = make(chosen, timeout=60, connections=1, environ=ENVIRON, consents=consents)
        it = make_batch_service(chosen, backend, environ=ENVIRON)
        file = await it.upload(tmp_path / "in.jsonl", "token")
        begun = await it.create(Sending(file_id=file, token="token"))
        await it.state(begun.id)
        await it.cancel(begun.id)
        await it.find(Sending(token="token"))
        await it.aclose()
        await backend.aclose()
        assert len(services.seen) >= 5
        # Google's uploads go to a separate address, which needs no key.
        assert there in arrived(services)
        assert arrived(services) <= {there, False}


async def test_the_sdk_sends_neither_the_key_nor_credentials_of_the_machine(certificate: Certificate) -> None:
    async with grpc_serving(certificate) as service:
        chosen = GoogleGenerativeAIConfig(model="m", endpoint=service.endpoint)
        for consents, sent in ((Consents(), "none"), (gather_consents({}, ["127.0.0.1", "localhost"]), KEY)):
            it = make(chosen, timeout=60, connections=1, environ=ENVIRON, consents=consents)
            await it.complete(request("hello"))
            await it.aclose()
            assert service.metadata[-1]["x-goog-api-key"] == sent
            assert "authorization" not in service.metadata[-1]


@pytest.mark.parametrize(
    "endpoint", ["dns:///evil.example", "unix:/tmp/x", "https://evil.example", "a b", "ipv4:1.2.3.4:5:6"]
)
def test_an_endpoint_that_grpc_would_read_its_own_way_is_refused(endpoint: str) -> None:
    with pytest.raises(InputError, match="must be a host"):
        make(
            GoogleGenerativeAIConfig(model="m", endpoint=endpoint), timeout=1, connections=1, environ=ENVIRON
        )


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (config("openai", "https://elsewhere.example"), "OPENAI_API_KEY sent to elsewhere.example"),
        (config("gemini", "https://elsewhere.example"), "GOOGLE_API_KEY sent to elsewhere.example"),
        (
            GoogleGenerativeAIConfig(model="m", endpoint="elsewhere.example:443"),
            "GOOGLE_API_KEY sent to elsewhere",
        ),
        (config("openai", "https://api.openai.com", "MY_KEY"), "MY_KEY sent to api.openai.com"),
        (config("openai", "http://elsewhere"), "OPENAI_API_KEY is not sent to elsewhere over plain http"),
        (config("openai", "http://elsewhere", "AWS_SECRET_ACCESS_KEY"), "another service's secret"),
        (config("openai", "http://127.0.0.1:9", "GITHUB_TOKEN"), "another service's secret"),  # not set here
    ],
)
def test_what_may_not_be_sent_makes_no_backend(chosen: BackendConfig, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        make(chosen, timeout=1, connections=1, environ=ENVIRON)
    assert caught.value.exit_code == 2
    assert KEY not in str(caught.value)
    make(chosen, timeout=1, connections=1, environ={}, silent=True)  # for the identity alone


def test_a_key_that_is_not_set_is_no_question_of_trust() -> None:
    with pytest.raises(ProviderError, match="MY_KEY is not set"):
        make(config("openai", "https://elsewhere.example", "MY_KEY"), timeout=1, connections=1, environ={})
    make(config("openai", "http://elsewhere.example", "MY_KEY"), timeout=1, connections=1, environ={})


async def test_the_environment_alone_is_asked_where_nobody_gathers_consents(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    environ = {**ENVIRON, "EDGEN_TRUSTED_HOSTS": "127.0.0.1=OPENAI_API_KEY"}
    it = make(config("openai", fake.url), timeout=60, connections=1, environ=environ)
    await it.complete(request())
    await it.aclose()
    assert arrived(fake) == {True}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_wants_the_key_after_all_is_answered_with_how_to_send_it(
    fake: FakeServer, services: batch_service.Service, kind: str
) -> None:
    chosen = config(kind, fake.url)
    hint = f"--trust-host 127.0.0.1={'OPENAI_API_KEY' if kind == 'openai' else 'GOOGLE_API_KEY'}"
    fake.says(answer({"error": {"message": "No key.", "code": 401}}, 401))
    it = make(chosen, timeout=60, connections=1, environ=ENVIRON)
    with pytest.raises(CallError) as caught:
        await it.complete(request())
    await it.aclose()
    assert caught.value.kind is FailureKind.AUTHENTICATION
    assert hint in caught.value.message
    assert caught.value.message.startswith("No key; the key in ")

    chosen = config(kind, services.url)
    services.next = [answer({"error": {"message": "No key.", "code": 401}}, 401)]
    backend = make(chosen, timeout=60, connections=1, environ=ENVIRON)
    batch = make_batch_service(chosen, backend, environ=ENVIRON)
    with pytest.raises(CallError) as caught:
        await batch.state("batches/b1")
    await batch.aclose()
    await backend.aclose()
    assert hint in caught.value.message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_takes_no_key_along(fake: FakeServer, kind: str, status: int) -> None:
    async with serving() as other:
        fake.says(answer({}, status, Location=f"{other.url}/v1/chat/completions"))
        it = make(
            config(kind, fake.url), timeout=60, connections=1, environ=ENVIRON,
            consents=gather_consents({}, ["127.0.0.1"]),
        )  # fmt: skip
        with pytest.raises(CallError, match="moved to"):
            await it.complete(request())
        with contextlib.suppress(CallError):
            await it.models()
        await it.aclose()
        assert arrived(fake) == {True}
        assert other.seen == []
