"""Writes of a command to the user's folder: they never replace foreign files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from edgen.core.errors import UsageError
from edgen.store.run_folder import RunFolder
from edgen.store.written_file import check_file

MARK = b"made by edgen"


def run_in(folder: Path) -> RunFolder:
    (folder / "shards").mkdir(parents=True)
    for name in ("job.yaml", "run.db", "run.lock", "shards/manifest.json"):
        (folder / name).write_text("paid for")
    return RunFolder(folder)


def refused(path: Path, run: RunFolder) -> str:
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
    whole = RunFolder(tmp_path / "run")
    run_in(whole.path / "arms" / "a")
    whole.job.write_text("with arms, and no ledger of its own")
    assert "in the folder of the run" in refused(whole.ledger, whole)
    whole.comparisons.mkdir()
    check_file(whole.comparisons / "a-vs-b.json", whole, MARK, "comparison")


def test_pipes_devices_folders_and_lost_links_are_no_files(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "does not replace it" in refused(tmp_path / "pipe", run)
    assert "folder" in refused(tmp_path, run)
    assert "folder" in refused(Path(""), run)
    assert "leads nowhere" in refused(tmp_path / "link", run)
    assert "is not a folder" in refused(tmp_path / "missing" / "x.html", run)
    (tmp_path / "mine.html").write_text("mine")
    assert "edgen did not write this file as a report" in refused(tmp_path / "mine.html", run)


FINISHED = (
    "job.yaml",
    "inputs",
    "shards",
    "rejected.jsonl",
    "pairs/pairs.jsonl",
    "comparisons",
    "report.html",
)


def finished_run(folder: Path, word: str) -> RunFolder:
    run = RunFolder(folder)
    for name in FINISHED:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix:
            path.write_text(word)
        else:
            path.mkdir()
            (path / "file").write_text(word)
    (folder / "run.db").write_text("the ledger")
    return run


def told(folder: Path) -> set[str]:
    """Return the texts of the files in a folder; all files that are set aside are of one form."""
    return {path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("moved", range(len(FINISHED) + 1))
def test_setting_aside_that_was_killed_is_ended_by_the_next_start(moved: int, tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run", "first")
    gathering = run.previous / ".gathering"
    gathering.mkdir(parents=True)
    for name in FINISHED[:moved]:  # as far as it got
        (run.path / name).rename(gathering / Path(name).name)
    assert run.set_aside() == run.previous / "1"
    assert sorted(path.name for path in (run.previous / "1").iterdir()) == sorted(
        Path(name).name for name in FINISHED
    )
    assert run.set_aside() is None
    finished_run(run.path, "second")
    assert run.set_aside() == run.previous / "2"
    assert [told(run.previous / number) for number in ("1", "2")] == [{"first"}, {"second"}]
    assert sorted(os.listdir(run.previous)) == ["1", "2"]


@pytest.mark.parametrize("moved", range(1, len(FINISHED) + 1))
def test_setting_aside_that_was_killed_is_no_obstacle_to_the_earlier_form(moved: int, tmp_path: Path) -> None:
    """The earlier form, written again next to the gathered files, is kept like these."""
    run = finished_run(tmp_path / "run", "first")
    gathering = run.previous / ".gathering"
    gathering.mkdir(parents=True)
    for name in FINISHED[:moved]:
        (run.path / name).rename(gathering / Path(name).name)
    for name in ("job.yaml", "inputs", "shards", "rejected.jsonl"):
        if not (run.path / name).exists():
            shutil.copytree(gathering / name, run.path / name) if name in (
                "inputs",
                "shards",
            ) else shutil.copy(gathering / name, run.path / name)
    assert run.set_aside() == run.previous / "2"
    assert sorted(os.listdir(run.previous)) == ["1", "2"]
    assert told(run.previous) == {"first"}


def test_inputs_without_a_job_are_of_no_form(tmp_path: Path) -> None:
    """A kill came while a new job was noted, after the earlier form was set aside."""
    run = finished_run(tmp_path / "run", "first")
    assert run.set_aside() == run.previous / "1"
    run.inputs.mkdir()
    (run.inputs / "space.yaml").write_text("half of the second")
    assert run.set_aside() is None
    assert sorted(os.listdir(run.previous)) == ["1"]
