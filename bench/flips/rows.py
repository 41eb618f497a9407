"""Changes of single fields and rows of a run's ledgers that `validate` does not report: `python -m bench
flips --rows`.

Each trial copies a ledger, changes one field or row of one of its tables, and checks the copy.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from edgen.store.ledger.checking import find_ledger_damage

_LIMIT = 3  # rows of a table, spread over it


class Change(NamedTuple):
    """A change of a ledger."""

    ledger: str
    table: str
    what: str
    sql: str
    values: tuple[Any, ...]


def find_silent_changes(run: Path) -> tuple[int, list[Change]]:
    """Change each field of some rows of each table of each ledger of a run, and remove and repeat these rows.

    Return the number of changes, and the changes that the check does not report.
    """
    count, silent = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy.db"
        for ledger in sorted(run.rglob("*.db")):
            for change in _changes(ledger, run):
                shutil.copyfile(ledger, copy)
                shutil.copyfile(f"{ledger}-acked", f"{copy}-acked")
                with contextlib.closing(sqlite3.connect(copy)) as connection:
                    try:
                        with connection:
                            changed = connection.execute(change.sql, change.values).rowcount
                    except sqlite3.IntegrityError:
                        continue
                if changed:
                    count += 1
                    if not any(True for _ in find_ledger_damage(copy)):
                        silent.append(change)
    return count, silent


def list_changes(run: Path) -> list[Change]:
    """Return the changes of every ledger of a run."""
    return [change for ledger in sorted(run.rglob("*.db")) for change in _changes(ledger, run)]


def apply_change(change: Change, run: Path) -> bool:
    """Change the ledger of a run; return whether anything changed."""
    with contextlib.closing(sqlite3.connect(run / change.ledger)) as connection:
        try:
            with connection:
                return connection.execute(change.sql, change.values).rowcount > 0
        except sqlite3.IntegrityError:
            return False


def _changes(ledger: Path, run: Path) -> Iterator[Change]:
    name = ledger.relative_to(run).as_posix()
    with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            info = connection.execute(f"PRAGMA table_info({table})").fetchall()
            columns = [column[1] for column in info]
            own = [column[1] for column in info if column[5]] or ["rowid"]
            rows = connection.execute(f"SELECT {', '.join(own)}, * FROM {table}").fetchall()
            for row in rows if table == "meta" else rows[:: max(1, len(rows) // _LIMIT)]:
                key, values = row[: len(own)], row[len(own) :]
                where = " AND ".join(f"{column} IS ?" for column in own)
                yield Change(name, table, f"no row {key}", f"DELETE FROM {table} WHERE {where}", key)
                for column, value in zip(columns, values, strict=True):
                    for other in _others(value):
                        sql = f"UPDATE {table} SET {column} = ? WHERE {where}"
                        yield Change(
                            name, table, f"{column} {value!r:.40} -> {other!r:.40}", sql, (other, *key)
                        )
                free = [
                    "NULL" if column in own and own[0] in ("id", "rowid") else column for column in columns
                ]
                free = [f"{column} + 1000" if column == "scenario" else column for column in free]
                free = ["name || 'x'" if column == "name" and table == "meta" else column for column in free]
                again = f"INSERT INTO {table} SELECT {', '.join(free)} FROM {table} WHERE {where}"
                yield Change(name, table, f"row {key} twice", again, key)


def _others(value: Any) -> tuple[Any, ...]:
    """Return other values of a field that are possible."""
    if value is None:
        return (1, "x")
    if isinstance(value, str):
        return (f"{value}x", value[:-1]) if value else ("x",)
    if isinstance(value, bytes):
        return (value[:-1] + bytes([value[-1] ^ 1]), b"") if value else (b"x",)
    return (value + 1, 0) if value else (value + 1,)
