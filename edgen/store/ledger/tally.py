"""The tally of a ledger: the number of rows of each table, and the sum of their checksums.

Each transaction that changes rows also changes the tally, so it is always right, even after a kill. It
reveals rows that another program changed, removed or added. In a connection that writes, temporary triggers
collect the rows that its statements add and remove; the tables in the file stay unchanged. The writer's
connection reports its insertions itself, since triggers would cost as much as the rows of replies. Ledgers of
older versions of edgen have no tally until their next session.

Replies, records and log probabilities have checksums of their own and are only counted. The last session
changes with each reply, so it is read once per transaction instead.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from zlib import crc32

import msgspec

from edgen.core.errors import DamagedError
from edgen.store.ledger.checked_reader import CheckedReader, Natural, open_to_read
from edgen.store.ledger.facts import CHECKSUM, put_fact, read_fact
from edgen.store.ledger.opening import LedgerConnection, connect, decode_fact, make_database
from edgen.store.ledger.schema import (
    LOGPROBS,
)

_TALLY = "tally"  # the fact's name
_NOT_OWN = f"name NOT IN ('{_TALLY}', '{CHECKSUM}{_TALLY}')"
_VALUE = "SELECT value FROM meta WHERE name = ?"
_CHANGE = "UPDATE meta SET value = ?2 WHERE name = ?1"
_AGAIN = (
    "Start the command that made this ledger again (`edgen generate`, or `edgen pairs` for a judge's): it "
    "makes them again from the stored answers, without a call."
)
_COPY = "Restore the ledger from a copy: nothing else in the run contains them."
_PROBLEMS = {
    "replies": "stored answers are missing, or there are more than edgen wrote. Missing ones are asked for "
    "and paid for again, unless the ledger is restored from a copy.",
    "records": f"records of conversations are missing, or there are more than edgen wrote. {_AGAIN}",
    "logprobs": "log probabilities or times of stored answers are missing, or there are more than edgen "
    f"wrote. {_COPY}",
    "outcomes": f"outcomes of answers are missing or changed. {_AGAIN}",
    "sessions": "the notes about its sessions (times, calls, tokens, costs, how each ended) are missing or "
    f"changed; totals and budgets of this run are not reliable. {_COPY}",
    "batches": f"the notes about its batches are missing or changed. {_COPY}",
    "outstanding": "the notes about calls under way are missing or changed; budgets of this run are not "
    f"reliable. {_COPY}",
    "returned": f"the notes about failed requests of batches are missing or changed. {_COPY}",
    "meta": f"facts about the run are missing or changed. {_COPY}",
}  # fmt: skip
MADE_AGAIN = ("outcomes", "records", "logprobs", "meta")  # by the next session
_LASTING = tuple(name for name in _PROBLEMS if name not in MADE_AGAIN)
_COUNTED = frozenset({"replies", "records", "logprobs"})  # tables whose rows have checksums
_INSERTED = frozenset({"replies", "records", "logprobs", "outcomes"})  # tables with many inserted rows
_encode = msgspec.msgpack.Encoder().encode


class _Table(msgspec.Struct, frozen=True, array_like=True):
    """The number of rows of a table, and the sum of their checksums."""

    rows: int = 0
    checksum: int = 0

    def plus(self, other: _Table) -> _Table:
        return _Table(self.rows + other.rows, self.checksum + other.checksum)

    def minus(self, other: _Table) -> _Table:
        return _Table(self.rows - other.rows, self.checksum - other.checksum)


class _Tally(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tables as edgen left them. `last`: the last session's number and row; `tables` includes it.
    `damaged`: tables that were found changed and were used nevertheless."""

    tables: dict[str, _Table]
    last: tuple[Natural, _Table] = (0, _Table())
    damaged: Annotated[tuple[str, ...], msgspec.Meta(max_length=len(_PROBLEMS))] = ()


class RowCounter:
    """The rows that a connection adds to a ledger and removes from it. Each of its transactions ends with
    `settle`, or with `forget` if it is rolled back. `told`: the connection reports its insertions by
    `note_inserted`, each an `executemany` of whole rows.

    The triggers call only methods of lists. The handler of a signal runs at the beginning of any Python
    function, and SQLite would drop its exception.
    """

    def __init__(self, reader: CheckedReader, *, told: bool = False) -> None:
        self._path = reader.path  # the path, not the connection, since the connection refers to this object
        self._told = told
        self._inserted: dict[str, _Table] = {}
        self._rows: dict[str, tuple[int, list[Any], list[Any]]] = {}  # columns, values added, removed
        self._tally: _Tally | None = None
        self._noted = ""
        # A replaced row counts as removed. The triggers take few pages, which stay in memory. `temp_store =
        # MEMORY` would also keep SQLite's sorting in memory, such as all groups of a run.
        sql = ["PRAGMA recursive_triggers = ON"]
        for table in _PROBLEMS:
            if table == "sessions" or not reader.has_table(table):
                continue
            self._rows[table] = (len(_list_columns(table)), [], [])
            reader.connection.create_function(f"{table}_added", 1, self._rows[table][1].append)
            reader.connection.create_function(f"{table}_removed", 1, self._rows[table][2].append)
            plus = _render_calls(f"{table}_added", table, "NEW")
            minus = _render_calls(f"{table}_removed", table, "OLD")
            for change, row, calls in (
                ("INSERT", "NEW", plus),
                ("DELETE", "OLD", minus),
                ("UPDATE", "NEW", f"{minus}, {plus}"),
            ):
                if told and change == "INSERT" and table in _INSERTED:
                    continue
                when = f"WHEN {row}.{_NOT_OWN}" if table == "meta" else ""
                sql.append(
                    f"CREATE TEMP TRIGGER {table}_{change} AFTER {change} ON main.{table} {when} BEGIN "
                    f"SELECT {calls}; END"
                )
        with reader.explain_errors():
            reader.connection.executescript("; ".join(sql))
        reader.connection.counter = self

    def note_inserted(self, sql: str, rows: Sequence[Sequence[Any]], count: int) -> None:
        """Count the rows of a statement that was executed for these rows and changed `count` rows."""
        table = sql.partition(" INTO ")[2].partition(" ")[0]
        if not self._told or table not in _INSERTED:
            return
        if not (places := _find_places(table)):
            new = _Table(count)
        else:  # no row of these is ignored
            columns = [
                [b"t" + row[at].encode() for row in rows] if text else [row[at] for row in rows]
                for at, text in places
            ]
            new = _Table(len(rows), sum(map(crc32, map(_encode, zip(*columns, strict=True)))))
        self._inserted[table] = self._inserted.get(table, _Table()).plus(new)

    def settle(self, connection: LedgerConnection) -> None:
        """Change the tally by the rows of this transaction."""
        reader = CheckedReader(connection, self._path)
        # A damaged tally is left as it is: `validate` reports it, and the next session makes a new one.
        with contextlib.suppress(DamagedError):
            if (tally := self._read(reader)) is not None:
                self._tally = self._apply_changes(reader, tally)
                self._noted = msgspec.json.encode(self._tally).decode()
                rows = [row for _, row in put_fact(_TALLY, self._noted)]
                connection.executemany(_CHANGE, rows)  # an update writes fewer pages than `put_fact`
        self.forget()

    def _read(self, reader: CheckedReader) -> _Tally | None:
        """Return the tally, usually the one that this connection wrote."""
        row = reader.connection.execute(_VALUE, (_TALLY,)).fetchone()
        return self._tally if row is not None and row[0] == self._noted else _read(reader)

    def _apply_changes(self, reader: CheckedReader, tally: _Tally) -> _Tally:
        tables = dict(tally.tables)
        for name, new in self._inserted.items():
            tables[name] = tables[name].plus(new)
        for name, (columns, added, removed) in self._rows.items():
            if added or removed:
                tables[name] = tables[name].plus(_sum_rows(added, columns)).minus(_sum_rows(removed, columns))
        number, row = _read_last(reader)
        if number < tally.last[0]:  # another program removed it
            number, row = tally.last
        elif number == tally.last[0]:
            tables["sessions"] = tables["sessions"].minus(tally.last[1])
        tables["sessions"] = tables["sessions"].plus(row)
        return _Tally(tables, (number, row), tally.damaged)

    def forget(self) -> None:
        """Drop the collected rows."""
        for _, added, removed in self._rows.values():
            added.clear()
            removed.clear()
        self._inserted.clear()


def connect_counted(path: Path) -> LedgerConnection:
    """Connect to the ledger at `path` to write to it."""
    connection = connect(path)
    RowCounter(CheckedReader(connection, path), told=True)
    return connection


def has_tally(path: Path) -> bool:
    """Return whether the ledger at `path` has a tally."""
    with open_to_read(path) as reader:
        return _read(reader) is not None


def find_changed_tables(reader: CheckedReader) -> Iterator[str]:
    """Yield a sentence for each table that differs from the tally."""
    with reader.run_transaction():
        tally = _read(reader)
        changed = [] if tally is None else [*tally.damaged, *_find_changed(reader, tally, _PROBLEMS)]
        if reader.require_row(f"SELECT COUNT(*) FROM meta WHERE NOT {_NOT_OWN}", tuple[Natural])[0] == 1:  # noqa: S608 - ours
            changed.append("meta")
    return (f"{reader.path}: {_PROBLEMS[name]}" for name in dict.fromkeys(changed) if name in _PROBLEMS)


def open_tally(reader: CheckedReader) -> list[str]:
    """Count the rows of a ledger without a tally. Otherwise return a sentence for each table that differs
    from the tally and that no session makes again. These tables stay marked as damaged, except replies, whose
    calls a session repeats."""
    with reader.run_transaction("BEGIN IMMEDIATE"):
        try:
            tally = _read(reader)
        except DamagedError:  # `validate` has reported it
            tally = None
        if tally is None:
            _write(reader, _Tally(dict.fromkeys(_PROBLEMS, _Table())))
            count_tables(reader, _PROBLEMS)
            return []
        changed = _find_changed(reader, tally, _LASTING)
        damaged = dict.fromkeys([*tally.damaged, *(name for name in changed if name != "replies")])
        if changed:
            _write(reader, msgspec.structs.replace(tally, damaged=tuple(damaged)))
            count_tables(reader, changed)
    return [f"{reader.path}: {_PROBLEMS[name]}" for name in changed]


def count_tables(reader: CheckedReader, names: Iterable[str]) -> None:
    """Update the tally to the present content of these tables, in the present transaction."""
    if reader.connection.counter is not None:
        reader.connection.counter.settle(reader.connection)
    tally = _read(reader)
    assert tally is not None, "opening made it"
    last = _read_last(reader) if "sessions" in names else tally.last
    tables = tally.tables | {name: _count(reader, name) for name in names}
    _write(reader, _Tally(tables, last, tally.damaged))


def _read(reader: CheckedReader) -> _Tally | None:
    return decode_fact(read_fact(reader, _TALLY), _Tally, reader.path, "its tally")


def _write(reader: CheckedReader, tally: _Tally) -> None:
    for sql, values in put_fact(_TALLY, msgspec.json.encode(tally).decode()):
        reader.write(sql, values)


def _find_changed(reader: CheckedReader, tally: _Tally, names: Iterable[str]) -> list[str]:
    return [name for name in names if _count(reader, name) != tally.tables.get(name)]


def _count(reader: CheckedReader, table: str) -> _Table:
    """Return the number of rows of a table, and the sum of their checksums."""
    if not reader.has_table(table):
        return _Table()
    where = f"WHERE {_NOT_OWN}" if table == "meta" else ""
    with reader.explain_errors():
        if table in _COUNTED:
            return _Table(*reader.connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone())  # noqa: S608 - ours
        rows = checksum = 0
        for row in reader.connection.execute(_select(table, where)):
            rows, checksum = rows + 1, checksum + crc32(_encode(row))
    return _Table(rows, checksum)


def _sum_rows(values: list[Any], columns: int) -> _Table:
    """Return the number of rows and the sum of their checksums, given their values one after another. Without
    columns there is one value for each row, and rows are only counted."""
    if not columns:
        return _Table(len(values))
    rows = range(0, len(values), columns)
    return _Table(len(rows), sum(crc32(_encode(values[at : at + columns])) for at in rows))


def _read_last(reader: CheckedReader) -> tuple[int, _Table]:
    """Return the number of the last session, and its row."""
    with reader.explain_errors():
        row = reader.connection.execute(_select("sessions", "ORDER BY id DESC LIMIT 1")).fetchone()
    return (0, _Table()) if row is None else (row[0], _Table(1, crc32(_encode(row))))


@functools.cache
def _list_columns(table: str) -> dict[str, str]:
    """Return the columns of a table that the tally covers, with their types."""
    if table in _COUNTED:
        return {}
    found = list_all_columns()[table]
    # The checksum of an outcome covers its other columns.
    return {name: found[name] for name in ("fingerprint", "checksum")} if table == "outcomes" else found


@functools.cache
def _find_places(table: str) -> list[tuple[int, bool]]:
    """Return the places in a row of the columns that the tally covers, and whether they hold texts."""
    every = [*list_all_columns()[table]]
    return [(every.index(name), kind == "TEXT") for name, kind in _list_columns(table).items()]


@functools.cache
def _select(table: str, more: str = "") -> str:
    return f"SELECT {', '.join(_render_values(table, table))} FROM {table} {more}"  # noqa: S608 - ours


def _render_calls(function: str, table: str, row: str) -> str:
    return ", ".join(f"{function}({value})" for value in _render_values(table, row) or ["0"])


def _render_values(table: str, row: str) -> list[str]:
    """Return SQL for the values of a row. Texts become bytes, since they may be invalid UTF-8, with a prefix
    that distinguishes them from blobs. In existing rows any column may hold a text."""
    return [
        f"CASE typeof({row}.{name}) WHEN 'text' THEN CAST('t' || {row}.{name} AS BLOB) ELSE {row}.{name} END"
        if kind in ("TEXT", "") or row != "NEW"
        else f"{row}.{name}"
        for name, kind in _list_columns(table).items()
    ]


@functools.cache
def list_all_columns() -> dict[str, dict[str, str]]:
    """Return the columns of each table with their declared types."""
    with contextlib.closing(make_database()) as connection:
        connection.execute(LOGPROBS)
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({name})")}
            for (name,) in names
        }
