"""Damaged or hostile ledgers with every command that reads one: one message, and the right exit code."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from edgen.cli.app import app
from tests.cli.command import Command, Ended, get_command
from tests.execution.service import files
from tests.store.ledger.hostile import VALUES, flip, put, tables

JOB = """
name: run
seed: 3
conversations: 6
replicates: 2
space: education_dialogue
prompt: education_dialogue
protocol: oneshot
backends: {default: {type: simulator}}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a job, its run `run`, and pairs."""
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "job.yaml").write_text(JOB)
    get_command(app)(["generate", str(folder / "job.yaml"), "-o", str(folder / "run")], standalone_mode=False)
    get_command(app)(["pairs", str(folder / "run"), "--by", "oracle"], standalone_mode=False)
    with change(folder / "run") as connection:
        connection.execute(
            "INSERT INTO batches VALUES (1, 'read', 'f', 'default', 'edgen-t', 1, 9, 'run.batches/1', 'f', 'b', 1, 2, NULL)"
        )
        connection.execute("INSERT INTO outstanding VALUES (1, NULL, 3, 0, 0, 0, x'00', 100, 0.25)")
        connection.execute("INSERT INTO returned VALUES (5, 0, 0, 0, x'00', 'timeout', 'late', 2)")
    return folder


@contextlib.contextmanager
def change(run: Path) -> Any:
    with contextlib.closing(sqlite3.connect(run / "run.db")) as connection, connection:
        yield connection


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "all")
    return tmp_path / "all"


def commands(folder: Path) -> list[tuple[str | Path, ...]]:
    """Return all commands that read a ledger, the fastest first."""
    job, run, results = folder / "job.yaml", folder / "run", folder / "results.jsonl"
    results.write_text('{"custom_id": "0-0-0-00000000000000000000000000000000", "response": {}}\n')
    return [
        ("status", run),
        ("runs", folder),
        ("batch", "list", run),
        ("batch", "cancel", run),
        ("batch", "read", run, results),
        ("estimate", job, "-o", run),
        ("export", run, "--to", "ed", "-o", folder / "ed"),
        ("export", run, "--to", "trl-dpo", "-o", folder / "dpo"),
        ("estimate", job, "--runs", folder, "-o", folder / "new"),
        ("merge", run, "-o", folder / "merged"),
        ("generate", job, "-o", run),
        ("pairs", run, "--by", "oracle"),
        ("stats", run),
        ("compare", run, run),
        ("report", run),
    ]


def test_every_command_on_hostile_values(command: Command, whole: Path, tmp_path: Path) -> None:
    """Each command gets some columns of each table; tests/ledger/test_hostile.py tries all of them."""
    for number, (table, column) in enumerate(list(tables(whole / "run" / "run.db"))[::4]):
        shutil.copytree(whole, folder := tmp_path / str(number))
        put(folder / "run" / "run.db", table, column, VALUES[number * 5 % len(VALUES)])
        told(command, commands(folder)[number % 11])


def test_every_command_on_flipped_bits(command: Command, whole: Path, tmp_path: Path) -> None:
    for number in range(len(commands(whole))):
        shutil.copytree(whole, folder := tmp_path / str(number))
        flip(folder / "run" / "run.db", number)
        told(command, commands(folder)[number])


@pytest.mark.parametrize("value", ["{", "[1]", "x" * 100])
def test_every_fact_may_say_anything(command: Command, folder: Path, value: str) -> None:
    lasting = "name NOT LIKE '%plan' AND name NOT LIKE '%simulated'"  # their checksums protect these
    with change(folder / "run") as connection:
        connection.execute(f"UPDATE meta SET value = ? WHERE {lasting}", (value,))
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('batches_since', ?)", (value,))
    job, run = folder / "job.yaml", folder / "run"
    shutil.copytree(run, folder / "other")
    for words in (
        ("status", run),
        ("merge", run, folder / "other", "-o", folder / "merged"),
        ("generate", job, "-o", run),
    ):
        told(command, words)
    assert command("stats", run).code == 0


def told(command: Command, words: tuple[str | Path, ...]) -> Ended:
    """Run a command and check that it ends without a traceback."""
    ended = command(*words)
    assert ended.code in (0, 2, 3), (words, ended)
    assert ended.code != 2 or ended.err.count("edgen: "), (words, ended)
    return ended


def test_a_flipped_bit_in_a_record_never_reaches_the_shards(command: Command, folder: Path) -> None:
    """The reply is intact, so the record is made again without a call, and the files are the same."""
    job, run = folder / "job.yaml", folder / "run"
    before = files(run)
    with change(run) as connection:
        data = bytearray(
            connection.execute("SELECT data FROM records WHERE scenario = 2 AND task = 0").fetchone()[0]
        )
        data[data.index(b'"conversation"') + 60] ^= 1
        connection.execute("UPDATE records SET data = ? WHERE scenario = 2 AND task = 0", (bytes(data),))
        connection.execute("DELETE FROM outstanding")
    for words in (("export", run, "--to", "ed", "-o", folder / "ed"), ("stats", run), ("report", run),
                  ("merge", run, "-o", folder / "merged")):  # fmt: skip
        ended = command(*words)
        assert ended.code == 2
        assert "scenario 2 (task 0) is damaged" in ended.err
        assert "`edgen generate`" in ended.err
    ended = command("generate", job, "-o", run, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["calls"]["now"] == 0
    assert files(run) == before
    assert command("stats", run).code == 0
    assert "nothing to do" in command("generate", job, "-o", run).err


@pytest.mark.parametrize("column", ["status", "reason"])
def test_a_flipped_bit_in_an_outcome_is_mended_from_the_answers(
    command: Command, folder: Path, column: str
) -> None:
    """Until the repair, unreadable outcomes count as pending."""
    job, run = folder / "job.yaml", folder / "run"
    before = files(run)
    with change(run) as connection:
        connection.execute(
            f"UPDATE outcomes SET {column} = CAST(x'e1' AS TEXT) WHERE scenario = 2 AND task = 0"
        )
        connection.execute("UPDATE outcomes SET status = 'abcepted' WHERE scenario = 1 AND task = 0")
        connection.execute("DELETE FROM outstanding")
    facts = json.loads(command("status", run, "--json").out)
    assert (facts["planned"], facts["accepted"], facts["pending"]) == (12, 10, 2)
    ended = command("generate", job, "-o", run, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["calls"]["now"] == 0
    assert files(run) == before


def test_a_flipped_bit_in_an_answer_is_told_before_it_is_read(command: Command, folder: Path) -> None:
    job, run = folder / "job.yaml", folder / "run"
    with change(run) as connection:
        connection.execute("DELETE FROM outcomes WHERE scenario = 2 AND task = 1")
        connection.execute("UPDATE replies SET text = text || '.' WHERE scenario = 2 AND task = 1")
    ended = command("generate", job, "-o", run)
    assert ended.code == 2
    assert "scenario 2 (task 1, step 0, attempt 0) is damaged" in ended.err
    assert "DELETE FROM replies WHERE" in ended.err


def test_others_are_listed_beside_a_damaged_one(command: Command, folder: Path) -> None:
    shutil.copytree(folder / "run", folder / "other")
    with change(folder / "run") as connection:
        connection.execute("CREATE VIEW v AS SELECT 1")
    rows = {row["name"]: row for row in json.loads(command("runs", folder, "--json").out)["runs"]}
    assert rows["other"]["state"] == "complete"
    assert rows["run"]["state"] == "unreadable"
    assert str(folder / "run" / "run.db") in rows["run"]["problem"]


def test_an_estimate_names_the_run_that_it_passes_over(command: Command, folder: Path) -> None:
    shutil.copytree(folder / "run", folder / "other")
    with change(folder / "run") as connection:
        connection.execute("UPDATE outcomes SET status = 'no such' WHERE scenario = 0 AND task = 0")
    ended = command("estimate", folder / "job.yaml", "--runs", folder, "-o", folder / "new", "--json")
    assert ended.code == 0, ended.err
    basis = json.loads(ended.out)["basis"]
    assert [run["run"] for run in basis["runs"]] == [str(folder / "other")]
    assert any(f"the ledger of {folder / 'run'} is damaged" in sentence for sentence in basis["said"])


def test_a_changed_manifest_of_a_run_that_is_being_extended_is_reported(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("simulator}", "simulator, max_tokens: 3000}"))
    made = ("generate", tmp_path / "job.yaml", "-o", tmp_path / "run", "-n")
    assert command(*made, "4").code == 0
    assert command(*made, "8", "--set", "limits.max_tokens=1").code == 4
    assert command("validate", tmp_path / "run").code == 0
    manifest = tmp_path / "run" / "shards" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"name": "run"', '"name": "ran"'))
    ended = command("validate", tmp_path / "run")
    assert ended.code == 3
    assert "manifest.json" in ended.out
    assert "it was changed after edgen wrote it" in ended.out
