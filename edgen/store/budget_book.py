"""The book of a budget over time: the daily spending of all runs that share it, and their open leases.

It is stored next to the budget's file, as FILE.db. A process takes a lease on money for several calls at
once, and returns the unused part at its end. An open lease counts as spent, so total spending never exceeds
the caps, even if processes are killed. The run that took a lease settles it at its next start, by the
spending in its own ledger; no process number or lock is needed. The lease of a run that never starts again
stays spent.

Days follow the budget file's time zone. Spending on a later day counts for today, too, so setting a clock
back brings no second allowance.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from edgen.config.budget_file import BudgetFile, read_budget_file
from edgen.core.errors import EdgenError, RunError, StoppedError
from edgen.core.files import remove_leftovers_for, write_new
from edgen.core.text import format_dollars

PICO = 10**12  # picodollars in a US dollar
_APPLICATION_ID = 0x65646262  # "edbb"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
_PATIENCE = 30.0  # seconds to wait for a book that another process is writing
_PART = 16  # a lease takes at most this fraction of the remaining budget, unless a single call needs more
_CALLS = 32  # number of calls that a lease should cover
_TABLES = """
CREATE TABLE spent (day TEXT PRIMARY KEY, tokens INTEGER NOT NULL, pico INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE leases (
    owner TEXT PRIMARY KEY,          -- a ledger: its own id and its place
    day TEXT NOT NULL,
    tokens INTEGER NOT NULL, pico INTEGER NOT NULL,           -- what is held at most
    base_tokens INTEGER NOT NULL, base_pico INTEGER NOT NULL, -- what the ledger had come to when it was taken
    checksum INTEGER NOT NULL
);
"""


class BudgetUse(NamedTuple):
    """Tokens and picodollars."""

    tokens: int
    pico: int

    def __add__(self, other: BudgetUse) -> BudgetUse:  # type: ignore[override]
        return BudgetUse(self.tokens + other.tokens, self.pico + other.pico)

    def __sub__(self, other: BudgetUse) -> BudgetUse:
        return BudgetUse(self.tokens - other.tokens, self.pico - other.pico)

    @property
    def positive(self) -> BudgetUse:
        """These amounts, with 0 for negative ones."""
        return BudgetUse(max(0, self.tokens), max(0, self.pico))

    def covers(self, other: BudgetUse) -> bool:
        return self.tokens >= other.tokens and self.pico >= other.pico


ZERO = BudgetUse(0, 0)
_NO_CAP = 2**62


class CapUse(NamedTuple):
    """Use of one cap. `money`: amounts are picodollars, else tokens. `period`: day or month. `left` is never
    negative."""

    cap: str
    money: bool
    period: str
    used: int
    most: int

    def format_amount(self, value: int) -> str:
        """Format an amount in the cap's unit, for people."""
        return format_dollars(value / PICO) if self.money else f"{value:,} tokens"

    @property
    def left(self) -> int:
        return max(0, self.most - self.used)


class BudgetBook:
    """The book of the budget file at `path`. `create`: create a missing book. Raises BudgetFileError for an
    invalid file, and RunError if the book cannot be used."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.file = Path(os.path.realpath(path))
        self.budget: BudgetFile = read_budget_file(self.file)
        self.path = self.file.with_name(f"{self.file.name}.db")
        if not os.path.lexists(self.path):
            if not create:
                return
            try:
                with contextlib.suppress(FileExistsError):
                    write_new(self.path, _make_image())
            except OSError as problem:
                raise RunError(
                    f"{self.path}: the budget's book cannot be made ({problem.strerror}); put "
                    f"{self.file.name} into a folder that can be written."
                ) from None
        if (
            self.path.lstat().st_nlink > 1
        ):  # creating a book ends with removing its temporary name, unless the process is killed
            remove_leftovers_for(self.path.parent, self.path.name.__eq__)
        kind = self.path.lstat()
        if not stat.S_ISREG(kind.st_mode) or kind.st_nlink > 1:
            raise RunError(f"{self.path}: the budget's book is a link or not a file; move it away.")
        with self._open() as connection:
            connection.execute("SELECT 1")

    # -- days

    def find_day(self, now: float) -> str:
        """Return the day of a moment, such as 2027-01-31."""
        moment = datetime.fromtimestamp(now, UTC)
        return (moment if self.budget.timezone == "utc" else moment.astimezone()).date().isoformat()

    def describe_next(self, day: str, *, month: bool) -> str:
        """Describe when the cap of a day, or of its month, resets."""
        date = datetime.fromisoformat(day)
        if not month:
            return "tomorrow 00:00" + self._zone
        first = (date.replace(day=1) + timedelta(days=32)).replace(day=1)
        return f"{first.date().isoformat()} 00:00{self._zone}"

    @property
    def _zone(self) -> str:
        return " UTC" if self.budget.timezone == "utc" else ""

    # -- leases

    def take_lease(self, owner: str, day: str, need: BudgetUse, base: BudgetUse) -> BudgetUse | None:
        """Reserve more for an owner, at least `need`. Return the additional amount; None if too little is
        left.

        `base`: the owner's spending before this day. It is stored with its first lease of the day.
        """
        with self._open() as connection:
            left = self._compute_left(connection, day)
            if not left.covers(need):
                return None
            wish = BudgetUse(
                *(min(some * _CALLS, rest // _PART) for some, rest in zip(need, left, strict=True))
            )
            grant = BudgetUse(*map(max, need, wish))
            row = connection.execute(
                "SELECT tokens, pico, base_tokens, base_pico FROM leases WHERE owner = ?", (owner,)
            ).fetchone()
            held, base = (BudgetUse(*row[:2]), BudgetUse(*row[2:])) if row else (ZERO, base)
            values = (owner, day, *(held + grant), *base)
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?,?,?,?,?,?,?)", (*values, _compute_checksum(*values))
            )
        return grant

    def end(self, owner: str, now_at: BudgetUse, base: BudgetUse | None = None) -> None:
        """Settle an owner's lease, if it has one, by the owner's spending, and return the rest to the book.
        `base`: the owner's spending before the lease's day; None: the stored amount."""
        with self._open() as connection:
            row = connection.execute(
                "SELECT day, base_tokens, base_pico FROM leases WHERE owner = ?", (owner,)
            ).fetchone()
            if row is None:
                return
            used = (now_at - (BudgetUse(*row[1:]) if base is None else base)).positive
            before = connection.execute("SELECT tokens, pico FROM spent WHERE day = ?", row[:1]).fetchone()
            values = (row[0], *(used + BudgetUse(*(before or ZERO))))
            connection.execute(
                "INSERT OR REPLACE INTO spent VALUES (?,?,?,?)", (*values, _compute_checksum(*values))
            )
            connection.execute("DELETE FROM leases WHERE owner = ?", (owner,))

    def list_use(self, day: str) -> list[CapUse]:
        """Return the use of each cap on a day."""
        if not self.path.exists():
            with contextlib.closing(_make_empty_book()) as connection:
                return [*self._list_uses(connection, day)]
        with self._open() as connection:
            return [*self._list_uses(connection, day)]

    def list_current_use(self) -> list[CapUse]:
        """Return the current use of each cap."""
        return self.list_use(self.find_day(time.time()))

    def sum_later_days(self, day: str) -> BudgetUse:
        """Return the spending on later days, which a clock that was ahead recorded."""
        with self._open() as connection:
            return self._sum(connection, "day > ?", day)

    @staticmethod
    def _sum(connection: sqlite3.Connection, condition: str, *values: object) -> BudgetUse:
        """Return the spent and the leased amounts on the days of a condition."""
        sums = [
            connection.execute(
                f"SELECT IFNULL(SUM(tokens), 0), IFNULL(SUM(pico), 0) FROM {table} WHERE {condition}",  # noqa: S608 - ours
                values,
            ).fetchone()
            for table in ("spent", "leases")
        ]
        return BudgetUse(*(sum(column) for column in zip(*sums, strict=True)))

    def _list_uses(self, connection: sqlite3.Connection, day: str) -> Iterator[CapUse]:
        budget = self.budget
        for period, key, money, tokens in (
            (day, "day", budget.per_day, budget.tokens_per_day),
            (day[:7], "month", budget.per_month, budget.tokens_per_month),
            ("", "total", budget.total, budget.tokens_total),
        ):
            if money is None and tokens is None:
                continue
            used = self._sum(connection, "substr(day, 1, ?) >= ?", len(period), period)
            if money is not None:
                yield CapUse(f"per_{key}" if period else key, True, period, used.pico, round(money * PICO))
            if tokens is not None:
                name = f"tokens_per_{key}" if period else f"tokens_{key}"
                yield CapUse(name, False, period, used.tokens, tokens)

    def _compute_left(self, connection: sqlite3.Connection, day: str) -> BudgetUse:
        stands = [*self._list_uses(connection, day)]
        tokens = min((one.left for one in stands if not one.money), default=_NO_CAP)
        return BudgetUse(tokens, min((one.left for one in stands if one.money), default=_NO_CAP))

    # -- file

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the book for one exclusive transaction. Raises RunError and StoppedError."""
        try:
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_PATIENCE
            )
        except sqlite3.Error as problem:
            raise self._explain(problem) from None
        with contextlib.closing(connection):
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                self._check(connection)
                yield connection
                connection.execute("COMMIT")
            except (sqlite3.Error, OverflowError, TypeError, ValueError) as problem:
                raise self._explain(problem) from None

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raise ValueError if the book holds anything that edgen does not write."""
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise ValueError("it is not the book of a budget")
        if connection.execute(_SCHEMA).fetchall() != _list_schema():
            raise RunError(
                f"{self.path}: another version of edgen made the budget's book; this one cannot read it. "
                "Use that version, "
                "or move the book away to begin a new one, without the earlier spending."
            )
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise ValueError(found)
        for table in ("spent", "leases"):
            for *values, checksum in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - ours
                if _compute_checksum(*values) != checksum:
                    raise ValueError(f"a row of {table} is not as it was written")

    def _explain(self, problem: Exception) -> EdgenError:
        text = str(problem)
        if "locked" in text:
            return StoppedError(
                f"{self.path}: another program keeps the budget's book locked. Start again later."
            )
        if "disk" in text and "malformed" not in text:
            return StoppedError(
                f"{self.path}: the budget's book cannot be written ({text}). Make room first."
            )
        if "unable to open" in text:
            return RunError(
                f"{self.path}: the budget's book is gone or cannot be opened ({text}). Without it the "
                "spending is unknown: restore it, or start again to begin a new one."
            )
        if "readonly" in text:
            return RunError(
                f"{self.path}: the budget's book cannot be written ({text}). Each call is noted in it "
                "before it is sent, so "
                f"make the book and its folder writable, or name another file in limits.budget."
            )
        return RunError(
            f"{self.path}: the budget's book is damaged ({text}). Restore it from a copy, or move it away "
            "to begin a new one, without the earlier spending."
        )


def _compute_checksum(*values: object) -> int:
    return zlib.crc32(repr(values).encode())


@functools.cache
def _make_image() -> bytes:
    """Return an empty book as file content, so that no process ever sees a book without tables."""
    with contextlib.closing(_make_empty_book()) as connection:
        return bytes(connection.serialize())


@functools.cache
def _list_schema() -> list[tuple[str, ...]]:
    """Return the tables and indexes of a book, in SQLite's own notation."""
    with contextlib.closing(_make_empty_book()) as connection:
        return connection.execute(_SCHEMA).fetchall()


def _make_empty_book() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(f"{_TABLES} PRAGMA application_id = {_APPLICATION_ID};")
    return connection
