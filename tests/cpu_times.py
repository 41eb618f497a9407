"""CPU seconds of tests and their processes: a plugin of pytest that lists them (make slowest).

Wall time depends on other work on the machine, and does not show the work that a test gives to its children.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from tests import fork_server

SHOWN = 200
fork_server.share = False
_TICKS = os.sysconf("SC_CLK_TCK")
_began: dict[str, float] = {}
_spent: dict[str, float] = {}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, ended children, and the server of forks (on Linux)."""
    return sum(os.times()[:4]) + _forks()


def _forks() -> float:
    server = getattr(fork_server.server, "process", None)
    ticks = 0
    for pid in [server.pid, *fork_server.Standing.running] if server else ():
        with contextlib.suppress(FileNotFoundError):
            stat = Path(f"/proc/{pid}/stat").read_text()
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / _TICKS


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _began[item.nodeid] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    item.user_properties.append(("cpu", cpu_seconds() - _began.pop(item.nodeid)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _spent[report.nodeid] = float(dict(report.user_properties).get("cpu", 0))  # type: ignore[arg-type]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rooms: Counter[str] = Counter()
    for name, seconds in _spent.items():
        rooms[name.split("::")[0].split("/")[1]] += seconds
    terminalreporter.section("CPU seconds")
    terminalreporter.write_line(f"{sum(_spent.values()):8.1f} {len(_spent)} tests, without their collection")
    for names in (rooms, Counter(_spent)):
        for name, seconds in names.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:8.1f} {name}")
