"""The tiers of the tests: every test is `unit`, `integration` or `crash`.

- unit: calls the package's modules in this process; it starts no process and listens on no port
- integration: goes through a command, a process, a server or a browser, or takes seconds: sampling, large
  files
- crash: kills or interrupts edgen at work, and checks the state it leaves

A test has the nearest mark: at its own head or its module's. Without one it has its folder's tier, or
`integration` if one of its fixtures starts a server. A unit test that starts something fails with a message.
"""

from __future__ import annotations

import functools
import socket
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT, fork_server

TIERS = ("unit", "integration", "crash")
FOLDERS = frozenset(
    {"cli", "execution", "merging", "providers", "report", "rl"}
)  # of tests that are mostly `integration`
STARTING = frozenset({"address", "browser", "command", "fake", "llama_server"})  # fixtures
alone = False  # whether the test that runs is a unit test


@functools.cache
def folder_of(path: Path) -> str:
    """Return the folder of `tests` that a file is in, or the file's name where it is in none."""
    return path.relative_to(ROOT / "tests").parts[0]


def assign(items: Iterable[pytest.Item]) -> None:
    """Give each test its tier, so that `-m unit` selects by it.

    A test with generated examples, or left out of `make test`, also gets the mark `long`.
    """
    for item in items:
        if not any(mark.name in TIERS for mark in item.iter_markers()):
            starts = folder_of(item.path) in FOLDERS or STARTING.intersection(
                getattr(item, "fixturenames", ())
            )
            item.add_marker("integration" if starts else "unit")
        if item.get_closest_marker("only_long") or hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker("long")


def guard(patch: pytest.MonkeyPatch) -> None:
    """Forbid tests to start any process while `alone` is true, which it is in unit tests."""

    def guarded(what: str, start: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(start)
        def started(*arguments: Any, **named: Any) -> Any:
            if alone:
                pytest.fail(f"a unit test {what}: mark it `integration`")
            return start(*arguments, **named)

        return started

    patch.setattr(subprocess.Popen, "__init__", guarded("starts a process", subprocess.Popen.__init__))
    patch.setattr(fork_server, "server", guarded("starts a process", fork_server.server))
    patch.setattr(socket.socket, "listen", guarded("opens a port", socket.socket.listen))
