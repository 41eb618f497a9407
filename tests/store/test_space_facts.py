"""The facts on a run's space: readers need no space for them, and they are valid for that space alone."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

import edgen
from edgen.core.errors import DamagedError
from edgen.space import load_space
from edgen.store.run_reader import RunReader

JOB = {
    "name": "t", "seed": 3, "conversations": 3, "space": "education_dialogue",
    "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("space_facts") / "run"
    edgen.generate(JOB, output=folder, progress=False)
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def forget(run: Path, name: str) -> None:
    """Remove a fact of the ledger, as a run of an older edgen lacks it."""
    with sqlite3.connect(run / "run.db") as ledger:
        assert ledger.execute("DELETE FROM meta WHERE name IN (?, ?)", (name, f"crc32 of {name}")).rowcount
    ledger.close()


def test_a_reader_reads_conversations_without_the_space(run: Path) -> None:
    space = load_space(run / "inputs" / "space.yaml")
    with RunReader(run) as reader:
        assert [reader.family.name, reader.job.speakers] == ["education", ("Teacher", "Student")]
        assert [one.replicate for one in reader.candidates()] == [0, 0, 0]
        assert "space" not in vars(reader)
        assert reader.roles == space.roles
        assert reader.space == space


def test_a_run_without_the_facts_is_read_with_its_space(run: Path) -> None:
    forget(run, "space")
    with RunReader(run) as reader:
        assert "space" in vars(reader)
        assert reader.roles == reader.space.roles
        assert len([*reader.candidates()]) == 3


def test_a_changed_space_is_refused(run: Path) -> None:
    file = run / "inputs" / "space.yaml"
    file.write_text(file.read_text() + "# edited\n")
    with pytest.raises(DamagedError, match=r"inputs/space\.yaml"):
        RunReader(run)
