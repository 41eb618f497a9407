"""`edgen report` from the command line, mistakes included."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from edgen.core.errors import LockedError, UsageError
from edgen.report.page import write_report
from edgen.store.run_folder import RunFolder
from tests.cli.command import Command
from tests.execution.service import ROOT
from tests.report.runs import made

BUDGET = ("--set", "backends.default.max_tokens=700", "--set", "limits.in_flight=4", "--set")


def test_it_is_written_into_the_run_and_anew(
    reported: Callable[[str], Path], command: Command, tmp_path: Path
) -> None:
    run = made(tmp_path / "run")
    earlier = (reported("plain") / "report.html").read_bytes()
    (run / "report.html").write_bytes(earlier)
    ended = command("report", run)
    assert ended.code == 0
    assert str(run / "report.html") in ended.out
    first = (run / "report.html").read_bytes()
    assert first != earlier
    assert not list(run.glob(".*"))
    # the same run, the same bytes
    elsewhere = tmp_path / "elsewhere.html"
    assert command("report", run, "-o", elsewhere).code == 0
    assert elsewhere.read_bytes() == first
    # the run is unchanged
    assert command("generate", run / "job.yaml", "-o", run).code == 0


def test_nothing_but_a_report_is_replaced(command: Command, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    ended = command("report", run, "-o", mine)
    assert ended.code == 2
    assert "edgen did not write this file as a report" in ended.err
    assert mine.read_text() == "<p>mine</p>"
    for place, words in ((tmp_path, "this is a folder"), (tmp_path / "no" / "r.html", "is not a folder")):
        ended = command("report", run, "-o", place)
        assert ended.code == 2
        assert words in ended.err


def test_a_folder_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    if os.geteuid() == 0:
        ended = command("report", run, "-o", "/proc/report.html")
    else:
        run.chmod(0o500)
        ended = command("report", run)
        run.chmod(0o700)
    assert ended.code == 2
    assert "cannot be written" in ended.err


def test_a_run_that_stopped_says_what_is_pending(command: Command, tmp_path: Path) -> None:
    run = made(tmp_path / "run", *BUDGET, "limits.max_tokens=12000")
    ended = command("report", run)
    assert ended.code == 0
    assert "pending" in ended.err
    text = (run / "report.html").read_text()
    assert "Not finished." in text
    assert "var(--grey)" in text


def test_a_run_in_which_nothing_is_settled(command: Command, tmp_path: Path) -> None:
    run = made(tmp_path / "run", *BUDGET, "limits.max_tokens=1")
    ended = command("report", run)
    assert ended.code == 3
    assert "no conversation of this run has ended" in ended.err
    assert not (run / "report.html").exists()


def test_a_run_that_goes_on(command: Command, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    with RunFolder(run).lock_for_writing():
        ended = command("report", run)
    assert ended.code == 6
    assert not (run / "report.html").exists()


def test_nobody_changes_the_run_meanwhile_and_what_came_is_left(tmp_path: Path) -> None:
    run, mine = made(tmp_path / "run"), tmp_path / "mine.html"

    def meanwhile(stage: str) -> None:
        if stage == "drawing":
            with pytest.raises(LockedError), RunFolder(run).lock_for_writing():
                pass
            mine.write_text("<p>mine</p>")

    with pytest.raises(UsageError, match="edgen did not write this file as a report"):
        write_report(run, mine, progress=meanwhile)
    assert mine.read_text() == "<p>mine</p>"
    with RunFolder(run).lock_for_writing():
        pass


def test_a_run_of_rejected_ones_says_so(command: Command, tmp_path: Path) -> None:
    faults = 'backends.default={type: simulator, faults: "refusal=1"}'
    run = made(tmp_path / "run", "--set", faults, "--set", "asks=1")
    ended = command("report", run)
    assert ended.code == 0
    assert "no conversation was accepted (40 were rejected or failed)" in ended.err
    assert (run / "report.html").exists()


@pytest.mark.parametrize("place", ["nothing", "file"])
def test_what_is_no_run(place: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ended = command("report", tmp_path / place)
    assert ended.code == 2
    said = {"nothing": "there is no run here", "file": "this is a file, not a run"}
    assert said[place] in ended.err


def test_a_report_of_an_earlier_form_of_the_job_is_set_aside(
    reported: Callable[[str], Path], tmp_path: Path
) -> None:
    run = made(tmp_path / "run")
    shutil.copy(reported("plain") / "report.html", run)
    made(run, "--set", "seed=8")
    assert not (run / "report.html").exists()
    assert (run / "previous" / "1" / "report.html").exists()


def test_arms_that_were_not_begun_are_named(command: Command, tmp_path: Path) -> None:
    run = made(tmp_path / "run", *BUDGET, "limits.max_tokens=20000", job=ROOT / "jobs" / "experiment.yaml")
    ended = command("report", run)
    assert ended.code == 0
    assert "no conversation of json, refusing has ended" in ended.err
    assert "only published has answers so far" in ended.err
    text = (run / "report.html").read_text()
    assert "Arms json and refusing: nothing is settled yet." in text
