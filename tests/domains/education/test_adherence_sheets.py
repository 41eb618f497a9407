"""A judge of a run's conversations: its findings, its cost, and that each request is sent once."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import LockedError, RunError, StoppedError, UsageError, UselessError
from edgen.domains.education.adherence import judge_adherence
from edgen.domains.education.keywords import MEASURES, AdherenceShares
from edgen.evaluation.measure import JudgeAsking
from edgen.runtime.control import Control
from edgen.store.run_folder import RunFolder
from tests.cli.command import Command
from tests.execution.service import job_text

JUDGE = ["backends.judge={type: simulator}"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def made(command: Command, folder: Path, **job: Any) -> Path:
    """Generate a run with the simulator: 60 conversations unless the job sets another number."""
    keys = {"conversations": 60, "backends": {"default": {"type": "simulator"}}} | job
    (folder / "job.yaml").write_text(job_text("http://127.0.0.1:9/v1", **keys))
    ended = command("generate", folder / "job.yaml", "-o", folder / "run")
    assert ended.code == 0, ended.err
    return folder / "run"


def judged(run: Path, sample: int, overrides: list[str]) -> list[AdherenceShares]:
    """Judge a run and return the results of the arms."""
    return [*judge_adherence(run, JudgeAsking(Control(), sample, overrides)).values()]


def asked(run: Path) -> int:
    """Return the number of answers in the judges' ledgers."""
    count = 0
    for path in (run / "adherence").glob("*.db"):
        with sqlite3.connect(path) as ledger:
            count += ledger.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
    return count


def test_a_judge_is_asked_once_and_a_larger_sample_asks_what_is_new(tmp_path: Path, command: Command) -> None:
    run = made(command, tmp_path, conversations=200, seed=7)
    (first,) = judged(run, 20, JUDGE)
    assert (first.by, first.n, asked(run)) == ("edgen-simulator", 20, 20)
    assert judged(run, 20, JUDGE) == [first]
    assert asked(run) == 20
    (more,) = judged(run, 200, JUDGE)
    assert (more.n, asked(run)) == (200, 200)
    assert judged(run, 20, JUDGE) == [first], "the smaller sample is part of the larger"
    assert asked(run) == 200

    assert more.note is not None
    assert "simulator" in more.note
    assert set(more.agreement) == set(more.untold) == set(MEASURES)
    for name, kappa in more.agreement.items():
        assert kappa is not None, name
        assert 0.3 < kappa < 1, name  # one answer in ten is wrong
    assert more.student_asks is not None
    assert more.student_asks.n + more.untold["student_asks"] == 200


def test_another_judge_keeps_a_ledger_of_its_own(tmp_path: Path, command: Command) -> None:
    run = made(command, tmp_path)
    judged(run, 5, JUDGE)
    judged(run, 5, ["backends.judge={type: simulator, model: other}"])
    assert len(list((run / "adherence").glob("*.db"))) == 2
    assert len(RunFolder(run).ledgers()) == 3
    assert command("status", run).code == 0
    ended = command("generate", tmp_path / "job.yaml", "-o", run)
    assert ended.code == 0, ended.err


def test_every_arm_has_its_own_result_over_the_same_scenarios(tmp_path: Path, command: Command) -> None:
    worse = {"backends": {"default": {"type": "simulator", "seed": 5}}}
    run = made(command, tmp_path, arms={"plain": {}, "other": worse})
    plain, other = judged(run, 15, JUDGE)
    assert (plain.n, other.n, asked(run)) == (15, 15, 30)
    assert plain != other
    with sqlite3.connect(next((run / "adherence").glob("*.db"))) as ledger:
        found = ledger.execute("SELECT scenario FROM outcomes ORDER BY scenario").fetchall()
    scenarios = [scenario for (scenario,) in found]
    assert scenarios[::2] == scenarios[1::2]


def test_a_run_made_anew_is_asked_about_anew(tmp_path: Path, command: Command) -> None:
    run = made(command, tmp_path)
    (before,) = judged(run, 10, JUDGE)
    made(command, tmp_path, seed=99)
    (after,) = judged(run, 10, JUDGE)
    assert asked(run) == 20
    assert before != after


def test_answers_that_are_no_sheets_tell_nothing(tmp_path: Path, command: Command) -> None:
    run = made(command, tmp_path)
    garbage = ["backends.judge={type: simulator, faults: judge_prose=1}"]
    (found,) = judged(run, 10, garbage)
    assert found.untold == dict.fromkeys(MEASURES, 10)
    assert found.student_asks is None
    assert found.note is not None
    assert "10 of its answers were unreadable" in found.note
    with pytest.raises(UselessError, match="A sheet has five lines"):
        judged(run, 60, garbage)


def test_the_budget_of_the_run_binds_it(tmp_path: Path, command: Command) -> None:
    price = {"prompt": 1.0, "completion": 1.0}
    run = made(
        command, tmp_path, backends={"default": {"type": "simulator", "price": price, "max_tokens": 2000}}
    )
    judge = ["backends.judge={type: simulator, price: {prompt: 1.0, completion: 1.0}, max_tokens: 100}"]
    with pytest.raises(StoppedError, match="cost"):
        judged(run, 60, [*judge, "limits.max_cost=0.0001"])
    judged(run, 60, judge)


@pytest.mark.parametrize(
    ("sample", "settings", "error", "words"),
    [
        (20, [], UsageError, "no judge backend"),
        (20, ["backends.judge.model=x"], Exception, "judge"),
        (20, [*JUDGE, "seed=3"], UsageError, "does not apply to a judge"),
        (0, JUDGE, UsageError, "1 or more"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, command: Command, sample: int, settings: list[str], error: type[Exception], words: str
) -> None:
    run = made(command, tmp_path, conversations=2)
    with pytest.raises(error, match=words):
        judged(run, sample, settings)
    assert asked(run) == 0


def test_runs_that_cannot_be_asked_about(tmp_path: Path, command: Command) -> None:
    with pytest.raises(RunError, match="there is no run here"):
        judged(tmp_path / "none", 5, JUDGE)
    run = made(command, tmp_path, conversations=2)
    with RunFolder(run).lock_for_writing(), pytest.raises(LockedError):
        judged(run, 5, JUDGE)
    refusing = {"default": {"type": "simulator", "faults": "refusal=1"}}
    (tmp_path / "job.yaml").write_text(job_text("http://127.0.0.1:9/v1", conversations=2, backends=refusing))
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "empty").code == 3
    with pytest.raises(RunError, match="no conversation was accepted"):
        judged(tmp_path / "empty", 5, JUDGE)
