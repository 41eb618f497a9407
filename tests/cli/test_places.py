"""Run folders and files whose names have no last part, such as `.`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgen.cli.app import app
from edgen.cli.output import run_guarded
from edgen.config import parse_job
from edgen.core.errors import JobError
from tests.cli.command import Command
from tests.cli.odd_plugins import JOB


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_run_folder_with_other_things(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "notes.txt").write_text("mine")
    (tmp_path / "small.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path / "here")
    ended = command("generate", "../small.yaml", "-o", name)
    assert ended.code == 2
    assert "bug in edgen" not in ended.err
    assert "this folder holds other things" in ended.err


def test_a_run_in_the_current_folder(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "small.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path / "here")
    assert command("generate", "../small.yaml", "-o", ".").code == 0
    assert command("validate", ".").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "small.yaml"]


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_sheet_that_is_a_folder(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "small.yaml").write_text(JOB)
    run = tmp_path / "run"
    assert command("generate", tmp_path / "small.yaml", "-o", run).code == 0
    ended = command("annotate", run, "--labels", "teacher_moves", "--sheet", name)
    assert ended.code == 2
    assert "this is a folder; name a file in it" in ended.err


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("labels: {moves: {set: teacher_moves, unit: word}}", "unknown value 'word' (known: turn, conversation)"),
        ("branch: {at: never}", "unknown value 'never' (known: sampled)"),
    ],
)  # fmt: skip
def test_a_choice_among_other_types_lists_what_is_known(keys: str, said: str) -> None:
    with pytest.raises(JobError) as raised:
        parse_job(yaml.safe_load(f"{JOB}\n{keys}\n"), "small.yaml")
    assert said in str(raised.value)


def test_a_help_text_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    full = io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True)
    monkeypatch.setattr(sys, "stdout", full)
    assert run_guarded(lambda: app(["--help"], prog_name="edgen")) == 2
    monkeypatch.undo()
    assert capsys.readouterr().err == "edgen: standard output cannot be written (No space left on device).\n"
