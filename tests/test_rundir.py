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


@pytest.mark.parametrize("name", ["job.yaml", "run.db", "run.lock", "shards/manifest.json"])
def test_what_a_run_holds_is_left_as_it_is(name: str, tmp_path: Path) -> None:
    run, other = run_in(tmp_path / "run"), run_in(tmp_path / "other")
    assert "is left as it is" in refused(run.path / name, run)
    assert "the folder of another run" in refused(other.path / name, run)
    assert "the folder of another run" in refused(other.path / "new.html", run)


def test_an_arm_is_part_of_its_run(tmp_path: Path) -> None:
    whole = run_in(tmp_path / "run")
    arm = run_in(whole.path / "arms" / "a")
    check_file(whole.path / "report.html", arm, MARK, "report")
    check_file(arm.path / "report.html", whole, MARK, "report")


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
