"""Every single change of a ledger is reported, in any field or row of any table, at rest or after a kill."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from bench.flips.rows import find_silent_changes
from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Address, Reply, Status, Token, Usage
from edgen.store.ledger import Ledger, NotedBatch, Outcome, RunPlan, has_acknowledgement, has_tally
from edgen.store.ledger.checked_reader import CheckedReader, read_wall_time
from edgen.store.ledger.checking import find_ledger_damage
from edgen.store.ledger.merge import MergedLedger, SourceLedger
from edgen.store.ledger.tally import connect_counted
from tests.dose import dose
from tests.store.ledger import store_reply


async def work(path: Path, *, first: int = 0) -> None:
    """Run a session that stores something in each table."""
    async with Ledger(path, logprobs=True) as ledger:
        ledger.prepare_session()
        session = ledger.begin_session(1, "host", "0")
        ledger.set_fact("note", "a text")
        batch = await ledger.out.begin(fingerprint="f", backend="default", token="t", round_=1)
        for scenario in range(first, first + 3):
            place, key = Address(scenario, 0), bytes([scenario] * 32)
            reply = Reply(
                f"text {scenario}", usage=Usage(10, 2), tokens=(Token("text", -0.5, (("text", -0.5),)),)
            )
            await store_reply(ledger, place, key, reply, 1, 1, charged_tokens=12, cost_usd=0.25)
            ledger.settle(Outcome(scenario, 0, Status.ACCEPTED, None, None, 5, key), "f", b"{}")
            ledger.out.put(batch.number, place, b"k" * 32, 100, 0.5)
        ledger.settle(Outcome(first + 3, 0, Status.REJECTED, "short", None, 5, None), "f", None)
        await ledger.flush()
        waiting = ledger.out.find(first, 0, 0, b"k" * 32)[0]
        ledger.out.note_return(waiting, CallError(FailureKind.TIMEOUT, "late"), lost=True)
        await ledger.out.note(_sent(batch))
        ledger.note_session(session, replayed=1, retried=2, state="stopped", message="why")


def _sent(batch: NotedBatch) -> NotedBatch:
    return msgspec.structs.replace(batch, state="sent", remote_id="b", sent_at=read_wall_time(), requests=3)


def change(path: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        assert db.execute(sql).rowcount


@pytest.mark.long
@pytest.mark.parametrize("killed", dose([True], [False, True]))
def test_no_change_of_a_field_or_a_row_is_silent(tmp_path: Path, killed: bool) -> None:
    path = tmp_path / "run.db"
    asyncio.run(work(path))
    asyncio.run(work(path, first=10))
    if killed:
        kill(path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert [*find_ledger_damage(path)] == []
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        empty = [name for name in names if not db.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]]
    assert not empty
    count, silent = find_silent_changes(tmp_path)
    assert count > 300
    assert silent == []


@pytest.mark.parametrize(
    ("sql", "about"),
    [
        ("UPDATE sessions SET made = made + 1", "the notes about its sessions"),
        ("UPDATE sessions SET lost_usd = 0", "totals and budgets of this run are not reliable"),
        ("UPDATE outcomes SET fingerprint = 'g'", "outcomes of answers are missing or changed"),
        ("DELETE FROM outcomes WHERE status = 'rejected'", "outcomes of answers are missing"),
        ("DELETE FROM replies WHERE scenario = 1", "stored answers are missing"),
        ("UPDATE batches SET remote_id = 'c'", "the notes about its batches"),
        ("UPDATE outstanding SET usd = 0", "the notes about calls under way"),
        ("UPDATE returned SET tries = 9", "the notes about failed requests"),
        ("DELETE FROM meta WHERE name LIKE '%note'", "facts about the run"),
        (
            "DELETE FROM logprobs WHERE scenario = 1",
            "log probabilities or times of stored answers are missing",
        ),
        (
            "UPDATE logprobs SET data = x'00' WHERE scenario = 1",
            "log probabilities or times of a stored answer (scen",
        ),
    ],
)
async def test_each_table_is_named(tmp_path: Path, sql: str, about: str) -> None:
    path = tmp_path / "run.db"
    await work(path)
    change(path, sql)
    assert about in " ".join(find_ledger_damage(path))


async def test_damage_that_nothing_repairs_is_reported_by_later_work_and_afterwards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.db"
    await work(path)
    change(path, "UPDATE sessions SET cost_usd = 0.01")
    change(path, "UPDATE outcomes SET fingerprint = 'g'")
    with caplog.at_level(logging.WARNING, "edgen"):
        await work(path, first=10)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "totals and budgets of this run are not reliable" in told
    caplog.clear()
    await work(path, first=20)
    assert not caplog.records
    (problem,) = find_ledger_damage(path)
    assert problem == told


def test_a_killed_ledger_and_one_of_an_older_edgen_are_sound(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    asyncio.run(work(path))
    kill(path)
    assert [*find_ledger_damage(path)] == []
    asyncio.run(work(path, first=10))
    change(path, "DELETE FROM meta WHERE name LIKE '%tally'")
    assert not has_tally(path)
    change(path, "UPDATE sessions SET host = 'other'")
    assert [*find_ledger_damage(path)] == []
    asyncio.run(work(path, first=20))
    assert [*find_ledger_damage(path)] == []


def remove_answer(path: Path, scenario: int) -> None:
    for table in ("replies", "logprobs"):
        change(path, f"DELETE FROM {table} WHERE scenario = {scenario}")


async def die(path: Path) -> None:
    """Work, and end as a killed process does, with a call under way."""
    async with Ledger(path) as ledger:
        ledger.prepare_session()
        ledger.begin_session(2, "host", "0")
        await store_one(ledger, 50)
        await ledger.out.hold(Address(51, 0), b"k" * 32, 100, 0.5)
        os._exit(9)


async def store_one(ledger: Ledger, scenario: int) -> None:
    key = bytes([scenario] * 32)
    reply = Reply("text", usage=Usage(10, 2))
    await store_reply(ledger, Address(scenario, 0), key, reply, 1, 1, charged_tokens=12, cost_usd=0.25)
    ledger.settle(Outcome(scenario, 0, Status.ACCEPTED, None, None, 5, key), "f", b"{}")
    await ledger.flush()


def kill(path: Path) -> None:
    """Kill a process that works on a ledger."""
    if (child := os.fork()) == 0:
        asyncio.run(die(path))
    assert os.waitpid(child, 0)[1] == 9 << 8


async def test_the_tally_is_right_while_sessions_work(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        for session in range(1, 4):
            ledger.prepare_session()  # another session on the same ledger, by another connection
            assert [*find_ledger_damage(path)] == []
            assert ledger.begin_session(2, "host", "0") == session
            writing = asyncio.gather(*(store_one(ledger, 10 * session + each) for each in range(9)))
            await asyncio.sleep(0.01)
            assert [*find_ledger_damage(path)] == []
            await writing
            held = await ledger.out.hold(Address(99, 0), b"k" * 32, 100, 0.1)
            assert [*find_ledger_damage(path)] == []
            if session > 1:
                ledger.out.end_without_reply(held, 100, 0.1)
                await ledger.flush()
            assert [*find_ledger_damage(path)] == []


async def test_a_transaction_that_reads_waits_for_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        ledger.begin_session(2, "host", "0")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert ledger.read_status().session == 1
            other.execute("COMMIT")


async def test_a_transaction_that_is_undone_counts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    await work(path)
    with contextlib.closing(CheckedReader(connect_counted(path), path)) as book:
        with contextlib.suppress(ZeroDivisionError), book.run_transaction("BEGIN IMMEDIATE"):
            book.write("DELETE FROM outstanding")
            book.write("UPDATE outcomes SET fingerprint = 'g'")
            raise ZeroDivisionError
        with book.run_transaction("BEGIN IMMEDIATE"):
            rows = book.connection.execute("SELECT * FROM outcomes WHERE scenario = 1").fetchall()
            holes = ",".join("?" * len(rows[0]))
            book.connection.insert_rows(f"INSERT OR REPLACE INTO outcomes VALUES ({holes})", rows)
    assert [*find_ledger_damage(path)] == []


@pytest.mark.parametrize(
    ("sql", "about"),
    [
        ("DELETE FROM replies WHERE scenario = 1", "stored answers are missing"),
        ("DELETE FROM outcomes WHERE scenario = 1", "outcomes of answers are missing"),
        ("DELETE FROM records WHERE scenario = 1", "the outcome of scenario 1"),
    ],
)
def test_rows_removed_from_a_killed_ledger_are_reported(tmp_path: Path, sql: str, about: str) -> None:
    path = tmp_path / "run.db"
    asyncio.run(work(path))
    kill(path)
    change(path, sql)
    assert about in " ".join(find_ledger_damage(path))


def test_answers_removed_before_a_session_are_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.db"
    asyncio.run(work(path))
    remove_answer(path, 1)
    with caplog.at_level(logging.WARNING, "edgen"):
        kill(path)
        asyncio.run(work(path, first=20))
        assert "stored answers are missing" not in caplog.text  # the killed process printed it
        remove_answer(path, 2)
        asyncio.run(work(path, first=30))
    assert caplog.text.count("stored answers are missing") == 1
    assert [*find_ledger_damage(path)] == []


async def test_a_merged_ledger_has_a_tally(tmp_path: Path) -> None:
    path, merged = tmp_path / "run.db", tmp_path / "merged.db"
    async with Ledger(path) as ledger:
        ledger.begin_session(1, "host", "0")
        ledger.settle(Outcome(0, 0, Status.ACCEPTED, None, None, 5, None), "f", b"{}")
    with MergedLedger(merged, "f", lambda _facts: None) as book:
        book.add(SourceLedger(path, "run", tmp_path))
        book.close(RunPlan("run", "f", 1, 1, 1), {}, lambda _status: None)
    assert [*find_ledger_damage(merged)] == []
    change(merged, "UPDATE sessions SET host = 'other' WHERE id = 1")
    assert "the notes about its sessions" in " ".join(find_ledger_damage(merged))


async def test_a_checksum_that_is_left_of_a_fact_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    await work(path)
    for name in ("tally", "crc32 of tally"):
        copy = tmp_path / f"{name}.db"
        copy.write_bytes(path.read_bytes())
        change(copy, f"DELETE FROM meta WHERE name = '{name}'")
        assert [*find_ledger_damage(copy)]


@pytest.mark.parametrize("change", [bytes.upper, lambda line: line[:-1] + b"\v", lambda line: line + b" "])
async def test_the_count_of_stored_answers_is_read_byte_for_byte(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "run.db"
    await work(path)
    assert has_acknowledgement(path)
    note = tmp_path / "run.db-acked"
    note.write_bytes(changed := change(note.read_bytes()))
    assert has_acknowledgement(path) == (changed == changed.lower().rstrip() + b"\n")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE sessions SET made = made + 1 WHERE id = 1",
        "UPDATE sessions SET lost_usd = 7 WHERE id = 1",
        "DELETE FROM sessions WHERE id = 1",
        "UPDATE sessions SET host = 'other' WHERE id = 2",
        "UPDATE sessions SET made = made + 1 WHERE id = 2",
        "UPDATE sessions SET prompt_tokens = 0 WHERE id = 2",
        "UPDATE sessions SET cost_usd = NULL WHERE id = 2",
        "UPDATE sessions SET ended_at = 1 WHERE id = 2",
        "DELETE FROM sessions WHERE id = 2",
    ],
)
def test_changed_sessions_of_a_killed_ledger_are_reported_and_the_next_session_says_so(
    tmp_path: Path, sql: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.db"
    asyncio.run(work(path))
    kill(path)
    assert [*find_ledger_damage(path)] == []
    change(path, sql)
    (problem,) = find_ledger_damage(path)
    assert "totals and budgets of this run are not reliable" in problem
    with caplog.at_level(logging.WARNING, "edgen"):
        asyncio.run(work(path, first=20))
    assert [record.getMessage() for record in caplog.records] == [problem]
    assert [*find_ledger_damage(path)] == [problem]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE batches SET remote_id = 'c'",
        "UPDATE batches SET state = 'read'",
        "DELETE FROM batches WHERE id = 1",
        "UPDATE batches SET id = id + 5",
    ],
)
def test_changed_batches_of_a_killed_ledger_are_reported(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "run.db"
    asyncio.run(work(path))
    kill(path)
    change(path, sql)
    assert "the notes about its batches" in " ".join(find_ledger_damage(path))


async def test_a_changed_tally_is_reported_and_made_again(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    await work(path)
    change(path, "UPDATE meta SET value = '{}' WHERE name = 'tally'")
    assert "the note 'tally' in this ledger is damaged" in " ".join(find_ledger_damage(path))
    await work(path, first=20)
    assert [*find_ledger_damage(path)] == []
