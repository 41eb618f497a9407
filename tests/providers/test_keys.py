"""No key is shown in an error, a representation, an identity or a log line of any adapter."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from edgen.config import BackendConfig
from edgen.core.errors import CallError
from edgen.core.registry import part_of
from edgen.core.values import Reply
from edgen.providers import find_provider, make, make_batch_service
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.base import BatchAnswers
from edgen.providers.batches import Sending
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.litellm.config import LitellmConfig
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai_responses.config import OpenAIResponsesConfig
from tests.dose import dose
from tests.providers import gemini_grpc
from tests.providers.fakes import TRUSTING, Answer, FakeServer, answer, request
from tests.providers.gemini_grpc import Certificate, grpc_serving

KEY = "AIza-this-key-must-never-be-seen-0123456789"
PADDING = "x" * 280  # puts the key across the place where messages are cut


def echoes(statuses: Sequence[int]) -> Iterator[Answer]:
    """Yield failures of every kind, each with the key somewhere in it."""
    for status in statuses:
        yield answer({"error": {"message": f"your key {KEY} is {PADDING}{KEY}", "code": KEY}}, status)
        yield answer({"error": {"odd": {"key": KEY}}}, status)
        yield answer({"detail": [KEY]}, status)
        yield Answer(f"<html><body>{KEY} {PADDING}{KEY}</body></html>".encode(), status)
    yield Answer(b"", 302, {"Location": f"https://example.org/?key={KEY}"})
    yield answer({"choices": KEY})
    yield answer({"candidates": KEY})
    yield Answer(KEY.encode(), act="cut")


def everything_shown(error: BaseException) -> str:
    """Return everything that a person or a log could get of an error: words, arguments, the
    traceback with its causes."""
    trace = "".join(traceback.format_exception(error))
    context = None if error.__suppress_context__ else error.__context__
    return f"{error} {error!r} {error.args} {vars(error)} {error.__cause__!r} {context!r} {trace}"


@pytest.fixture
def configs(fake: FakeServer) -> list[BackendConfig]:
    return [
        OpenAIConfig(model="m", base_url=f"{fake.url}/v1", api_key_env="THE_KEY"),
        OpenAIResponsesConfig(model="m", base_url=f"{fake.url}/v1", api_key_env="THE_KEY"),
        GeminiConfig(model="m", base_url=fake.url, api_key_env="THE_KEY"),
        AnthropicConfig(model="m", base_url=fake.url, api_key_env="THE_KEY"),
        LitellmConfig(model="openai/m", base_url=f"{fake.url}/v1", api_key_env="THE_KEY"),
        LitellmConfig(model="anthropic/claude-sonnet-4-5", base_url=fake.url, api_key_env="THE_KEY"),
        # No server there speaks gRPC; the error is checked too.
        GoogleGenerativeAIConfig(model="m", endpoint=fake.url.removeprefix("http://"), api_key_env="THE_KEY"),
    ]


@pytest.fixture
def verbose_litellm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make litellm log everything, request by request."""
    import litellm
    from litellm import _logging

    monkeypatch.setattr(_logging, "set_verbose", True)
    monkeypatch.setattr(litellm, "set_verbose", True)
    logger = logging.getLogger("LiteLLM")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(before)


@pytest.mark.long
async def test_no_adapter_shows_its_key(
    fake: FakeServer,
    configs: list[BackendConfig],
    certificate: Certificate,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    verbose_litellm: None,
) -> None:
    caplog.set_level(logging.DEBUG)
    statuses = dose((200, 401), (200, 400, 401, 403, 404, 429, 500, 503))
    shown = []
    failed = 0
    for config in configs:
        it: Any = make(config, timeout=0.5, connections=2, environ={"THE_KEY": KEY, **TRUSTING})
        shown.append(f"{it!r} {it} {it.identity} {it.model}")
        scripts = (
            [Answer()]
            if isinstance(config, GoogleGenerativeAIConfig)
            else [*echoes(statuses), Answer(act="hang")]
        )
        for script in scripts:
            fake.says(script)
            for said in await asyncio.gather(it.complete(request()), it.models(), return_exceptions=True):
                failed += isinstance(said, CallError)
                shown.append(everything_shown(said) if isinstance(said, CallError) else repr(said))
        await it.aclose()
    assert failed > 100
    printed = capfd.readouterr()
    assert "POST Request Sent from LiteLLM" in printed.err + caplog.text, "litellm's own log is on"
    shown += [caplog.text, printed.out, printed.err]
    # Twelve characters of the key count as the key.
    assert not [text for text in shown for part in (KEY, KEY[:12], KEY[-12:]) if part in text]


async def test_no_batch_service_shows_its_key(
    fake: FakeServer, configs: list[BackendConfig], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)  # at DEBUG the HTTP library logs headers, which a server may echo
    (tmp_path / "in").write_bytes(b"{}\n")
    own = Sending(file=tmp_path / "in", file_id="files/a", token="t", requests=1)
    shown, failed = [], 0
    environ = {"THE_KEY": KEY, **TRUSTING}
    for config in configs:
        if part_of(find_provider(config), BatchAnswers).batches is None:
            continue
        backend = make(config, timeout=0.5, connections=2, environ=environ)
        it = make_batch_service(config, backend, environ=environ, patience=0.5)
        shown.append(f"{it!r} {it}")
        for script in echoes(
            dose((200, 401), (200, 400, 401, 500))
        ):  # other tests check their classification
            fake.says(script)
            calls: list[Any] = [
                it.upload(own.file, "t"),
                it.create(own),
                it.find(own),
                it.state("a"),
                it.cancel("a"),
            ]
            for call in [*calls, it.forget("a"), it.download("a", tmp_path / "out")]:
                try:
                    shown.append(repr(await call))
                except CallError as error:
                    failed += 1
                    shown.append(everything_shown(error))
        await it.aclose()
        await backend.aclose()
    assert failed > 200
    shown.append(caplog.text)
    assert not [text for text in shown for part in (KEY, KEY[:12], KEY[-12:]) if part in text]


ECHO = f"a\nb: {KEY} and {KEY}"


async def asked(config: BackendConfig, text: str = "hello", key: str = KEY) -> Reply:
    it = make(config, timeout=60, connections=1, environ={"THE_KEY": key, **TRUSTING})
    try:
        return await it.complete(request(text))
    finally:
        await it.aclose()


@pytest.mark.parametrize("status", [200, 403])
async def test_a_key_in_a_reply_of_openai_is_taken_out(fake: FakeServer, status: int) -> None:
    message = {"content": ECHO, "refusal": ECHO}
    completion = {"choices": [{"message": message}], "model": f"m/{KEY}"}
    blocked = {"error": {"message": f"flagged by moderation {PADDING} {KEY}"}}
    fake.says(answer(completion if status == 200 else blocked, status))
    reply = await asked(OpenAIConfig(model="m", base_url=f"{fake.url}/v1", api_key_env="THE_KEY"))
    assert KEY not in repr(reply)
    if status == 200:
        assert (reply.text, reply.refusal, reply.model) == ("a\nb: [key] and [key]",) * 2 + ("m/[key]",)


async def test_a_key_in_a_reply_of_gemini_is_taken_out(fake: FakeServer) -> None:
    parts = [{"text": ECHO[:20]}, {"text": ECHO[20:]}]  # the key spans two parts
    candidate = {"content": {"parts": parts}, "finishReason": "SAFETY", "finishMessage": KEY}
    fake.says(answer({"candidates": [candidate], "modelVersion": KEY}))
    reply = await asked(GeminiConfig(model="m", base_url=fake.url, api_key_env="THE_KEY"))
    assert (reply.text, reply.refusal, reply.model) == ("a\nb: [key] and [key]", "SAFETY: [key]", "[key]")


async def test_a_key_in_a_reply_of_the_sdk_is_taken_out(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(gemini_grpc._SCRIPT, "echo", {"texts": [ECHO[:20], ECHO[20:]]})
    async with grpc_serving(certificate) as service:
        config = GoogleGenerativeAIConfig(model="m", endpoint=service.endpoint, api_key_env="THE_KEY")
        assert (await asked(config, "echo")).text == "a\nb: [key] and [key]"


async def test_a_key_that_is_a_word_leaves_replies_as_they_are(fake: FakeServer) -> None:
    fake.says(answer({"choices": [{"message": {"content": "what a secret is"}}]}))
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1", api_key_env="THE_KEY")
    assert (await asked(config, key="secret")).text == "what a secret is"
