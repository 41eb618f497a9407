"""Opening of ledgers: creation, recognition, refusal.

A ledger may be foreign or damaged. No part of it may be a link. Its tables and indexes must equal edgen's
exactly, so no foreign statement runs. SQLite trusts nothing that it reads. Long statements react to signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from edgen.core import system
from edgen.core.errors import DamagedError, RunError
from edgen.core.files import DISK_FULL, write_whole
from edgen.store.ledger.problems import describe_sqlite_error, make_damaged_error, make_empty_error
from edgen.store.ledger.schema import (
    APPLICATION_ID,
    LOGPROBS,
    PAGE,
    TABLES,
    TRIGGER,
    UPGRADE,
    UPGRADED,
    VERSION,
)

T = TypeVar("T")

_LONGEST = 1 << 28  # bytes of a value; no reply or record has more
_STATEMENT = 1 << 20  # bytes of a statement
_BUSY = 250  # milliseconds that SQLite itself waits for a locked database, each time
_SPEAK = (5.0, 60.0)  # seconds of waiting before the first and further reports
_TICK = 20_000  # steps of SQLite's machine (some milliseconds) between checks for signals
_CACHE = 1024  # kB of pages that a connection keeps; rows are read and written nearly in order
_GUARDS = (
    "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; "
    f"PRAGMA cache_size = -{_CACHE};"
)

log = logging.getLogger("edgen")


def _keep_value(value: T) -> T:
    """Return a value as it is."""
    return value


# sqlite3 looks for an adapter of every value except numbers and plain str. To find none takes three times as
# long as to find this one.
for _kind in (bytes, type(None)):
    sqlite3.register_adapter(_kind, _keep_value)


class CommitListener(Protocol):
    """A listener to the rows that a connection inserts, and to the ends of its transactions."""

    def note_inserted(self, sql: str, rows: Sequence[Sequence[Any]], count: int) -> None:
        """Handle a statement that was executed for these rows and changed `count` rows."""

    def settle(self, connection: LedgerConnection) -> None:
        """Make the listener's own changes before the transaction commits."""

    def forget(self) -> None:
        """Drop the changes, since the transaction is rolled back."""


class LedgerConnection(sqlite3.Connection):
    """A connection whose statements end when a signal comes. `raised`: the exception of the signal's handler.
    `counter` is notified of `insert_rows`, `commit` and `rollback`."""

    raised: list[BaseException]
    counter: CommitListener | None = None

    def insert_rows(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of these rows."""
        cursor = self.executemany(sql, rows)
        if self.counter is not None:
            self.counter.note_inserted(sql, rows, cursor.rowcount)

    def commit(self) -> None:
        if self.counter is not None:
            self.counter.settle(self)
        super().commit()

    def rollback(self) -> None:
        if self.counter is not None:
            self.counter.forget()
        super().rollback()


def connect(
    path: Path, *, create: bool = False, read_only: bool = False, still: bool = False
) -> LedgerConnection:
    """Connect to the ledger at `path`. Raises RunError if it is missing, torn or not a ledger of edgen.

    `still`: no process writes to it and its log is empty, so it is read without creating files next to it. A
    `read_only` ledger in a read-only folder is read the same way, since no log can be made there.
    """
    require_files(path)
    if create:
        _make(path)
    elif not path.exists():
        raise RunError(
            f"{path}: there is no ledger here; is this the folder of a run? If it is, restore {path.name} "
            "from a copy."
        )
    # If the folder is read-only, read the ledger without a log.
    still = still or (read_only and not system.may_write(path.parent) and not has_log(path))
    uri = (
        make_immutable_uri(path) if still else f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rw'}"
    )
    try:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30, factory=LedgerConnection
        )
    except sqlite3.Error as problem:
        raise describe_sqlite_error(path, problem) from None
    try:
        _guard_connection(connection)
        _recognise(connection, path)
    except sqlite3.Error as problem:
        connection.close()
        raise find_raised_error(connection, path, problem) from None
    except UnicodeDecodeError:  # SQLite's message on a table whose name is no longer text
        connection.close()
        raise describe_sqlite_error(path, sqlite3.DatabaseError("malformed database schema")) from None
    except BaseException:
        connection.close()
        raise
    return connection


def require_files(path: Path) -> None:
    """Raise RunError if the ledger, or a file that SQLite keeps next to it, is a link or not a regular file,
    since writes would go elsewhere. A rollback journal is refused, too: edgen's ledgers never have one, and
    SQLite would apply it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        place = path.with_name(path.name + suffix)
        try:
            found = place.lstat()
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise RunError(f"{place}: it cannot be read ({problem.strerror}).") from None
        if not stat.S_ISREG(found.st_mode):
            what = "a link" if stat.S_ISLNK(found.st_mode) else "not a file"
            raise RunError(
                f"{place}: this is {what}; a ledger is a regular file. Nothing was read or changed."
            )
        if suffix == "-journal":
            raise DamagedError(
                f"{place}: this kind of journal does not belong to a ledger of edgen, which does not apply "
                f"it. Nothing was changed. If the ledger next to it is intact, remove the journal."
            )


def _make(path: Path) -> None:
    """Create the ledger atomically if it is missing."""
    try:
        logged = has_log(path)
        if logged and not path.exists():
            raise RunError(
                f"{path}-wal: this is the log of a missing ledger. Restore {path.name} next to it, or "
                "choose another run folder."
            )
        # Empty: left by a killed start, or by a program that looked for tables too early.
        if not path.exists() or (not path.stat().st_size and not logged):
            # Rename, not link: a kill between link and unlink would leave a ledger with two names. The
            # process holds a lock, so no other creates it first.
            write_whole(path, render_empty_ledger())
    except OSError as problem:
        said = "disk is full" if problem.errno in DISK_FULL else f"unable to open: {problem.strerror}"
        raise describe_sqlite_error(path, said) from None


def has_log(path: Path) -> bool:
    """Return whether the ledger's log holds changes that its file lacks."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def make_immutable_uri(path: Path) -> str:
    """Return the URI that opens the database at `path` without a lock, a log or any other file."""
    return f"{path.resolve().as_uri()}?mode=ro&immutable=1"


def _guard_connection(connection: LedgerConnection) -> None:
    """Set limits and safe options before anything is read."""
    connection.raised = []
    ticks = _answer_ticks(connection.raised)
    next(ticks)
    connection.set_progress_handler(ticks.__next__, _TICK)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _STATEMENT)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    connection.executescript(_GUARDS)


def _answer_ticks(raised: list[BaseException]) -> Generator[int, None, None]:
    """Yield the answers to SQLite's progress handler: 0 to continue, 1 to end the statement.

    Handlers of signals run where a generator is resumed, which is inside the `try`. In a function they would
    run before its first line, and SQLite would drop their exceptions.
    """
    while True:
        try:
            yield 1 if raised or _is_cancelled() else 0
        except GeneratorExit:
            return
        except BaseException as problem:  # noqa: BLE001 - any exception of a handler
            raised.append(problem)


def _is_cancelled() -> bool:
    """Return whether the task that waits for the statement is cancelled. asyncio cancels it at the first
    Ctrl-C."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop in this thread
        return False
    return task is not None and task.cancelling() > 0


def _recognise(connection: LedgerConnection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        if application == 0 and not connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise make_empty_error(path)
        raise RunError(
            f"{path}: this is not an edgen ledger. Nothing was changed; "
            "move it away or use another run folder."
        )
    if version not in (UPGRADED, VERSION):
        raise RunError(
            f"{path}: this ledger has layout {version}, and this edgen reads layout {VERSION}. "
            "Nothing was changed; use the edgen that made it, or another run folder."
        )
    plain, more = make_expected_schema(version)
    found = connection.execute(f"{SCHEMA.format('')} LIMIT ?", (len(more) + 1,)).fetchall()
    if set(found) not in (plain, more):
        strange = sorted(str(row[1])[:40] for row in set(found) - more or plain - set(found))
        raise DamagedError(
            f"{path}: another program changed this ledger: its tables, indexes and triggers are not "
            f"those that edgen creates ({', '.join(strange[:3])}). Nothing was read or changed; restore it "
            "from a copy, or use another run folder."
        )


SCHEMA = "SELECT type, name, tbl_name, sql FROM {}sqlite_master"


Tables = frozenset[tuple[str, str, str, str | None]]


@functools.cache
def make_expected_schema(version: int = VERSION) -> tuple[Tables, Tables]:
    """Return the expected contents of sqlite_schema (type, name, table, SQL), without and with log
    probabilities. SQLite keeps the SQL byte for byte."""
    with contextlib.closing(make_database(version)) as connection:
        plain = frozenset(connection.execute(SCHEMA.format("")))
        connection.execute(LOGPROBS)
        return plain, frozenset(connection.execute(SCHEMA.format("")))


@functools.cache
def render_empty_ledger(version: int = VERSION) -> bytes:
    """Return an empty ledger as file content, so that no process ever sees a ledger without tables."""
    with contextlib.closing(make_database(version)) as connection:
        data = bytearray(connection.serialize())
    data[18] = data[19] = 2  # the file format's flag for a write-ahead log (WAL)
    return bytes(data)


def make_database(version: int = VERSION) -> sqlite3.Connection:
    """Return an empty ledger in memory."""
    connection = sqlite3.connect(":memory:")
    trigger = f"{TRIGGER};" if version == UPGRADED else ""
    connection.executescript(
        f"PRAGMA page_size = {PAGE}; {TABLES} {trigger}"
        f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};"
    )
    return connection


def upgrade(connection: LedgerConnection, path: Path) -> None:
    """Upgrade a ledger of the previous layout. Versions of edgen for that layout cannot read it
    afterwards."""
    if connection.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    run_when_free(connection, path, lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        for statement in UPGRADE:
            connection.execute(statement)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def check(connection: LedgerConnection, path: Path) -> None:
    """Raise DamagedError if the file is torn (pages missing, malformed or swapped) or an index does not match
    its table.

    Reads the whole file: about a second of processor time per gigabyte. SQLite calls no progress handler
    during this check, so it runs in a thread.
    """
    found: list[object] = []

    def look() -> None:
        try:
            found.append(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        except sqlite3.Error as problem:
            found.append(problem)

    thread = threading.Thread(target=look, name="edgen-check", daemon=True)
    # If a signal came while the thread starts, nothing would control the thread.
    release = system.hold_signals()
    try:
        thread.start()
        release()
        while thread.is_alive() and not _is_cancelled():
            thread.join(0.05)
        if thread.is_alive():
            raise asyncio.CancelledError
    finally:
        release()
        if thread.is_alive():
            connection.interrupt()
            thread.join()
    if found != ["ok"]:
        raise describe_sqlite_error(path, found[0])


def find_raised_error(connection: LedgerConnection, path: Path, problem: Exception) -> BaseException:
    """Return the exception for a failed statement: the one of a signal's handler, or an explanation."""
    if connection.raised:
        return connection.raised.pop()
    if str(problem) == "interrupted" and _is_cancelled():
        return asyncio.CancelledError()
    return describe_sqlite_error(path, problem)


def decode_fact(noted: str | None, kind: type[T], path: Path, name: str) -> T | None:
    """Decode a fact of the ledger at `path`, stored as JSON; None if missing. Raises DamagedError if it is
    invalid."""
    if noted is None:
        return None
    try:
        return msgspec.json.decode(noted, type=kind)
    except (ValueError, RecursionError) as problem:
        raise make_damaged_error(path, f"{name} is invalid: {problem}") from None


def run_when_free(
    connection: sqlite3.Connection,
    path: Path,
    work: Callable[[], object],
    patience: Callable[[], float] = lambda: float("inf"),
    speak: tuple[float, float] = _SPEAK,
) -> None:
    """Run `work`, which changes the database at `path`, as soon as no other program locks it. Raises SQLite's
    error if that takes longer than `patience` (seconds, read again during the wait). `speak`: seconds before
    the first and before further reports."""
    connection.execute(f"PRAGMA busy_timeout = {_BUSY}")
    began = spoke = time.monotonic()
    wait, later = speak
    while True:
        try:
            work()
            return
        except sqlite3.OperationalError as problem:
            now = time.monotonic()
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or now - began > patience():
                raise
            if now - spoke >= wait:
                log.warning(
                    "%s: another program has held the ledger for %d s. edgen waits and keeps the answers, "
                    "and makes no call until they are stored.",
                    path,
                    now - began,
                )
                spoke, wait = now, later
