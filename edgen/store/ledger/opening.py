"""How a ledger is opened: made whole, recognised, or refused.

A ledger may come from a stranger, or be damaged. Nothing of it is a link; its tables, indexes and trigger are those
that edgen makes, to the letter, and there are no others, so no statement of somebody else's runs; SQLite is told to
trust nothing that it reads. A statement that takes long answers signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import stat
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import msgspec

from edgen.core.errors import DamagedError, EdgenError, RunError, StoppedError
from edgen.core.files import DISK_FULL, write_new, write_whole
from edgen.store.ledger.schema import APPLICATION_ID, SCHEMA, VERSION, expected, image

T = TypeVar("T")

_LONGEST = 1 << 28  # bytes of a value: more than any answer or record can have
_STATEMENT = 1 << 20  # bytes of a statement
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK = 20_000  # steps of SQLite's machine, some milliseconds, after which signals are looked for
_GUARDS = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -4096;"


class Connection(sqlite3.Connection):
    """A connection whose statements end when a signal comes. `raised`: what the signal's handler raised meanwhile."""

    raised: list[BaseException]


def connect(path: Path, *, create: bool = False, read_only: bool = False, still: bool = False) -> Connection:
    """A connection to the ledger at `path`. Raises RunError if it is missing, torn or not a ledger of edgen's.

    `still`: nobody writes to it and its log is empty, so that it is read without a trace beside it. What is opened
    `read_only` is read so where its folder cannot be written: no reader can make its log there either."""
    require_files(path)
    if create:
        _make(path)
    elif not path.exists():
        raise RunError(f"{path}: there is no ledger here; is this the folder of a run?")
    # Where nothing can be put beside the ledger, it is read as it is.
    still = still or (read_only and not os.access(path.parent, os.W_OK) and not has_log(path))
    uri = still_uri(path) if still else f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rw'}"
    try:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30, factory=Connection
        )
    except sqlite3.Error as problem:
        raise describe_sqlite_error(path, problem) from None
    try:
        _guard(connection)
        _recognise(connection, path)
    except sqlite3.Error as problem:
        connection.close()
        raise find_raised_error(connection, path, problem) from None
    except UnicodeDecodeError:  # SQLite's own words about a table whose name is no text any more
        connection.close()
        raise describe_sqlite_error(path, sqlite3.DatabaseError("malformed database schema")) from None
    except BaseException:
        connection.close()
        raise
    return connection


def require_files(path: Path) -> None:
    """Raise RunError where the ledger or a file that SQLite keeps beside it is a link, or no file at all: what is
    written to it would go elsewhere. A rollback journal is refused, too: edgen's ledgers never have one, and SQLite
    would do what it says."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        place = path.with_name(path.name + suffix)
        try:
            found = place.lstat()
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise RunError(f"{place}: it cannot be read ({problem.strerror}).") from None
        if not stat.S_ISREG(found.st_mode):
            what = "a link" if stat.S_ISLNK(found.st_mode) else "no file"
            raise RunError(f"{place}: this is {what}, and a ledger is a file. Nothing was read or changed.")
        if suffix == "-journal":
            raise DamagedError(
                f"{place}: this is a journal of another kind than edgen's ledgers have, and what it says is not done. "
                f"Nothing was changed. If the ledger beside it is whole, remove the journal."
            )


def _make(path: Path) -> None:
    """Have a ledger there, whole from the first moment on."""
    try:
        logged = has_log(path)
        if not path.exists():
            if logged:
                raise RunError(
                    f"{path}-wal: this is the log of a ledger that is missing. Restore {path.name} beside it, or choose "
                    "another run folder with -o."
                )
            with contextlib.suppress(FileExistsError):  # somebody was quicker
                write_new(path, image())
        # What a start that was killed has left, or a program that looked for tables before there were any.
        if not path.stat().st_size and not logged:
            write_whole(path, image())
    except OSError as problem:
        said = "disk is full" if problem.errno in DISK_FULL else f"unable to open: {problem.strerror}"
        raise describe_sqlite_error(path, said) from None


def has_log(path: Path) -> bool:
    """Whether something of the ledger is in its log, and not in its file yet."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def still_uri(path: Path) -> str:
    """What opens, or attaches, the database at `path` as it is: without a lock, a log or any other file."""
    return f"{path.resolve().as_uri()}?mode=ro&immutable=1"


def _guard(connection: Connection) -> None:
    """Before anything is read."""
    connection.raised = []
    ticks = _ticks(connection.raised)
    next(ticks)
    connection.set_progress_handler(ticks.__next__, _TICK)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _STATEMENT)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    connection.executescript(_GUARDS)


def _ticks(raised: list[BaseException]) -> Generator[int, None, None]:
    """What SQLite asks now and then: 0 to go on, 1 to end the statement. Handlers of signals run where a generator is
    resumed, which is inside the `try`; in a function they would run before its first line, and SQLite would drop what
    they raise."""
    while True:
        try:
            yield 1 if raised or _is_cancelled() else 0
        except GeneratorExit:
            return
        except BaseException as problem:  # noqa: BLE001 - whatever a handler raises, for whoever asked SQLite
            raised.append(problem)


def _is_cancelled() -> bool:
    """Whether the task that waits for the statement is to end: asyncio answers a first Ctrl-C so."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop in this thread
        return False
    return task is not None and task.cancelling() > 0


def _recognise(connection: Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        if application == 0 and not connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise empty_error(path)
        raise RunError(
            f"{path}: this is not an edgen ledger. Nothing was changed; "
            "move it away or choose another run folder with -o."
        )
    if version != VERSION:
        raise RunError(
            f"{path}: this ledger has layout {version}, and this edgen reads layout {VERSION}. "
            "Nothing was changed; use the edgen that made it, or another run folder."
        )
    plain, more = expected()
    found = connection.execute(f"{SCHEMA.format('')} LIMIT ?", (len(more) + 1,)).fetchall()
    if set(found) not in (plain, more):
        strange = sorted(str(row[1])[:40] for row in set(found) - more or plain - set(found))
        raise DamagedError(
            f"{path}: this ledger was changed by something else than edgen: its tables, indexes and triggers are not "
            f"those that edgen makes ({', '.join(strange[:3])}). Nothing was read or changed; restore it from a copy, "
            "or choose another run folder with -o."
        )


def check(connection: Connection, path: Path) -> None:
    """Raise DamagedError if the file is torn (pages missing or malformed).

    SQLite asks nobody whether to go on while it looks through the pages, so it does that in a thread."""
    found: list[object] = []

    def look() -> None:
        try:
            found.append(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.Error as problem:
            found.append(problem)

    thread = threading.Thread(target=look, name="edgen-check", daemon=True)
    # A signal while the thread is being started would leave it at work, and nobody to end it.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        thread.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        while thread.is_alive() and not _is_cancelled():
            thread.join(0.05)
        if thread.is_alive():
            raise asyncio.CancelledError
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        if thread.is_alive():
            connection.interrupt()
            thread.join()
    if found != ["ok"]:
        raise describe_sqlite_error(path, found[0])


def find_raised_error(connection: Connection, path: Path, problem: Exception) -> BaseException:
    """What a statement that went wrong is raised as: what a signal's handler raised, or a sentence."""
    if connection.raised:
        return connection.raised.pop()
    if str(problem) == "interrupted" and _is_cancelled():
        return asyncio.CancelledError()
    return describe_sqlite_error(path, problem)


def describe_sqlite_error(path: Path, problem: object) -> EdgenError:
    """What sqlite says about the file at `path`, as a sentence with a way out."""
    if isinstance(problem, EdgenError):
        return problem
    text = str(problem)
    if "disk is full" in text or "disk I/O" in text:
        return StoppedError(
            f"{path}: the ledger cannot be written ({text}). Everything answered before is stored. "
            "Make room on the disk and start the same command again: it goes on where it stopped."
        )
    if "locked" in text:
        return RunError(f"{path}: another program keeps the ledger locked ({text}).")
    if "unable to open" in text or "readonly" in text:
        return RunError(f"{path}: the ledger cannot be opened here ({text}); is the folder writable?")
    return damaged_error(path, text)


def empty_error(path: Path) -> RunError:
    """Nothing is in the ledger at `path`, not even that somebody worked on it."""
    return RunError(
        f"{path}: this ledger is empty. If a run was killed before it began, start it again; if it had "
        "answers, its log (run.db-wal) is missing: restore that beside it, or choose another run folder with -o."
    )


def decode_fact(noted: str | None, kind: type[T], path: Path, name: str) -> T | None:
    """A fact of the ledger at `path` that is noted as JSON; None where it is not. Raises DamagedError for one that is none."""
    if noted is None:
        return None
    try:
        return msgspec.json.decode(noted, type=kind)
    except (ValueError, RecursionError) as problem:
        raise damaged_error(path, f"{name} is none: {problem}") from None


def damaged_error(path: Path, what: str) -> DamagedError:
    """The ledger at `path` holds what it should not."""
    return DamagedError(
        f"{path}: the ledger is damaged or no ledger at all ({what}). Nothing was changed. "
        f"Restore it from a copy, save what can be read with `sqlite3 {path.name} .recover`, "
        "or choose another run folder with -o."
    )
