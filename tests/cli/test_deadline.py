"""`--until` and `--for`: the next such time, through all changes of clocks."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import edgen.execution.run
from edgen.core.errors import DeadlineError, StoppedError, UsageError
from edgen.core.values import Reply, Request
from edgen.runtime import supervise
from edgen.runtime.deadline import Deadline
from edgen.simulator.backend import Simulator
from tests.cli.command import Command
from tests.cli.test_generate import job


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("now", "until", "then"),
    [
        ("2026-11-20T22:00", "06:00", "2026-11-21T05:00"),  # the next morning
        ("2026-11-21T04:59:59", "6:00", "2026-11-21T05:00"),
        ("2026-11-21T05:00:00", "06:00", "2026-11-22T05:00"),  # the next one is tomorrow's
        ("2026-11-21T05:00:30", "06:00", "2026-11-22T05:00"),
        ("2026-03-28T22:00", "06:00", "2026-03-29T04:00"),  # clocks go forward that night
        ("2026-03-28T22:00", "02:30", "2026-03-29T01:00"),  # this time is skipped: the moment of the change
        ("2026-10-24T21:00", "06:00", "2026-10-25T05:00"),  # clocks go back that night
        ("2026-10-24T21:00", "02:30", "2026-10-25T00:30"),  # this time comes twice: the first
        ("2026-10-25T00:45", "02:30", "2026-10-25T01:30"),  # between the two: the second
        ("2026-10-25T01:45", "02:30", "2026-10-26T01:30"),
        ("2026-11-20T22:00", "00:00", "2026-11-20T23:00"),
        ("2026-11-20T22:00", "2026-11-21T06:00", "2026-11-21T05:00"),  # a time without a zone is local
        ("2026-11-20T22:00", "2026-11-21 06:00+00:00", "2026-11-21T06:00"),
        ("2026-11-20T22:00", "2026-11-21T06:00Z", "2026-11-21T06:00"),
    ],
)
@pytest.mark.usefixtures("zone")
def test_the_moment_is_the_next_on_a_clock_on_the_wall(now: str, until: str, then: str) -> None:
    wall = at(now)
    assert Deadline(until, None, wall=lambda: wall).count_seconds_left() == at(then) - wall


@pytest.mark.parametrize(
    "text", ["6", "24:00", "06:60", "6am", "", "2026-11-21", "tomorrow", "06:00:00", "9" * 400]
)
def test_what_is_no_time_is_told_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="--until 06:00"):
        Deadline(text, None)


@pytest.mark.parametrize("text", ["3", "0s", "", "h", "-3h", "3 weeks", "9999999d", "1e3s"])
def test_what_is_no_span_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="--for"):
        Deadline(None, text)


def test_a_wall_clock_that_jumps_counts_as_it_then_is() -> None:
    wall, passed = at("2026-11-20T22:00"), 0.0
    deadline = Deadline("2026-11-21T06:00Z", None, wall=lambda: wall, passed=lambda: passed)
    assert deadline.count_seconds_left() == 8 * 3600
    wall -= 3600  # the clock is set back
    assert deadline.count_seconds_left() == 9 * 3600
    wall = at("2026-11-21T09:00")  # the machine slept
    assert deadline.count_seconds_left() < 0
    assert "--until" in str(deadline.make_reason())


def test_a_span_does_not_heed_the_wall_clock_and_the_earlier_counts() -> None:
    wall, passed = at("2026-11-20T22:00"), 50.0
    deadline = Deadline("2026-11-21T06:00Z", "1h30m", wall=lambda: wall, passed=lambda: passed)
    assert deadline.count_seconds_left() == 5400
    wall += 7200
    assert deadline.count_seconds_left() == 5400
    passed += 5400
    assert deadline.count_seconds_left() == 0
    assert "--for 1h30m" in str(deadline.make_reason())


def test_a_moment_that_has_gone_by_begins_nothing(command: Command, tmp_path: Path) -> None:
    with pytest.raises(StoppedError, match="this time has passed"):
        Deadline("2020-01-01T00:00", None).check()
    ended = command("generate", job(tmp_path), "-o", tmp_path / "run", "--until", "2020-01-01T00:00")
    assert ended.code == 4
    assert not (tmp_path / "run").exists()


class Span:
    """The clock that `--for` reads. It stands still until `passed` is set, or until calls of a simulator with
    a latency wait: the first `answers` calls are answered at once, the others after the work stops."""

    def __init__(self) -> None:
        self.answers = 0
        self.others_first = 0
        """So many calls of simulators without a latency come before the span ends."""
        self.passed = False
        self._asked = self._others = self._waiting = 0

    def read(self) -> float:
        waited = self._waiting and self._others >= self.others_first
        return 3600.0 if self.passed or waited else 0.0

    async def complete(self, simulator: Simulator, request: Request) -> Reply:
        if not simulator._config.latency_ms:
            self._others += 1
            return await _COMPLETE(simulator, request)
        self._asked += 1
        if self._asked > self.answers:
            self._waiting += 1
            while not self.passed:
                await asyncio.sleep(0.005)
        return await _COMPLETE(simulator, request)


_COMPLETE = Simulator.complete


@pytest.fixture
def span(monkeypatch: pytest.MonkeyPatch) -> Span:
    span, reason = Span(), Deadline.make_reason

    def make_reason(deadline: Deadline) -> DeadlineError:
        span.passed = True
        return reason(deadline)

    monkeypatch.setitem(Deadline.__init__.__kwdefaults__, "passed", span.read)
    monkeypatch.setattr(Deadline, "make_reason", make_reason)
    monkeypatch.setattr(Simulator, "complete", lambda *given: span.complete(*given))
    monkeypatch.setattr(supervise, "_CLOCK_EVERY", 0.01)
    return span


def test_a_run_that_is_stopped_by_its_deadline_goes_on_where_it_stopped(
    command: Command, tmp_path: Path, span: Span
) -> None:
    span.answers = 16
    backends = {"default": {"type": "simulator", "latency_ms": 1}}
    path = job(tmp_path, conversations=120, backends=backends, limits={"in_flight": 16})
    ended = command(
        "generate", path, "-o", tmp_path / "run", "--for", "1.5s", "--until", "2999-01-01T00:00", "--json"
    )
    assert ended.code == 4
    assert "Stopped by --for 1.5s" in ended.err
    assert re.search(r"waiting for \d+ calls in flight", ended.err)
    made = json.loads(ended.out)["calls"]["made"]
    assert 16 <= made < 120
    facts = command("status", tmp_path / "run", "--json").out
    assert '"stopped"' in facts
    for _ in range(2):  # answers in flight were kept and are not requested again
        ended = command("generate", path, "-o", tmp_path / "run", "--json", "--set", "limits.in_flight=200")
        assert ended.code == 0, ended.err
        calls = json.loads(ended.out)["calls"]
        assert calls["made"] == 120
        assert calls["now"] == 120 - made
        made = 120
    assert calls["now"] == 0


def test_all_arms_share_the_deadline(command: Command, tmp_path: Path, span: Span) -> None:
    """The deadline comes while the second arm is made."""
    span.others_first = 32
    backends = {"default": {"type": "simulator"}}
    arms = {"one": {}, "two": {"backends": {"default": {"latency_ms": 1}}}}
    path = job(tmp_path, conversations=32, backends=backends, limits={"in_flight": 16}, arms=arms)
    ended = command("generate", path, "-o", tmp_path / "run", "--for", "2s")
    assert ended.code == 4
    assert "arm        one: stopped, 32 of 32" in ended.out
    assert "arm        two: stopped" in ended.out
    assert command("generate", path, "-o", tmp_path / "run").code == 0


def test_writing_files_is_not_cut(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, span: Span
) -> None:
    writing = edgen.execution.run.write_shards

    def slow(*arguments: Any) -> None:
        span.passed = True
        time.sleep(0.3)
        writing(*arguments)

    monkeypatch.setattr(edgen.execution.run, "write_shards", slow)
    ended = command("generate", job(tmp_path), "-o", tmp_path / "run", "--for", "3s")
    assert span.passed
    assert ended.code == 0, ended.err
    assert command("validate", tmp_path / "run").code == 0


def test_judging_has_a_deadline_too(command: Command, tmp_path: Path, span: Span) -> None:
    span.answers = 8
    backends = {"default": {"type": "simulator"}, "judge": {"type": "simulator", "latency_ms": 1}}
    path = job(tmp_path, conversations=30, replicates=2, backends=backends, limits={"in_flight": 8})
    assert command("generate", path, "-o", tmp_path / "run").code == 0
    asked = ("pairs", tmp_path / "run", "--by", "oracle")
    ended = command(*asked, "--for", "0.9s")
    assert ended.code == 4, ended.err
    assert not (tmp_path / "run" / "pairs" / "pairs.jsonl").exists()
    assert command(*asked).code == 0
