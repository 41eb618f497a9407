"""A plugin of pytest for `.ci/again`: it names the tests that failed in the full run and pass alone."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("passed", []):
        if report.when == "call":
            terminalreporter.write_line(f"PASSED ALONE, after it failed beside others: {report.nodeid}")
