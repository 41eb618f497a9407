"""A scripted server for each test that asks for one, and one real llama.cpp server for them all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgen.providers import Backend, make
from edgen.providers.llamacpp import engine
from edgen.providers.llamacpp.config import LlamaCppConfig
from tests.providers import llama
from tests.providers.fakes import FakeServer, serving
from tests.providers.gemini_grpc import Certificate, make_certificate


@pytest.fixture
async def fake() -> AsyncIterator[FakeServer]:
    async with serving() as server:
        yield server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certificate]:
    """Make the certificate that gRPC trusts in these tests; gRPC reads the file once in a
    process, at its first channel."""
    made = make_certificate()
    roots = tmp_path_factory.mktemp("tls") / "roots.pem"
    roots.write_bytes(made.public)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(roots))
        yield made


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[llama.Server]:
    folder: Path = tmp_path_factory.mktemp("llama")
    with llama.running(folder) as server:
        yield server


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the tiny random model of all tests."""
    path = tmp_path_factory.mktemp("weights") / "tiny.gguf"
    llama.write_model(path, 1024)
    return path


@pytest.fixture
async def build(weights: Path) -> AsyncIterator[llama.Build]:
    """Return a function that makes embedded models, with those weights unless a test names others."""
    built = []

    def one(*, timeout: float = 30, **settings: Any) -> Backend:
        config = LlamaCppConfig(**{"path": str(weights), "context": 512, "max_tokens": 24} | settings)
        it = make(config, timeout=timeout, connections=4, environ={})
        built.append(it)
        return it

    yield one
    for it in built:
        await it.aclose()
    assert not engine._engines, "the last backend that closes unloads its model"
