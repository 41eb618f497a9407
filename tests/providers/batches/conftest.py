"""A batch service for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.providers.batches.service import Service, serving


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with serving() as made:
        yield made


@pytest.fixture(params=["openai", "gemini", "anthropic"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
