"""No key is ever seen: not in an error, a representation, an identity or a log line of any adapter."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from edgen.backends import make
from edgen.config import BackendConfig, GeminiConfig, GoogleGenerativeAIConfig, OpenAIConfig
from edgen.errors import CallError
from tests.backends.fakes import Answer, FakeServer, answer, request
from tests.backends.gemini_grpc import Certificate

KEY = "AIza-this-key-must-never-be-seen-0123456789"
PADDING = "x" * 280  # the key then lies across the place where messages are cut


def echoes() -> Iterator[Answer]:
    """Failures of every make, each with the key somewhere in it."""
    for status in (200, 400, 401, 403, 404, 429, 500, 503):
        yield answer({"error": {"message": f"your key {KEY} is {PADDING}{KEY}", "code": KEY}}, status)
        yield answer({"error": {"odd": {"key": KEY}}}, status)
        yield answer({"detail": [KEY]}, status)
        yield Answer(f"<html><body>{KEY} {PADDING}{KEY}</body></html>".encode(), status)
    yield Answer(b"", 302, {"Location": f"https://example.org/?key={KEY}"})
    yield answer({"choices": KEY})
    yield answer({"candidates": KEY})
    yield Answer(KEY.encode(), act="cut")


def everything_shown(error: BaseException) -> str:
    """What a person or a log could be shown of an error: words, arguments, the traceback with its causes."""
    trace = "".join(traceback.format_exception(error))
    return f"{error} {error!r} {error.args} {vars(error)} {error.__cause__!r} {error.__context__!r} {trace}"


@pytest.fixture
def configs(fake: FakeServer) -> list[BackendConfig]:
    return [
        OpenAIConfig(model="m", base_url=f"{fake.url}/v1", api_key_env="THE_KEY"),
        GeminiConfig(model="m", base_url=fake.url, api_key_env="THE_KEY"),
        # Nothing there speaks gRPC; what it says to that is shown all the same.
        GoogleGenerativeAIConfig(model="m", endpoint=fake.url.removeprefix("http://"), api_key_env="THE_KEY"),
    ]


async def test_no_adapter_shows_its_key(
    fake: FakeServer,
    configs: list[BackendConfig],
    certificate: Certificate,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    failed = 0
    for config in configs:
        it: Any = make(config, timeout=0.5, connections=2, environ={"THE_KEY": KEY})
        shown.append(f"{it!r} {it} {it.identity} {it.model}")
        scripts = (
            [Answer()] if isinstance(config, GoogleGenerativeAIConfig) else [*echoes(), Answer(act="hang")]
        )
        for script in scripts:
            fake.says(script)
            for call in (it.complete(request()), it.models()):
                try:
                    shown.append(repr(await call))
                except CallError as error:
                    failed += 1
                    shown.append(everything_shown(error))
        await it.aclose()
    assert failed > 100
    shown.append(caplog.text)
    # Twelve characters of it count as the key.
    assert not [text for text in shown for part in (KEY, KEY[:12], KEY[-12:]) if part in text]
