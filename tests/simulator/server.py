"""A server on any free port, for the tests."""

from __future__ import annotations

from typing import Any

from edgen.simulator.service.server import Options


def options(**changes: Any) -> Options:
    return Options(**{"port": 0, **changes})
