"""A worker sends what a run prints or keeps, and no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import quiet_workers
from tests.cases import named


def report(when: str, outcome: str = "passed", **more: Any) -> pytest.TestReport:
    return pytest.TestReport("a", ("a", 1, "a"), {}, outcome, None, when, **more)  # type: ignore[arg-type]


class WorkerInteractor:
    """A worker by its name, with the hooks that send messages."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.sent.append(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.sent.append(report)


REPORTS = [
    report("setup"), report("call"), report("call", "failed"), report("setup", "failed"), report("setup", "skipped"),
    report("teardown"), report("teardown", "failed"), report("teardown", user_properties=[("cpu", 1)]),
]  # fmt: skip


@named("durations, kept", few=(None, [1, 2, 3, 4, 6, 7]), all=(3, range(8)))
def test_only_reports_that_count_are_sent(durations: int | None, kept: list[int]) -> None:
    manager, worker = pytest.PytestPluginManager(), WorkerInteractor()
    manager.register(worker)
    quiet_workers.install(
        SimpleNamespace(pluginmanager=manager, hook=manager.hook, getoption=lambda _: durations)  # type: ignore[arg-type]
    )
    manager.hook.pytest_runtest_logstart(nodeid="a", location=("a", 1, "a"))
    for one in REPORTS:
        manager.hook.pytest_runtest_logreport(report=one)
    assert [one for one in worker.sent if one != "a"] == [REPORTS[at] for at in kept]
    assert ("a" in worker.sent) == (durations is not None)
