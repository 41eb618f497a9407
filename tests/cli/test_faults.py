"""Wrong clocks, disks without locks, runs that an earlier edgen left blocked, and signals
while Python starts."""

from __future__ import annotations

import errno
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgen.core.files import choose_temporary_name
from tests import ROOT, fork_server
from tests.cli.command import Command
from tests.dose import dose

JOB = ROOT / "jobs" / "quickstart.yaml"
ARMS = "arms={plain: {}, json: {prompt: education_dialogue_json}}"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.mark.long
@pytest.mark.parametrize(
    "moment",
    dose([-1.0, 253_402_300_799.0], [-1.0, 0.0, -62_135_596_800.0, -1e15, 7e9, 253_402_300_799.0, 1e15]),
)
def test_a_clock_that_is_wrong_damages_nothing(
    moment: float, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert command("generate", JOB, "-n", "2", "-o", run).code == 0
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: moment)  # the clock jumps between two starts
        assert command("generate", JOB, "-n", "4", "-o", run).code == 0
        for words in (("status", run), ("runs", tmp_path), ("report", run)):
            ended = command(*words)
            assert ended.code == 0, ended.err
    for words in (
        ("status", run),
        ("runs", tmp_path),
        ("validate", run),
        ("stats", run, "--only", "lengths"),
    ):
        ended = command(*words)
        assert ended.code == 0, ended.err
    assert command("generate", JOB, "-n", "5", "-o", run).code == 0


NO_LOCKS = """
import fcntl, os
def flock(*_):
    raise OSError({number}, os.strerror({number}))
fcntl.flock = flock
from edgen.__main__ import main
main()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "number", dose([errno.ENOLCK, errno.EIO], [errno.ENOLCK, errno.EPERM, errno.ENOTSUP, errno.EIO])
)
def test_a_disk_without_locks_can_be_read_and_is_not_written(
    number: int, command: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert command("generate", JOB, "-n", "3", "-o", run).code == 0
    code = NO_LOCKS.format(number=number)
    reading = (
        ("export", run, "--to", "csv", "-o", tmp_path / "out"), ("report", run, "-o", tmp_path / "page.html"),
        ("stats", run, "--only", "lengths"), ("validate", run), ("status", run),
    )  # fmt: skip
    for words in reading:
        ended = fork_server.run(*words, code=code)
        assert ended.returncode == 0, (words, ended.stderr)
    for words in (("generate", JOB, "-n", "4", "-o", run), ("annotate", run, "--labels", "quality")):
        ended = fork_server.run(*words, code=code)
        assert ended.returncode == 2, (words, ended.stderr)
        assert "cannot be locked here" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_run_that_an_earlier_edgen_left_wedged_goes_on(command: Command, tmp_path: Path) -> None:
    """A kill between the link and the unlink of an arm's new ledger."""
    run = tmp_path / "run"
    made = ("generate", JOB, "-n", "2", "--set", ARMS, "-o", run)
    assert command(*made).code == 0
    for ledger in (run / "arms" / "plain" / "run.db", run / "arms" / "json" / "run.db"):
        choose_temporary_name(ledger).hardlink_to(ledger)
    left = choose_temporary_name(run / "arms" / "numbers.json")
    left.write_text("half")
    ended = command(*made[:3], "3", *made[4:])
    assert ended.code == 0, ended.err
    assert not list(run.rglob("*.part"))


def test_a_ledger_with_another_name_elsewhere_is_still_refused(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("generate", JOB, "-n", "2", "-o", run).code == 0
    (tmp_path / "mine.db").hardlink_to(run / "run.db")
    ended = command("generate", JOB, "-n", "3", "-o", run)
    assert ended.code == 2
    assert "hard link" in ended.err
    assert (tmp_path / "mine.db").exists()


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_python_starts_and_edgen_plans_prints_no_traceback(
    number: signal.Signals, tmp_path: Path
) -> None:
    rng = random.Random(number)
    for count in range(dose(1, 4)):
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "edgen",
                "generate",
                str(JOB),
                "-n",
                "50",
                "-o",
                str(tmp_path / f"{count}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=fork_server.use_default_signals,
        )
        # In the first moments Python starts, and edgen's code does not run yet.
        time.sleep(rng.uniform(0.15, 0.9))
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        if b"Fatal Python error: init_import_site" in said:
            continue  # Python starts more slowly on a busy machine
        assert process.returncode in (0, -number, 128 + number), said
        assert b"edgen/" not in said or b"Traceback" not in said, said.decode()
        assert b"Aborted" not in said
