"""`edgen play`: a person plays a role in a terminal, with the same results as on a page of `edgen web`."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import edgen
from edgen.store.people import People
from edgen.store.people.mailbox import Mailbox
from tests import ROOT, fork_server
from tests.cli.command import Command, call

pytestmark = pytest.mark.integration

SELFPLAY = ROOT / "jobs" / "selfplay.yaml"


def play(*arguments: str | Path, typed: str) -> subprocess.CompletedProcess[str]:
    process = fork_server.Popen(
        "play",
        *map(str, arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(typed, timeout=90)
    return subprocess.CompletedProcess(["edgen"], process.returncode, out, err)


def test_a_person_plays_the_student_leaves_comes_back_and_the_record_is_like_any_other(
    tmp_path: Path, command: Command
) -> None:
    run = tmp_path / "run"
    left = play(SELFPLAY, "-o", run, typed="/qiut\nCould you start with an example?\n")
    assert "There is no /qiut." in left.stdout  # a slip, not a turn
    assert left.returncode != 0
    assert "waits in" in left.stdout
    assert "student preference" in left.stdout
    assert "teacher preference" not in left.stdout
    assert "Traceback" not in left.stderr
    back = play(SELFPLAY, "-o", run, typed="Thank you, I like \x1b[31mthat.\n/end\n7\n0.85\n")
    assert back.returncode == 0, back.stderr
    assert back.stdout.count("Could you start with an example?") == 1  # shown again, not requested again
    assert "choose one of the options" in back.stdout  # 7 is not a probability
    assert "What the Teacher knew" in back.stdout
    assert "\x1b[31m" not in back.stdout
    (record,) = edgen.open(run).conversations()
    assert record.ended_by == "Student"
    assert record.probability == 0.85
    assert (
        next(turn.text for turn in record.turns if turn.role == "Student")
        == "Could you start with an example?"
    )
    assert call("validate", run) == 0
    assert len(Mailbox(run).list_done_requests()) == 4
    again = play(SELFPLAY, "-o", run, "--games", "1", typed="A second conversation.\n/end\n0.1\n")
    assert again.returncode == 0, again.stderr
    assert len(list(edgen.open(run).conversations())) == 2

    model = tmp_path / "model"
    options = ("-n", "2", "--set", "replicates=1", "--set", "branch=null")
    assert command("generate", SELFPLAY, "-o", model, *options).code == 0
    one, other = (next(iter(edgen.open(folder).conversations())) for folder in (run, model))
    assert one.scenario == other.scenario
    compared = command("compare", run, model)
    assert compared.code == 0, compared.err
    assert command("stats", run).code == 0
    assert command("export", run, "--to", "trl-sft", "-o", tmp_path / "sft").code == 0
    assert '"human"' in command("show", run, "0", "--json").out


@pytest.mark.parametrize(
    ("job", "options", "said"),
    [
        ("quickstart", (), "no role to play"),
        ("experiment", (), "without its arms (--set 'arms={}')"),
        ("selfplay", ("--role", "nobody"), "there is no role nobody to play (there are: teacher, student)"),
    ],
)
def test_a_job_that_cannot_be_played_gets_a_sentence(
    job: str, options: tuple[str, ...], said: str, command: Command, tmp_path: Path
) -> None:
    ended = command("play", ROOT / "jobs" / f"{job}.yaml", *options, "-o", tmp_path / "run")
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("job", "role", "typed", "shown"),
    [
        ("person_wizard", "dispatcher", "y\n1\n1\n", "← hint"),
        ("person_wizard", "operator", "Yes.\nYes, please.\n", "Assembly point"),
        ("person_student", "student", "y\n4\n2\nIs it “di”?\n1\nI see.\n3\n", "What does your turn do?"),
        ("tutoring", "tutor", "Look at the picture.\n1\nIt is near.\n2\n", "answer"),
    ],
)
def test_shipped_jobs_show_what_a_role_needs(
    job: str, role: str, typed: str, shown: str, tmp_path: Path
) -> None:
    left = play(ROOT / "jobs" / f"{job}.yaml", "--role", role, "-o", tmp_path / "run", typed=typed)
    assert shown in left.stdout
    assert "waits in" in left.stdout
    assert left.stdout.count("could not be used") == 0
    assert "JSON" not in left.stdout
    assert len(Mailbox(tmp_path / "run").list_done_requests()) == 2
    if typed.startswith("y"):
        with People(tmp_path / "run") as people:
            papers = {unit: one for (unit, _), one in people.read_latest_answers(f"play {role}").items()}
        kept = (tmp_path / "run" / "inputs" / "consent.md").read_text("utf-8")
        assert papers["consent"].shown == kept
        assert ("before" in papers) == (job == "person_student")


def test_who_does_not_agree_plays_nothing(tmp_path: Path) -> None:
    left = play(ROOT / "jobs" / "person_student.yaml", "-o", tmp_path / "run", typed="n\n")
    assert "recorded for research" in left.stdout
    assert left.returncode == 4
    assert not (tmp_path / "run").exists()


def test_in_a_real_terminal_an_interrupt_leaves_without_a_traceback(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "90", "LINES": "40"}
    command = [sys.executable, "-m", "edgen", "play", str(SELFPLAY), "-o", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=ROOT)
    os.close(theirs)
    try:
        shown = read(ours, "you ›")
        assert "You are the Student" in shown
        time.sleep(1)  # readline takes over the terminal
        os.write(ours, b"Hello, I am here.\r")
        shown = read(ours, "you ›")
        assert "Hello, I am here." in shown
        # readline ignores a signal right before it waits; a person would press the key again
        rest = read(ours, "continues it", lambda: process.send_signal(2))
        assert "Traceback" not in rest
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read(terminal: int, until: str, press: Callable[[], None] | None = None) -> str:
    """Read from a terminal until a text appears after the earlier output; press a key every five seconds."""
    shown, end = b"", time.monotonic() + 90
    due = time.monotonic()
    while until not in shown.decode(errors="replace"):
        if press is not None and time.monotonic() >= due:
            press()
            due = time.monotonic() + 5
        assert time.monotonic() < end, shown.decode(errors="replace")
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 4096)
    return shown.decode(errors="replace")
