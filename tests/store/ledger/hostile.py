"""Ledgers changed by an attacker, or by a failing disk."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgen.store.ledger.checked_reader import ReplyRow, compute_checksum, hash_record

# Values that SQLite stores in any column of any type. "=…" is an expression.
VALUES: tuple[Any, ...] = (
    None,
    -1,
    2**63 - 1,
    -(2**63),
    float("inf"),
    -1e308,
    "",
    "no such word",
    "../../etc/passwd",
    "[" * 5_000,
    b"\xff\xfe",
    "=CAST(x'ff28' AS TEXT)",
    "\x00\x1b[2J",
)


def tables(path: Path) -> Iterator[tuple[str, str]]:
    """Yield every table of a ledger with each of its columns."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for name in sorted(names):
            for column in connection.execute(f"PRAGMA table_info({name})").fetchall():
                yield name, column[1]


def again(ledger: Path, path: Path) -> Path:
    """Return a copy of a ledger, in place of another one and its log."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(ledger, path)
    return path


@contextlib.contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


@contextlib.contextmanager
def _unconstrained(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield the ledger without NOT NULL and without its trigger's count; restore both in the end."""
    with _open(path) as connection:
        schema = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
    try:
        with _open(path) as connection:
            yield connection
    finally:
        with _open(path) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            for name, sql in schema:
                connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))


def put(path: Path, table: str, column: str, value: Any) -> bool:
    """Set a column of a table's last row, with fitting checksums; return whether SQLite accepts it."""
    new = value[1:] if isinstance(value, str) and value.startswith("=") else "?"
    with _unconstrained(path) as connection:
        key = (
            "id"
            if table in ("sessions", "batches", "outstanding")
            else "scenario"
            if table != "meta"
            else "name"
        )
        where = "name = 'plan'" if table == "meta" else f"{key} = (SELECT MAX({key}) FROM {table})"
        try:
            connection.execute(
                f"UPDATE {table} SET {column} = {new} WHERE {where}", (value,) if new == "?" else ()
            )
        except sqlite3.Error:  # a text as a row's number
            return False
        seal(connection)
    return True


def seal(connection: sqlite3.Connection) -> None:
    """Make the checksum of each row fit, where it can have one: an attacker can compute it, too."""
    of = {
        "replies": (", ".join(ReplyRow._fields[:-1]), compute_checksum),
        "outcomes": ("scenario, task, status, reason, detail, grp, reply_key", compute_checksum),
        "records": ("scenario, task, data", hash_record),
    }  # fmt: skip
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    for table, (columns, checksum) in of.items():
        place = columns.split(", ")[: 5 if table == "replies" else 2]
        where = " AND ".join(f"{name} IS ?" for name in place)
        for facts in connection.execute(f"SELECT {columns} FROM {table}").fetchall():
            with contextlib.suppress(TypeError, UnicodeError, OverflowError):
                connection.execute(
                    f"UPDATE {table} SET checksum = ? WHERE {where} AND checksum IS NOT NULL",
                    (checksum(*facts), *facts[: len(place)]),  # type: ignore[operator]
                )
    connection.text_factory = str


def flip(path: Path, seed: int) -> None:
    """Flip some bits of a file, always the same ones for a seed."""
    rng, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 4, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
