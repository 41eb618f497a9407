"""The seal of a ledger that no process works on: the number of rows of each table, and their checksum.

Rows of replies, outcomes and records have checksums of their own. The seal covers the rest: removed rows, and
tables whose rows change while a process works. A process removes the seal before it writes, and puts a new
one at its end and whenever its writer has had nothing to write for a while (`IdleSeal`), as during the wait
for a batch. A process that is killed between two writes leaves none. Ledgers of an older edgen have none.
`find_unsealed` checks what it can in a ledger without a seal (see `notes`), and `is_sealed` says whether
there is one.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated
from zlib import crc32

import msgspec

from edgen.core.errors import EdgenError
from edgen.store.ledger.checked_reader import CheckedReader, Natural, open_to_read
from edgen.store.ledger.facts import CHECKSUM, forget_fact, put_fact, read_fact
from edgen.store.ledger.notes import find_changed_notes
from edgen.store.ledger.opening import Connection, decode_fact
from edgen.store.ledger.writer import COUNT, Statement

SEAL = "seal"
_PATIENCE = 1000  # milliseconds to wait for a database that another program holds
IDLE = 1.0  # seconds without a write before a ledger is sealed,
_SHARE = 50  # and at least this many times what the last seal took: 2% of one core at most

# Each table with the rows that are covered. Where a row has a checksum, the seal covers only the number.
_COUNTED = {name: f"SELECT COUNT(*) FROM {name}" for name in ("replies", "records", "logprobs")}  # noqa: S608 - ours
_COVERED = {
    **_COUNTED,
    "outcomes": "SELECT * FROM outcomes ORDER BY scenario, task",
    "sessions": "SELECT * FROM sessions ORDER BY id",
    "batches": "SELECT * FROM batches ORDER BY id",
    "outstanding": "SELECT * FROM outstanding ORDER BY id",
    "returned": "SELECT * FROM returned ORDER BY scenario, task, step, attempt, key",
    "meta": f"SELECT * FROM meta WHERE name NOT IN ('{SEAL}', '{CHECKSUM}{SEAL}') ORDER BY name",  # noqa: S608 - ours
}
_NO_OUTCOME = (
    "SELECT COUNT(*) FROM records r WHERE NOT EXISTS "
    "(SELECT 1 FROM outcomes o WHERE o.scenario = r.scenario AND o.task = r.task)"
)
_CHECKSUMS = f"SELECT COUNT(*) FROM meta WHERE name = '{CHECKSUM}{SEAL}'"  # noqa: S608 - ours
_LASTING = ("sessions", "batches", "outstanding", "returned")  # a later session does not make them again
_AGAIN = (
    "Start the command that made this ledger again (`edgen generate`, or `edgen pairs` for a judge's): it makes them again "
    "from the stored answers, without a call."
)
_COPY = "Restore the ledger from a copy: nothing else in the run says it."
_PROBLEMS = {
    "replies": "stored answers are missing. They are asked for and paid for again, unless the ledger is restored from a copy.",
    "records": f"records of conversations are missing, or there are more than edgen wrote. {_AGAIN}",
    "logprobs": f"log probabilities or times of stored answers are missing, or there are more than edgen wrote. {_COPY}",
    "outcomes": f"what was made of the answers is missing or changed. {_AGAIN}",
    "sessions": "the notes about its sessions (times, calls, tokens, costs, how each ended) are missing or changed; totals and "
    f"budgets of this run are not reliable. {_COPY}",
    "batches": f"the notes about its batches are missing or changed. {_COPY}",
    "outstanding": f"the notes about calls under way are missing or changed; budgets of this run are not reliable. {_COPY}",
    "returned": f"the notes about failed requests of batches are missing or changed. {_COPY}",
    "meta": f"facts about the run are missing or changed. {_COPY}",
}  # fmt: skip


class _Table(msgspec.Struct, frozen=True, array_like=True):
    """The number of rows of a table, and their checksum."""

    rows: Natural
    checksum: Natural


class _Seal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tables of a ledger at rest; none while a process works. `damaged`: tables that were found damaged
    earlier and were used nevertheless. `removed`: replies that were missing before this work began."""

    tables: dict[str, _Table] = {}
    damaged: Annotated[tuple[str, ...], msgspec.Meta(max_length=len(_COVERED))] = ()
    removed: Natural = 0

    @property
    def open(self) -> _Seal:
        """The note that remains while a process works."""
        return msgspec.structs.replace(self, tables={})


def is_sealed(path: Path) -> bool:
    """Return whether the ledger at `path` has a seal."""
    with open_to_read(path) as book:
        return bool(_read(book).tables)


def find_unsealed(book: CheckedReader) -> Iterator[str]:
    """Yield a sentence for each table that differs from the seal."""
    with book.transaction():
        seal = _read(book)
        changed = dict.fromkeys([*seal.damaged, *_changed(book, seal, _COVERED)])
        if not seal.tables:
            changed |= dict.fromkeys(_impossible(book, seal))
        if seal != _Seal() and book.one(_CHECKSUMS, tuple[Natural])[0] == 0:
            changed["meta"] = None
    return (f"{book.path}: {_PROBLEMS[name]}" for name in changed if name in _PROBLEMS)


def open_seal(book: CheckedReader) -> list[str]:
    """Remove the seal at the start of work. Return a sentence for each table that differs from it and that
    no session makes again; these stay noted, but for replies, which a session asks for again."""
    with book.transaction("BEGIN IMMEDIATE"):
        try:
            seal = _read(book)
        except EdgenError:  # damaged; `validate` reported it
            seal = _Seal()
        changed = _changed(book, seal, _LASTING)
        if not seal.tables:
            changed += [name for name in _find_changed_notes(book) if name not in seal.damaged]
        removed = _removed_replies(book)
        fewer = ["replies"] if removed > seal.removed else []
        damaged = tuple(dict.fromkeys([*seal.damaged, *changed]))
        for sql, values in _opened(_Seal(damaged=damaged, removed=removed)):
            book.write(sql, values)
    return [f"{book.path}: {_PROBLEMS[name]}" for name in (*fewer, *changed)]


def put_seal(book: CheckedReader, idle: IdleSeal | None = None) -> bool:
    """Seal the ledger; return whether it has a seal now. It has none if another program holds the ledger, the
    disk is full, a signal ends the statement, or `idle` does not allow it."""
    connection, done = book.connection, False
    try:
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
        connection.execute("BEGIN IMMEDIATE")
        if idle is None or idle.allowed:
            tables = {name: _sum_up(book, name) for name in _COVERED if _has(book, name)}
            for sql, values in _put(msgspec.structs.replace(_read(book), tables=tables)):
                connection.execute(sql, values)
            done = True
        connection.execute("COMMIT")
    except (sqlite3.Error, EdgenError, asyncio.CancelledError):
        done = False
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if connection.raised:  # by the handler of a signal, meanwhile
        raise connection.raised.pop()
    return done


class IdleSeal:
    """The seal of a ledger that a process works on, whose writer has nothing to write for a while.

    The writer's thread calls `put` and `break_`. `pause` and `resume` surround statements of another
    connection.
    """

    def __init__(self, path: Path) -> None:
        self.allowed = False
        self.after = IDLE  # seconds without a write
        self._path = path
        self._is_put = False
        self._open = _Seal()

    def pause(self, book: CheckedReader) -> None:
        """Remove the seal, and put none until `resume`."""
        self.allowed = False  # first: `put` looks at it within its transaction
        with book.transaction("BEGIN IMMEDIATE"):
            seal = _read(book)
            for sql, values in _opened(seal.open) if seal.tables else ():
                book.write(sql, values)

    def resume(self) -> None:
        """Allow seals again."""
        self.allowed = True

    def put(self, connection: Connection) -> None:
        """Seal the ledger."""
        began = time.thread_time()
        book = CheckedReader(connection, self._path)
        self._is_put = put_seal(book, self)
        if self._is_put:
            self._open = _read(book).open
        self.after = max(IDLE, _SHARE * (time.thread_time() - began))

    def break_(self) -> tuple[Statement, ...]:
        """Return the statements that remove the seal in the next transaction."""
        if not self._is_put:
            return ()
        self._is_put = False
        return tuple(_opened(self._open))


def _read(book: CheckedReader) -> _Seal:
    return decode_fact(read_fact(book, SEAL), _Seal, book.path, "its seal") or _Seal()


def _put(seal: _Seal) -> Iterator[tuple[str, tuple[str, str]]]:
    for sql, values in put_fact(SEAL, msgspec.json.encode(seal).decode()):
        yield sql, (values[0], values[1])


def _opened(seal: _Seal) -> Iterable[Statement]:
    """Return the statements that note an open seal, or that there is nothing to note."""
    return _put(seal) if seal != _Seal() else forget_fact(SEAL)


def _impossible(book: CheckedReader, seal: _Seal) -> Iterator[str]:
    """Yield the tables of a ledger without a seal that no work leaves so."""
    if _removed_replies(book) > seal.removed:
        yield "replies"
    else:
        yield from find_changed_notes(book)
    if book.one(_NO_OUTCOME, tuple[Natural])[0]:
        yield "outcomes"


def _find_changed_notes(book: CheckedReader) -> list[str]:
    try:
        return [*find_changed_notes(book)]
    except EdgenError:  # damaged; `validate` reported it
        return []


def _removed_replies(book: CheckedReader) -> int:
    """Return how many replies are missing before the last one: edgen removes none."""
    last, rows = (book.one(sql, tuple[Natural])[0] for sql in (COUNT, _COVERED["replies"]))
    return max(0, last - rows)


def _changed(book: CheckedReader, seal: _Seal, names: Iterable[str]) -> list[str]:
    return [name for name in names if name in seal.tables and _sum_up(book, name) != seal.tables[name]]


def _has(book: CheckedReader, name: str) -> bool:
    return name != "logprobs" or book.has_table(name)


def _sum_up(book: CheckedReader, name: str) -> _Table:
    """Return the number and the checksum of the rows of a table."""
    if not _has(book, name):
        return _Table(0, 0)
    rows = checksum = 0
    with book.explain_errors(), book.lenient_text():
        for row in book.connection.execute(_COVERED[name]):
            if name in _COUNTED:
                return _Table(row[0], 0)
            rows, checksum = rows + 1, crc32(ascii(row).encode(), checksum)
    return _Table(rows, checksum)
