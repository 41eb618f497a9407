"""The google-generativeai adapter: the real SDK with local gRPC services over TLS."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from edgen.core.errors import CallError, FailureKind, InputError, ProviderError
from edgen.core.values import Reply, Usage
from edgen.providers import make
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.google_generativeai.online import warn_of_end
from tests.providers.fakes import TRUSTING, request
from tests.providers.gemini_grpc import Certificate, GrpcServer, grpc_serving

# gRPC and its channels stay in one loop.
pytestmark = pytest.mark.asyncio(loop_scope="module")
KEY = "AIza0123456789abcdef"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(certificate: Certificate) -> AsyncIterator[GrpcServer]:
    async with grpc_serving(certificate) as server:
        yield server


def backend(endpoint: str, *, timeout: float = 60.0, **settings: Any) -> Any:
    config = GoogleGenerativeAIConfig(model="m", endpoint=endpoint, **settings)
    return make(config, timeout=timeout, connections=4, environ={"GOOGLE_API_KEY": KEY, **TRUSTING})


async def ask(it: Any, *texts: str, **more: Any) -> Reply:
    try:
        async with asyncio.timeout(120):  # the SDK's own retries, if enabled, last ten minutes
            reply: Reply = await it.complete(request(*texts, **more))
    finally:
        await it.aclose()
    return reply


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("hello", Reply("hi there", "stop", None, Usage(3, 4), "m-001")),
        ("long", Reply("cut o", "length", None, Usage(3, 4), "m-001")),
        ("unsafe", Reply("", "content_filter", "SAFETY", Usage(3, 4), "m-001")),
        ("newer", Reply("a", "other", None, Usage(3, 4), "m-001")),
        ("blocked", Reply("", "content_filter", "PROHIBITED_CONTENT")),
    ],
)
@pytest.mark.filterwarnings("ignore:Unrecognized FinishReason")
async def test_replies(service: GrpcServer, text: str, reply: Reply) -> None:
    assert await ask(backend(service.endpoint), text) == reply


async def test_everything_is_sent(service: GrpcServer) -> None:
    it = backend(
        service.endpoint,
        temperature=0.5,
        top_p=0.25,
        top_k=3,
        max_tokens=7,
        retry_max_tokens=14,
        stop=("END",),
        safety_settings={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
    )
    await ask(it, "one", "two", "hello", system="be kind", scale=2)
    sent = service.requests[-1]
    assert [(c.role, c.parts[0].text) for c in sent.contents] == [
        ("user", "one"),
        ("model", "two"),
        ("user", "hello"),
    ]
    assert sent.system_instruction.parts[0].text == "be kind"
    generation = sent.generation_config
    assert (generation.temperature, generation.top_p, generation.top_k) == (0.5, 0.25, 3)
    assert (generation.max_output_tokens, list(generation.stop_sequences)) == (14, ["END"])
    (setting,) = sent.safety_settings
    assert (setting.category.name, setting.threshold.name) == ("HARM_CATEGORY_HARASSMENT", "BLOCK_NONE")
    assert sent.model == "models/m"
    assert service.metadata[-1]["x-goog-api-key"] == KEY


async def test_two_backends_keep_their_keys_apart(service: GrpcServer) -> None:
    config = GoogleGenerativeAIConfig(model="m", endpoint=service.endpoint, api_key_env="MINE")
    keys = ["first-own-key", "second-own-key"]
    both = [make(config, timeout=60, connections=1, environ={"MINE": key, **TRUSTING}) for key in keys]
    for it in both:
        await ask(it, "hello")
    assert [metadata["x-goog-api-key"] for metadata in service.metadata[-2:]] == keys


@pytest.mark.parametrize(
    ("text", "kind", "wait"),
    [
        ("minute", FailureKind.RATE_LIMIT, 3.5),
        ("day", FailureKind.QUOTA, 3.5),
        ("key", FailureKind.AUTHENTICATION, None),
        ("invalid key", FailureKind.AUTHENTICATION, None),
        ("denied", FailureKind.PERMISSION, None),
        ("model", FailureKind.NOT_FOUND, None),
        ("big", FailureKind.CONTEXT_OVERFLOW, None),
        ("bad", FailureKind.BAD_REQUEST, None),
        ("full", FailureKind.OVERLOADED, None),
        ("broken", FailureKind.SERVER_ERROR, None),
        ("nothing", FailureKind.BAD_RESPONSE, None),
        ("hang", FailureKind.TIMEOUT, None),
        ("\ud800", FailureKind.BAD_REQUEST, None),
    ],
)
async def test_failures(service: GrpcServer, text: str, kind: FailureKind, wait: float | None) -> None:
    before = len(service.requests)
    with pytest.raises(CallError) as caught:
        await ask(backend(service.endpoint, timeout=2.0 if text == "hang" else 60), text)
    assert caught.value.kind is kind
    assert caught.value.retry_after == wait
    assert caught.value.message
    assert KEY not in repr(caught.value)
    assert len(service.requests) - before == (text != "\ud800")


async def test_nothing_listens(service: GrpcServer) -> None:
    with pytest.raises(CallError) as caught:
        await ask(backend("localhost:1", timeout=60), "hello")
    assert caught.value.kind is FailureKind.CONNECTION
    assert "Connection refused" in caught.value.message


async def test_cancellation_passes_through(service: GrpcServer) -> None:
    it = backend(service.endpoint)
    before = len(service.requests)
    call = asyncio.ensure_future(it.complete(request("hang")))
    while len(service.requests) == before:
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await it.aclose()
    await it.aclose()


async def test_models_are_read_page_by_page(service: GrpcServer) -> None:
    it = backend(service.endpoint)
    assert await it.models() == ["a", "b"]
    await it.aclose()


async def test_the_end_of_life_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_end.cache_clear()
    with caplog.at_level(logging.WARNING, "edgen"):
        backend("localhost:1")
        backend("localhost:1")
    (record,) = caplog.records
    assert "2025-11-30" in record.message
    assert "type: gemini" in record.message


async def test_what_cannot_be_used_is_refused() -> None:
    def refused(**settings: Any) -> str:
        config = GoogleGenerativeAIConfig(**{"model": "m", **settings})
        with pytest.raises((InputError, ProviderError)) as caught:
            make(
                config,
                timeout=1,
                connections=1,
                environ={} if "api_key_env" in settings else {"GEMINI_API_KEY": KEY},
            )
        return str(caught.value)

    assert "cannot send a seed" in refused(seed="auto")
    assert "MINE is not set" in refused(api_key_env="MINE")
    assert "safety_settings" in refused(safety_settings={"HARM_CATEGORY_X": "BLOCK_NONE"})
    assert "not the name of a Gemini model" in refused(model="../m")


async def test_the_identity_is_what_shapes_answers() -> None:
    it = backend("localhost:1", temperature=0.5)
    assert it.identity == {
        "type": "google-generativeai",
        "model": "m",
        "endpoint": "localhost:1",
        "temperature": 0.5,
    }


WITHOUT_THE_SDK = """
import sys
sys.modules["google.generativeai"] = None
from edgen.providers import make
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.google_generativeai.online import warn_of_end
from edgen.core.errors import InputError
try:
    make(GoogleGenerativeAIConfig(model="m"), timeout=1, connections=1, environ={"GOOGLE_API_KEY": "key-key"})
except InputError as error:
    print(error)
print(sorted({"grpc", "google.generativeai.client", "google.api_core"} & set(sys.modules)))
"""


async def test_without_the_sdk_the_error_says_how_to_get_it() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITHOUT_THE_SDK, stdout=subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    message, loaded = output.decode().splitlines()
    assert "[google-generativeai]'" in message or "--extra google-generativeai" in message
    assert "type: gemini" in message
    assert loaded == "[]"
