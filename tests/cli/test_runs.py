"""`edgen runs`: lists every run in a folder, broken ones included, and changes none of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from edgen.core.text import format_dollars
from edgen.store.run_folder import RunFolder
from tests.cli.command import Command
from tests.cli.test_generate import job
from tests.timing import takes_under


def listed(command: Command, folder: Path) -> list[dict[str, Any]]:
    ended = command("runs", folder, "--json")
    assert ended.code == 0, ended.err
    runs: list[dict[str, Any]] = json.loads(ended.out)["runs"]
    return runs


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file except those that SQLite's readers share."""
    files = (p for p in folder.rglob("*") if p.is_file() and not p.name.endswith("-shm"))
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in files}


def test_runs_are_listed_the_newest_first(command: Command, tmp_path: Path) -> None:
    price = {"prompt": 1.0, "completion": 2.0}
    runs = tmp_path / "runs"
    for name, backend in (("old", {"faults": "garbage=1"}), ("priced", {"price": price}), ("new", {})):
        path = job(tmp_path, backends={"default": {"type": "simulator", **backend}}, name=name)
        command("generate", path, "-o", runs / name, "--set", "asks=1")
    os.utime(runs / "old" / "run.db", (0, time.time() - 3 * 86_400 - 60))
    os.utime(runs / "priced" / "run.db", (0, time.time() - 7500))
    (runs / "notes.txt").write_text("mine")
    (runs / "mine").mkdir()
    (runs / "mine" / "job.yaml").write_text(path.read_text())  # a job of the user's own is not a run
    before = contents(runs)

    ended = command("runs", runs)
    assert ended.code == 0
    head, *lines = ended.out.splitlines()
    assert head.split() == ["run", "state", "accepted", "calls", "tokens", "cost", "age", "size"]
    new, priced, old, total = (line.split() for line in lines if not line.startswith(" "))
    assert new[:4] == ["new", "complete", "5/5", "5"]
    assert priced[:3] == ["priced", "complete", "5/5"]
    assert priced[5].startswith("$0.0")
    assert [format_dollars(usd) for usd in (0, 0.0012, 0.01, 3)] == ["$0.00", "$0.00120", "$0.0100", "$3.00"]
    assert priced[6] == "2h05m"
    assert old[:3] == ["old", "short", "0/5"]
    assert old[-2] == "3d"
    assert total[:5] == ["total", "3", "10/15", "15", total[4]]
    assert total[5] == priced[5]
    why = json.loads(command("status", runs / "old", "--json").out)["stopped"]
    below = [line for line in lines if line.startswith("  ")]
    assert " ".join(" ".join(below).split()) == f"stopped {why['reason']}: {why['detail']}"
    assert max(map(len, lines)) <= 80
    assert len({len(line) for line in (head, *lines) if not line.startswith(" ")}) == 1

    rows = listed(command, runs)
    assert [row["name"] for row in rows] == ["new", "priced", "old"]
    assert sum(rows[2]["rejected"].values()) == 5
    assert rows[0]["bytes"] == sum(p.stat().st_size for p in (runs / "new").rglob("*") if p.is_file())
    assert contents(runs) == before
    assert [row["name"] for row in listed(command, runs / "new")] == ["new"]


def test_a_broken_run_is_a_row_and_arms_are_one(command: Command, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    arms = {"one": {"asks": 2}, "two": {"asks": 4}}
    assert command("generate", job(tmp_path, arms=arms), "-o", runs / "arms").code == 0
    for name, damage in (
        ("torn", b"SQLite format 3\0" + b"\xff" * 5000),
        ("odd", b"no ledger"),
        ("empty", b""),
    ):
        shutil.copytree(runs / "arms" / "arms" / "one", runs / name)
        (runs / name / "run.db").write_bytes(damage)
    (runs / "gone").symlink_to(tmp_path / "nowhere")
    ended = command("runs", runs)
    assert ended.code == 0
    rows = {row["name"]: row for row in listed(command, runs)}
    assert set(rows) == {"arms", "torn", "odd", "empty"}
    assert rows["arms"]["accepted"] == 10
    for name in ("torn", "odd", "empty"):
        assert rows[name]["state"] == "unreadable"
        assert "run.db" in rows[name]["problem"]
        assert f"{name} " in ended.out
    assert "ledger" in ended.out


def test_runs_beside_a_job_of_somebodys_own(command: Command, tmp_path: Path) -> None:
    assert command("generate", job(tmp_path), "-o", tmp_path / "a").code == 0
    assert (tmp_path / "job.yaml").exists()
    assert [row["name"] for row in listed(command, tmp_path)] == ["a"]


def test_a_run_that_goes_on_is_running(command: Command, tmp_path: Path) -> None:
    assert command("generate", job(tmp_path), "-o", tmp_path / "runs" / "a").code == 0
    with RunFolder(tmp_path / "runs" / "a").lock_for_writing():
        RunFolder(tmp_path / "runs" / "a").lock.write_text('{"pid": 7, "host": "h", "since": 1.0}')
        (row,) = listed(command, tmp_path / "runs")
        out = command("status", tmp_path / "runs").out
    assert row["state"] == "running"
    assert row["work"]["process"] == "process 7 on h"
    assert row["work"]["calls_per_minute"] == pytest.approx(5 * 60 / row["work"]["seconds"], abs=0.001)
    assert re.search(r"^  running    process 7 on h for \d+h\d\dm$", out, re.MULTILINE)
    assert "1 running" in out.splitlines()[-1]


def test_the_status_of_a_folder_of_runs_is_their_list(command: Command, tmp_path: Path) -> None:
    runs = tmp_path / "outputs"
    assert command("generate", job(tmp_path), "-o", runs / "a").code == 0
    with contextlib.chdir(tmp_path):
        for words in (("status",), ("status", "outputs"), ("runs",), ("status", "outputs", "--list")):
            assert command(*words).out.startswith("run      state")
        facts = json.loads(command("status", "--json").out)
        assert facts["totals"] == {
            "runs": 1, "running": 0, "planned": 5, "accepted": 5, "calls": 5, "cost_usd": None,
            "tokens": sum(facts["runs"][0]["tokens"].values()), "bytes": facts["runs"][0]["bytes"],
        }  # fmt: skip
        assert command("status", "outputs/a").out.startswith("run        outputs/a")
        assert command("status", "--list", "outputs/a").out == command("runs", "outputs/a").out
        refused = command("status", "outputs", "--watch")
        assert (refused.code, "--watch follows one run" in refused.err) == (2, True)


def test_no_runs_and_no_folder(command: Command, tmp_path: Path) -> None:
    ended = command("runs", tmp_path)
    assert (ended.code, ended.out) == (0, "")
    assert "no runs" in ended.err
    for place in (tmp_path / "missing", job(tmp_path)):
        ended = command("runs", place)
        assert ended.code == 2
        assert "edgen status outputs" in ended.err


def test_two_hundred_runs_take_no_two_seconds(command: Command, tmp_path: Path) -> None:
    assert command("generate", job(tmp_path), "-o", tmp_path / "one").code == 0
    for number in range(200):
        folder = tmp_path / "runs" / f"r{number:03}"
        folder.mkdir(parents=True)
        for name in ("run.db", "job.yaml"):
            shutil.copy(tmp_path / "one" / name, folder / name)
    assert len(command("runs", tmp_path / "runs").out.splitlines()) == 202
    assert takes_under(2, lambda: command("runs", tmp_path / "runs"), tries=3)
