"""An accepted outcome without its record is damage, and every reader reports it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.errors import DamagedError
from tests import ROOT

JOB = ROOT / "jobs" / "quickstart.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = edgen.generate(
        JOB, conversations=4, output=tmp_path_factory.mktemp("records") / "run", progress=False
    )
    with contextlib.closing(sqlite3.connect(made.folder / "run.db")) as db, db:
        assert db.execute("DELETE FROM records WHERE scenario = 1").rowcount == 1
    return made.folder


@pytest.mark.parametrize(
    "read",
    [
        lambda run, _out: edgen.open(run).stats(only=["lengths"], progress=False),
        lambda run, _out: [*edgen.open(run).conversations()],
        lambda run, out: edgen.compare(run, shutil.copytree(run, out / "other")),
        lambda run, out: edgen.open(run).export("csv", out / "csv"),
    ],
    ids=["stats", "conversations", "compare", "export"],
)
def test_reading_stops_with_the_place(run: Path, tmp_path: Path, read: Any) -> None:
    with pytest.raises(DamagedError, match=r"run\.db: the outcome of scenario 1"):
        read(run, tmp_path)


def test_generate_makes_it_again_without_a_call(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    made = edgen.generate(JOB, conversations=4, output=copy, progress=False)
    with contextlib.closing(sqlite3.connect(copy / "run.db")) as db:
        assert db.execute("SELECT COUNT(*), (SELECT SUM(made) FROM sessions) FROM replies").fetchone() == (
            4,
            4,
        )
    assert len([*made.conversations()]) == 4
