"""A server on any free port, for the tests."""

from __future__ import annotations

from typing import Any

from edgen.simulator.options import ServerOptions


def options(**changes: Any) -> ServerOptions:
    return ServerOptions(**{"port": 0, **changes})
