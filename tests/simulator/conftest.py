"""A simulator served for each test that requests one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from edgen.simulator.service.server import serve_options
from tests.simulator.server import options


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with serve_options(options()) as address:
        yield address
