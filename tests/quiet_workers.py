"""Fewer messages from the workers of pytest-xdist: those that change what a run prints or keeps.

A worker sends six messages a test, which cost as much CPU as all else that pytest does for a small test.
The start, a passed set-up and a passed teardown show in no summary.
"""

from __future__ import annotations

from typing import Any

import pytest


class Results:
    """A filter of reports: calls, failed or skipped phases, and those with properties (`make slowest`)."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or report.user_properties:
            self._worker.pytest_runtest_logreport(report)


def install(config: pytest.Config) -> None:
    """Replace the messages of this worker; with --durations, all of them are needed."""
    if config.getoption("durations") is not None:
        return
    for worker in config.pluginmanager.get_plugins():
        if type(worker).__name__ == "WorkerInteractor":
            for hook in (config.hook.pytest_runtest_logstart, config.hook.pytest_runtest_logreport):
                hook._remove_plugin(worker)
            config.pluginmanager.register(Results(worker))
