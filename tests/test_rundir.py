"""What a command may write to where the user points it: nothing that is somebody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgen.errors import UsageError
from edgen.rundir import RunDir, check_file

MARK = b"made by edgen"


def run_in(folder: Path) -> RunDir:
    (folder / "shards").mkdir(parents=True)
    for name in ("job.yaml", "run.db", "run.lock", "shards/manifest.json"):
        (folder / name).write_text("paid for")
    return RunDir(folder)


def refused(path: Path, run: RunDir) -> str:
    with pytest.raises(UsageError) as caught:
        check_file(path, run, MARK, "report")
    return str(caught.value)


def test_a_new_file_and_an_earlier_one_may_be_written(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run")
    for path in (tmp_path / "new.html", run.path / "report.html"):
        check_file(path, run, MARK, "report")
        path.write_bytes(b"<!-- made by edgen -->")
        check_file(path, run, MARK, "report")


@pytest.mark.parametrize("name", ["job.yaml", "run.db", "run.lock", "shards/manifest.json", "new.html"])
def test_what_a_run_holds_is_left_as_it_is(name: str, tmp_path: Path) -> None:
    run, other = run_in(tmp_path / "run"), run_in(tmp_path / "other")
    arm = run_in(run.path / "arms" / "a")
    for folder in (run, other, arm):
        assert "in the folder of the run" in refused(folder.path / name, run)
    assert "in the folder of the run" in refused(other.path / "report.html", run)
    assert "in the folder of the run" in refused(arm.path / "report.html", run)


def test_names_that_a_run_will_use_are_not_taken_from_it(tmp_path: Path) -> None:
    whole = RunDir(tmp_path / "run")
    run_in(whole.path / "arms" / "a")
    whole.job.write_text("with arms, and no ledger of its own")
    assert "in the folder of the run" in refused(whole.ledger, whole)
    whole.comparisons.mkdir()
    check_file(whole.comparisons / "a-vs-b.json", whole, MARK, "comparison")


def test_pipes_devices_folders_and_lost_links_are_no_files(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "is left as it is" in refused(tmp_path / "pipe", run)
    assert "folder" in refused(tmp_path, run)
    assert "folder" in refused(Path(""), run)
    assert "leads nowhere" in refused(tmp_path / "link", run)
    assert "is no folder" in refused(tmp_path / "missing" / "x.html", run)
    (tmp_path / "mine.html").write_text("mine")
    assert "no report of edgen" in refused(tmp_path / "mine.html", run)
