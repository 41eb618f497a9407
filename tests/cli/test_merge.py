"""`edgen merge` on the command line: its output and its error messages."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def made(command: Command, folder: Path, part: str | None, **changes: Any) -> Path:
    """Generate a run in `folder`, of 20 scenarios or a piece of them."""
    values = {
        "name": "t", "seed": 5, "conversations": 20, "space": "education_dialogue",
        "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    folder.mkdir()
    path = folder / "job.yaml"
    path.write_text(json.dumps(values | changes))
    ended = command("generate", path, "-o", folder / "run", *(["--range", part] if part else []))
    assert ended.code == 0, ended.err
    return folder / "run"


@pytest.fixture
def halves(command: Command, tmp_path: Path) -> list[Path]:
    return [made(command, tmp_path / "a", "0:12"), made(command, tmp_path / "b", "12:20")]


def test_it_says_what_came_of_it(command: Command, tmp_path: Path, halves: list[Path]) -> None:
    ended = command("merge", *halves, "-o", tmp_path / "sub" / "all")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[:4] == [
        f"input      {halves[0]}: scenarios 0 to 11, 12 of 12 accepted",
        f"input      {halves[1]}: scenarios 12 to 19, 8 of 8 accepted",
        f"run        {tmp_path / 'sub' / 'all'}",
        "state      complete",
    ]


def test_a_single_missing_conversation(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "all"
    ended = command("merge", made(command, tmp_path / "a", "0:19"), "-o", run)
    assert ended.code == 3
    assert (
        f"{run} is written but incomplete: none of the runs has scenario 19 (1 conversation pending)"
        in ended.err
    )
    said = command("annotate", run, "--labels", "teacher_moves").err
    assert "1 conversation of this run is pending" in said


def test_one_run_is_a_copy(command: Command, tmp_path: Path) -> None:
    run = made(command, tmp_path / "a", None)
    assert command("merge", run, "-o", tmp_path / "copy").code == 0
    assert (tmp_path / "copy/shards/manifest.json").read_bytes() == (
        run / "shards/manifest.json"
    ).read_bytes()


def test_a_larger_run_of_the_same_job(command: Command, tmp_path: Path) -> None:
    small, large = made(command, tmp_path / "a", None), made(command, tmp_path / "b", None, conversations=30)
    ended = command("merge", small, large, "-o", tmp_path / "all", "--json")
    assert (ended.code, json.loads(ended.out)["planned"]) == (0, 30)
    assert "conversations differs (20, 30): the largest is kept." in ended.err


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"seed": 6}, "seed"),
        ({"name": "other"}, "name"),
        ({"prompt": "education_dialogue_json"}, "prompt"),
        ({"space": "./space.yaml"}, "space"),
        ({"asks": 2}, "asks"),
        ({"split": {"by": "topic"}}, "split.by"),
        (
            {"backends": {"default": {"type": "simulator", "faults": "garbage=0.001"}}},
            "backends.default.faults",
        ),
        ({"arms": {"x": {}, "y": {"asks": 1}}}, "arms"),
    ],
)
def test_runs_of_different_jobs(command: Command, tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    run = made(command, tmp_path / "a", None)
    (tmp_path / "edgen.yaml").touch()  # the project, from which a job may name files
    (tmp_path / "space.yaml").write_text(json.dumps({
        "name": "small", "topics": ["a", "b"], "student_preferences": ["c"], "student_reactions": ["d"],
        "teacher_preferences": ["e"], "teacher_reactions": ["f"]}))  # fmt: skip
    if "space" in changes:
        changes = {"space": str(tmp_path / "space.yaml")}
    other = made(command, tmp_path / "b", None, **changes)
    ended = command("merge", run, other, "-o", tmp_path / "all")
    assert ended.code == 2
    assert f"{other}: this is a run of another job than {run}: they differ in {key}" in ended.err
    assert not (tmp_path / "all").exists()


def test_not_every_difference_of_two_jobs_is_listed(command: Command, tmp_path: Path) -> None:
    run = made(command, tmp_path / "a", None)
    other = made(
        command,
        tmp_path / "b",
        None,
        protocol="selfplay",
        prompt=None,
        prompts={"teacher": "selfplay_teacher", "student": "selfplay_student"},
    )
    ended = command("merge", run, other, "-o", tmp_path / "all")
    assert ended.code == 2
    assert re.search(r"they differ in (\S+, ){4}\S+ and \d+ more keys\. Only", ended.err), ended.err


class TestMistakes:
    def refused(self, command: Command, sentence: str, *arguments: str | Path, code: int = 2) -> None:
        ended = command("merge", *arguments)
        assert ended.code == code, ended.err
        assert sentence in ended.err

    def test_no_place(self, command: Command, halves: list[Path]) -> None:
        self.refused(
            command, "-o is missing: name the folder of the new run, as in -o outputs/whole.", *halves
        )

    def test_no_run(self, command: Command, tmp_path: Path) -> None:
        assert command("merge", "-o", tmp_path / "all").code == 2
        self.refused(command, "there is no run here", tmp_path / "nothing", "-o", tmp_path / "all")

    def test_the_same_run_twice(self, command: Command, tmp_path: Path, halves: list[Path]) -> None:
        (tmp_path / "link").symlink_to(halves[0])
        self.refused(
            command, "link: this run is named twice", *halves, tmp_path / "link", "-o", tmp_path / "all"
        )

    def test_a_target_that_is_taken(self, command: Command, tmp_path: Path, halves: list[Path]) -> None:
        (tmp_path / "all").mkdir()
        self.refused(command, "all: this already exists", *halves, "-o", tmp_path / "all")
        self.refused(command, "run: this already exists", *halves, "-o", halves[0])
        self.refused(command, "this is in the folder of the run", *halves, "-o", halves[0] / "all")

    def test_a_stranger_where_the_run_would_be_made(
        self, command: Command, tmp_path: Path, halves: list[Path]
    ) -> None:
        (tmp_path / ".all.merging").mkdir()
        (tmp_path / ".all.merging" / "letter.txt").write_text("dear")
        self.refused(command, "this already exists; move it away", *halves, "-o", tmp_path / "all")
        assert (tmp_path / ".all.merging" / "letter.txt").read_text() == "dear"

    def test_a_run_that_is_worked_on(self, command: Command, tmp_path: Path, halves: list[Path]) -> None:
        script = f"import fcntl; f = open({str(halves[1] / 'run.lock')!r}); fcntl.flock(f, 2); print(flush=True); input()"
        with subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            self.refused(command, "works on this run", *halves, "-o", tmp_path / "all", code=6)
            holder.communicate(b"\n")
        assert not (tmp_path / "all").exists()

    def test_a_damaged_ledger(self, command: Command, tmp_path: Path, halves: list[Path]) -> None:
        path = halves[1] / "run.db"
        data = bytearray(path.read_bytes())
        data[5000:20000] = b"\xff" * 15000
        path.write_bytes(data)
        self.refused(command, f"{path}: the ledger is damaged", *halves, "-o", tmp_path / "all")
        path.unlink()
        self.refused(command, f"{path}: there is no ledger here", *halves, "-o", tmp_path / "all")

    def test_open_batches(self, command: Command, tmp_path: Path, halves: list[Path]) -> None:
        with closing(sqlite3.connect(halves[1] / "run.db")) as connection, connection:
            connection.execute(
                "INSERT INTO batches VALUES (4, 'sent', 'f', 'default', 'tok', 1, 9, 'x', 'f1', 'b1', 1, 2, NULL)"
            )
        self.refused(command, "batches are open in run.db: 4 (sent)", *halves, "-o", tmp_path / "all")
        with closing(sqlite3.connect(halves[1] / "run.db")) as connection, connection:
            connection.execute("UPDATE batches SET state = 'read'")
        assert command("merge", *halves, "-o", tmp_path / "all").code == 0
        with closing(sqlite3.connect(tmp_path / "all" / "run.db")) as connection:
            assert connection.execute("SELECT id, remote_id FROM batches").fetchall() == [(1, "b1")]

    def test_a_folder_that_cannot_be_written(
        self, command: Command, tmp_path: Path, halves: list[Path]
    ) -> None:
        (tmp_path / "file").write_text("")
        self.refused(command, str(tmp_path / "file"), *halves, "-o", tmp_path / "file" / "all")
