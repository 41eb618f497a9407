from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.dose import LONG


@pytest.fixture(autouse=True)
def _charts_in_test_long_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the charts of reports in `make test`: they take three quarters of a report's time, and
    `tests/report` draws them."""
    if not LONG:
        monkeypatch.setattr("edgen.report.page.draw", lambda _: "<svg></svg>")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
