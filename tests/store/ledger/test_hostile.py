"""A hostile or damaged ledger is read completely or refused with a sentence, for any content."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sqlite3
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core.errors import DamagedError, EdgenError, RunError
from edgen.core.values import Address, Reply, Status, Usage
from edgen.store.ledger import (
    Ledger,
    LedgerReader,
    Outcome,
    RunPlan,
    Scope,
    count_outstanding_at,
    read_summary,
    run_status,
    sum_charges_at,
)
from edgen.store.ledger.merge import SourceLedger
from edgen.store.ledger.opening import render_empty_ledger
from tests import fork_server
from tests.dose import dose
from tests.store.ledger import store_reply
from tests.store.ledger.hostile import VALUES, again, flip, put, tables

PLAN = RunPlan(name="t", fingerprint="f", scenarios=4, replicates=1, asked=4)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


async def _fill(path: Path) -> None:
    async with Ledger(path) as ledger:
        ledger.begin_session(1, "host", "0")
        ledger.set_fact("plan", msgspec.json.encode(PLAN).decode())
        for i in range(3):
            await store_reply(
                ledger, Address(i, 0), key(i), Reply(f"text {i}", usage=Usage(3, 4)), 0.1, 1, cost_usd=0.5
            )
            ledger.settle(Outcome(i, 0, Status.ACCEPTED, None, None, 7, key(i)), "f", b'{"n": %d}' % i)
        await store_reply(ledger, Address(3, 0), key(3), Reply("no"), 0.1, 1)
        ledger.settle(Outcome(3, 0, Status.REJECTED, "refused", "no", 7, key(3)), "f", None)
        batch = await ledger.out.begin(fingerprint="f", backend="default", token="t", round_=1)
        ledger.out.put(batch.number, Address(3, 0, 1), key(4), 10, 0.5)
        await ledger.out.note(
            msgspec.structs.replace(batch, state="ready", file="run.batches/1", file_id="x")
        )
        await ledger.flush()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO returned VALUES (3, 0, 0, 0, ?, 'timeout', 'late', 2)", (key(3),))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    asyncio.run(_fill(path := tmp_path_factory.mktemp("ledger") / "run.db"))
    return path


def read_all(path: Path) -> None:
    """Read everything that any command reads of a ledger."""
    (
        read_summary(path),
        run_status(path),
        count_outstanding_at(path, 1),
        sum_charges_at(path, lambda prompt, completion: 0.0),
    )
    with LedgerReader(path) as view:
        for each in (view.list_accepted, view.iterate_records, view.list_settled, view.list_refused, view.list_spending, view.list_outstanding_tasks, view.iterate_latencies,
                     view.iterate_groups):  # fmt: skip
            list(each())
        list(view.list_counted_replies())
        view.read_sessions(), view.simulated, view.is_sound()
        for index in range(4):
            view.read_outcomes(index), view.read_record(index, 0)


async def work_on(path: Path) -> None:
    """Do everything that `generate` and `batch` read of it and write to it."""
    async with Ledger(path, create=False) as ledger:
        _ = ledger.plan
        ledger.prepare_session()
        ledger.sum_charges(lambda prompt, completion: 0.0)
        list(ledger.list_settled("f", 0, 4)), ledger.count_settled("f", 0, 4, 1), ledger.read_status()
        outcomes = ledger.open_outcomes(Scope("f", 4, 1))
        list(outcomes.iterate_groups()), list(outcomes.iterate_records()), list(outcomes.list_refused())
        for index in range(4):
            ledger.read_replies(index, 0), ledger.read_reply(Address(index, 0), key(index))
            (
                ledger.out.read_failure(Address(index, 0), key(index)),
                ledger.out.find(index, 1, 0, key(4)[:2]),
            )
            ledger.out.has(Address(index, 0), key(4)), ledger.out.is_back(index, 0, 0, key(4)[:2])
        for batch in ledger.list_batches():
            ledger.out.read_sums(batch.number)
        ledger.begin_session(1, "host", "0")
        await store_reply(ledger, Address(9, 0), key(9), Reply("new", usage=Usage(5, 5)), 0.1, 1)
        await ledger.out.begin(fingerprint="f", backend="default", token="t", round_=2)


def survives(path: Path) -> None:
    """Check that a ledger is read, or refused with a sentence that names it."""
    for read in (
        read_all,
        lambda path: SourceLedger(path, "r", path.parent),
        lambda path: asyncio.run(work_on(path)),
    ):
        refused = None
        try:
            read(path)
        except EdgenError as error:
            refused = error
        assert refused is None or (refused.exit_code, str(path) in str(refused)) == (2, True), refused


@pytest.mark.long
@pytest.mark.integration
def test_any_value_in_any_column(small: Path, tmp_path: Path) -> None:
    path, taken = tmp_path / "run.db", 0
    for number, (table, column) in enumerate(tables(small)):
        values = (VALUES[number * 2 % len(VALUES)], VALUES[(number * 2 + 7) % len(VALUES)])
        for value in values[: dose(1, 2)]:
            taken += put(again(small, path), table, column, value)
            survives(path)
    assert taken > dose(50, 100)


def test_flipped_bits(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    for seed in range(60):
        flip(again(small, path), seed)
        survives(path)


CHANGES = {
    "a view": "CREATE VIEW v AS SELECT * FROM replies",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM replies; END",
    "a table": "CREATE TABLE more (x)",
    "a column": "ALTER TABLE meta ADD COLUMN x",
    "a generated column": "ALTER TABLE meta ADD COLUMN x AS (upper(name))",
    "an index": "CREATE INDEX i ON replies (model)",
    "an index on an expression": "CREATE INDEX i ON replies (abs(step))",
    "no index": "DROP INDEX replies_by_call",
    "another name": "ALTER TABLE returned RENAME TO back",
    "a view in place of a table": "DROP TABLE returned; CREATE VIEW returned AS SELECT 1 AS scenario",
    "statistics": "ANALYZE",
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_tables_than_edgen_s_are_refused(small: Path, tmp_path: Path, change: str) -> None:
    shutil.copyfile(small, path := tmp_path / "run.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(CHANGES[change])
    before = path.read_bytes()
    for read in (read_all, Ledger, lambda path: SourceLedger(path, "r", tmp_path)):
        with pytest.raises(DamagedError, match="another program changed this ledger"):
            read(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["run.db", "run.db-wal", "run.db-shm", "run.db-journal"])
def test_what_is_no_file_is_not_written_through(small: Path, tmp_path: Path, name: str) -> None:
    if name != "run.db":
        shutil.copyfile(small, tmp_path / "run.db")
    victim = tmp_path / "victim"
    victim.write_bytes(small.read_bytes() if name == "run.db" else b"mine")
    before = victim.read_bytes()
    (tmp_path / name).symlink_to(victim)
    for read in (read_all, Ledger, lambda path: SourceLedger(path, "r", tmp_path)):
        with pytest.raises(RunError, match="a link"):
            read(tmp_path / "run.db")
    assert victim.read_bytes() == before


def test_a_journal_that_edgen_never_writes_is_not_played_back(small: Path, tmp_path: Path) -> None:
    shutil.copyfile(small, path := tmp_path / "run.db")
    path.with_name("run.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))
    with pytest.raises(RunError, match="journal"):
        read_all(path)


@pytest.mark.integration
async def test_a_ledger_is_whole_from_the_first_moment(tmp_path: Path) -> None:
    """A reader that opens it while it is made finds no ledger, or one with its tables."""
    path = tmp_path / "run.db"
    code = textwrap.dedent("""
        import sys, pathlib
        from edgen.store.ledger.opening import connect
        for number in range(100):
            path = pathlib.Path(sys.argv[1]) / str(number) / "run.db"
            path.parent.mkdir()
            connect(path, create=True).close()
    """)
    making = await fork_server.start(tmp_path, code=code)
    seen = 0
    try:
        while making.returncode is None:
            for folder in sorted(tmp_path.iterdir(), key=lambda made: int(made.name))[-3:]:
                if (path := folder / "run.db").exists():
                    assert run_status(path).plan.name == ""
                    seen += 1
            await asyncio.sleep(0)
    finally:
        await making.wait()
    assert making.returncode == 0
    assert (path.stat().st_size, seen > 0) == (len(render_empty_ledger()), True)


def test_a_log_without_its_ledger_is_not_taken_for_another_s(small: Path, tmp_path: Path) -> None:
    (tmp_path / "run.db-wal").write_bytes(b"answers")
    with pytest.raises(RunError, match="log of a missing ledger"):
        Ledger(tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


# --- sums ----------------------------------------------------------------------------------------


async def test_sums_beyond_what_sqlite_counts(tmp_path: Path) -> None:
    """A service may report any number of tokens."""
    path, most = tmp_path / "run.db", 2**62
    async with Ledger(path) as ledger:
        ledger.begin_session(1, "host", "0")
        ledger.set_fact("plan", msgspec.json.encode(PLAN).decode())
        for i in range(4):
            usage = Usage(most, most)
            await store_reply(
                ledger, Address(i, 0), key(i), Reply("x", usage=usage), 0.1, 1, charged_tokens=most
            )
            ledger.out.put(1, Address(i, 0, 1), key(i), most, 1e17)
        ledger.out.end_without_reply(99, most, 1e17)
        ledger.out.end_without_reply(99, most, 1e17)
        await ledger.flush()
        assert ledger.sum_charges(lambda prompt, completion: 0.0)[0] >= most
        assert ledger.out.read_sums(1)[0] == 4
        ledger.prepare_session()
    assert run_status(path).counts.prompt_tokens == most
    with LedgerReader(path) as view:
        assert [row[3] for row in view.list_spending()] == [most] * 4
        list(view.list_outstanding_tasks()), list(view.list_counted_replies())
    read_summary(path)


# --- checksums -----------------------------------------------------------------------------------


def change(path: Path, sql: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql, values).rowcount == 1


@pytest.mark.parametrize("data", [b"\xff", b"{", b"[" * 100_000, b"{} {}", b"", b'{"a": "\xff"}'])
async def test_a_record_that_is_none_is_made_again(small: Path, tmp_path: Path, data: bytes) -> None:
    """An attacker can compute a checksum, too."""
    put(path := again(small, tmp_path / "run.db"), "records", "data", data)
    with LedgerReader(path) as view, pytest.raises(DamagedError, match="scenario 2"):
        list(view.iterate_records())
    async with Ledger(path) as ledger:
        with pytest.raises(DamagedError, match="scenario 2"):
            list(ledger.open_outcomes(Scope("f", 4, 1)).iterate_records())
        ledger.prepare_session()
        assert [unit[0] for unit in ledger.list_settled("f", 0, 99)] == [0, 1, 3]


DERIVED = {
    "record": "UPDATE records SET data = x'7b7d' WHERE scenario = 1",
    "status": "UPDATE outcomes SET status = 'rejected' WHERE scenario = 1",
    "reason": "UPDATE outcomes SET reason = 'refusee' WHERE scenario = 1",
    "group": "UPDATE outcomes SET grp = 8 WHERE scenario = 1",
    "number": "UPDATE outcomes SET scenario = 77 WHERE scenario = 1",
    "text": "UPDATE outcomes SET status = CAST(x'ff' AS TEXT) WHERE scenario = 1",
    "no record": "DELETE FROM records WHERE scenario = 1",
}


@pytest.mark.parametrize("what", DERIVED)
async def test_what_is_made_of_answers_and_damaged_is_made_again(
    small: Path, tmp_path: Path, what: str
) -> None:
    shutil.copyfile(small, path := tmp_path / "run.db")
    change(path, DERIVED[what])
    if what != "text":
        with LedgerReader(path) as view:
            assert not view.is_sound()
    if what in ("record", "reason", "group"):
        with LedgerReader(path) as view, pytest.raises(DamagedError, match=r"scenario 1 .*made again"):
            list(view.list_settled()), list(view.iterate_records())
    with pytest.raises(DamagedError):
        SourceLedger(path, "r", tmp_path)
    async with Ledger(path) as ledger:
        ledger.prepare_session()
        assert [unit[0] for unit in ledger.list_settled("f", 0, 99)] == [0, 2, 3], "it is pending again"
        assert ledger.read_replies(1, 0), "and its answer is there"
    with LedgerReader(path) as view:
        assert view.is_sound()


@pytest.mark.parametrize(
    "column", ["text", "finish_reason", "refusal", "model", "prompt_tokens", "simulated"]
)
async def test_a_damaged_answer_is_not_read(small: Path, tmp_path: Path, column: str) -> None:
    shutil.copyfile(small, path := tmp_path / "run.db")
    value = {"finish_reason": "length", "prompt_tokens": 4, "simulated": 1}.get(column, "texT 1")
    change(path, f"UPDATE replies SET {column} = ? WHERE scenario = 1", value)
    async with Ledger(path) as ledger:
        assert ledger.read_replies(0, 0)
        with pytest.raises(DamagedError, match=r"scenario 1 \(task 0, step 0, attempt 0\)") as told:
            ledger.read_replies(1, 0)
        with pytest.raises(DamagedError):
            ledger.read_reply(Address(1, 0), key(1))
    way_out = str(told.value).partition(f"sqlite3 {path} ")[2].strip('"')
    change(path, way_out)
    async with Ledger(path) as ledger:
        assert not ledger.read_replies(1, 0)


def test_a_rejected_answer_that_is_damaged_is_not_written_down(small: Path, tmp_path: Path) -> None:
    shutil.copyfile(small, path := tmp_path / "run.db")
    change(path, "UPDATE replies SET text = 'nO' WHERE scenario = 3")
    with LedgerReader(path) as view, pytest.raises(DamagedError, match="scenario 3"):
        list(view.list_refused())


# --- signals -------------------------------------------------------------------------------------

ENDLESS = """
import asyncio, pathlib, signal, sqlite3, sys
from edgen.cli.output import run_guarded
from edgen.store.ledger.checked_reader import CheckedReader
from edgen.store.ledger.opening import check, connect

def count(path):
    book = CheckedReader(connect(path), path)
    print("begun", flush=True)
    book.read_rows("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n", tuple[int])

def look(path):
    connection = connect(path)
    print("begun", flush=True)
    while True:
        check(connection, path)

async def inside(path):
    {how}(path)

path = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background begins without it
sys.exit(run_guarded(lambda: {call}))
"""


@pytest.mark.parametrize("how", ["count", "look"])
@pytest.mark.parametrize("call", ["{how}(path)", "asyncio.run(inside(path))"], ids=["plain", "in a loop"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.crash
async def test_a_signal_ends_a_statement_without_end(
    small: Path, tmp_path: Path, how: str, call: str, number: int, code: int
) -> None:
    shutil.copyfile(small, path := tmp_path / "run.db")
    process = await fork_server.start(path, code=ENDLESS.format(how=how, call=call.format(how=how)))
    try:
        assert await process.stdout.readline() == b"begun\n"
        await asyncio.sleep(0.1)
        process.send_signal(number)
        _, err = await asyncio.wait_for(process.communicate(), 600)
    finally:
        process.kill()  # a statement without end would run for ever
        await process.wait()
    assert (process.returncode, b"Traceback" in err) == (code, False), err


def test_a_page_of_rows_holds_no_more_than_a_few_megabytes(tmp_path: Path) -> None:
    """A row may claim to have 200 MB, and many rows may share the same pages of a file."""
    from edgen.store.ledger.checked_reader import CheckedReader
    from edgen.store.ledger.opening import connect

    book = CheckedReader(connect(path := tmp_path / "run.db", create=True), path)
    book.connection.executemany(
        "INSERT INTO records VALUES (?, 0, zeroblob(1000000), 0)", ((n,) for n in range(20))
    )
    rows, whole = book.read_page("SELECT data FROM records", tuple[bytes], ())
    assert (len(rows), whole) == (9, False)
    with pytest.raises(DamagedError, match="too big"):
        book.read_rows("SELECT zeroblob(300000000)", tuple[bytes])
