"""The seal of a ledger that no process works on: the number of rows of each table, and their checksum.

Rows of replies, outcomes and records have checksums of their own. The seal covers the rest: removed rows, and
tables whose rows change while a process works. A process removes the seal before it writes and puts a new
one at its end; a killed process leaves none. Ledgers of an older edgen have none.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Annotated
from zlib import crc32

import msgspec

from edgen.core.errors import EdgenError
from edgen.store.ledger.checked_reader import CheckedReader, Natural
from edgen.store.ledger.facts import CHECKSUM, forget_fact, put_fact, read_fact
from edgen.store.ledger.opening import decode_fact

SEAL = "seal"
_PATIENCE = 1000  # milliseconds to wait for a database that another program holds

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
_CHECKSUMS = f"SELECT COUNT(*) FROM meta WHERE name = '{CHECKSUM}{SEAL}'"  # noqa: S608 - ours
_LASTING = ("sessions", "batches", "outstanding", "returned")  # a later session does not make them again
_AGAIN = (
    "Start the command that made this ledger again (`edgen generate`, or `edgen pairs` for a judge's): it makes them anew "
    "from the stored answers, without a call."
)
_COPY = "Restore the ledger from a copy: nothing else in the run says it."
_PROBLEMS = {
    "replies": "stored answers are missing. They are asked for and paid for again, unless the ledger is restored from a copy.",
    "records": f"records of conversations are missing, or there are more than edgen wrote. {_AGAIN}",
    "logprobs": f"log probabilities of stored answers are missing, or there are more than edgen wrote. {_COPY}",
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
    """The tables of a ledger at rest. `damaged`: tables that were found damaged earlier and were used
    nevertheless."""

    tables: dict[str, _Table] = {}
    damaged: Annotated[tuple[str, ...], msgspec.Meta(max_length=len(_COVERED))] = ()


def find_unsealed(book: CheckedReader) -> Iterator[str]:
    """Yield a sentence for each table that differs from the seal."""
    with book.transaction():
        seal = _read(book)
        changed = dict.fromkeys([*seal.damaged, *_changed(book, seal, _COVERED)])
        if seal != _Seal() and book.one(_CHECKSUMS, tuple[Natural])[0] == 0:
            changed["meta"] = None
    return (f"{book.path}: {_PROBLEMS[name]}" for name in changed if name in _PROBLEMS)


def open_seal(book: CheckedReader) -> list[str]:
    """Remove the seal at the start of work. Return a sentence for each table that differs from it and that
    no session makes again; these stay noted."""
    with book.transaction("BEGIN IMMEDIATE"):
        try:
            seal = _read(book)
        except EdgenError:  # damaged; `validate` reported it
            seal = _Seal()
        changed = _changed(book, seal, _LASTING)
        damaged = tuple(dict.fromkeys([*seal.damaged, *changed]))
        for sql, values in _put(_Seal(damaged=damaged)) if damaged else forget_fact(SEAL):
            book.write(sql, values)
    return [f"{book.path}: {_PROBLEMS[name]}" for name in changed]


def put_seal(book: CheckedReader) -> None:
    """Seal the ledger at the end of work. Leave it without a seal if another program holds the ledger, the
    disk is full, or a signal ends the statement."""
    connection = book.connection
    try:
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
        connection.execute("BEGIN IMMEDIATE")
        tables = {name: _sum_up(book, name) for name in _COVERED if _has(book, name)}
        for sql, values in _put(_Seal(tables, _read(book).damaged)):
            connection.execute(sql, values)
        connection.execute("COMMIT")
    except (sqlite3.Error, EdgenError, asyncio.CancelledError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if connection.raised:  # by the handler of a signal, meanwhile
        raise connection.raised.pop()


def _read(book: CheckedReader) -> _Seal:
    return decode_fact(read_fact(book, SEAL), _Seal, book.path, "its seal") or _Seal()


def _put(seal: _Seal) -> Iterator[tuple[str, tuple[str, str]]]:
    for sql, values in put_fact(SEAL, msgspec.json.encode(seal).decode()):
        yield sql, (values[0], values[1])


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
