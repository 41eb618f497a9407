"""Reading a ledger: each value is held against what it can be, and what goes wrong is a sentence.

Raises DamagedError for a row that edgen would not have written, and EdgenError for whatever SQLite says.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import DamagedError
from edgen.core.values import Reply, TaskId, Usage
from edgen.store.ledger import checksums
from edgen.store.ledger.column_types import BLOB, FINISH, NATURAL, STATUS, TASK, TEXT, ColumnType, wrong
from edgen.store.ledger.lock_wait import when_free
from edgen.store.ledger.opening import Connection, damaged_error, find_raised_error

Values = Sequence[Any] | Mapping[str, Any]
Kinds = Sequence[ColumnType]

_HELD = 8 << 20  # bytes of a page of rows, about

REPLY_COLUMNS = "scenario, task, step, attempt, key, finish_reason, refusal, model, simulated, prompt_tokens, completion_tokens, text, checksum"
REPLY = (NATURAL, TASK, NATURAL, NATURAL, BLOB, FINISH, TEXT.or_none, TEXT.or_none, NATURAL, NATURAL.or_none,
         NATURAL.or_none, TEXT, NATURAL)  # fmt: skip
OUTCOME_COLUMNS = "scenario, task, o.status, o.reason, o.detail, o.grp, o.reply_key, o.checksum"
OUTCOME = (NATURAL, TASK, STATUS, TEXT.or_none, TEXT.or_none, NATURAL, BLOB.or_none, NATURAL)
RECORD_COLUMNS = "r.data, r.checksum"
RECORD = (BLOB, NATURAL)
RECORDS = "records r USING (scenario, task)"  # to be joined to outcomes o


class CheckedReader:
    """An open ledger, as it is read."""

    def __init__(self, connection: Connection, path: Path) -> None:
        self.connection = connection
        self.path = path

    def close(self) -> None:
        self.connection.close()

    @contextlib.contextmanager
    def explain_errors(self) -> Iterator[None]:
        """What goes wrong with statements in the body, as sentences."""
        try:
            yield
        except (sqlite3.Error, OverflowError) as problem:
            raise find_raised_error(self.connection, self.path, problem) from None

    def rows(self, sql: str, kinds: Kinds, values: Values = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self.explain_errors():
            rows = self.connection.execute(sql, values).fetchall()
        for row in rows:
            self._check(row, kinds)
        return rows

    def derived(self, sql: str, kinds: Kinds, values: Values = ()) -> list[tuple[Any, ...]]:
        """The rows of a query over what was made of the answers, those left out that cannot be: whoever works on the
        ledger next makes them again."""
        with self.explain_errors(), self.lenient_text():
            rows = self.connection.execute(sql, values).fetchall()
        return [row for row in rows if wrong(row, kinds) is None and _is_text(row)]

    def page(self, sql: str, kinds: Kinds, values: Values) -> tuple[list[tuple[Any, ...]], bool]:
        """The first rows of a query, as many as fit into a page, and whether these are all of them."""
        rows, held = [], 0
        with self.explain_errors():
            for row in self.connection.execute(sql, values):
                self._check(row, kinds)
                rows.append(row)
                held += sum(len(value) for value in row if isinstance(value, (bytes, str)))
                if held > _HELD:
                    return rows, False
        return rows, True

    def stream(self, sql: str, kinds: Kinds, values: Values = ()) -> Generator[tuple[Any, ...], None, None]:
        """The rows of a query, one by one."""
        with self.explain_errors():
            for row in self.connection.execute(sql, values):
                self._check(row, kinds)
                yield row

    def row(self, sql: str, kinds: Kinds, values: Values = ()) -> tuple[Any, ...] | None:
        """The first row of a query."""
        with self.explain_errors():
            row: tuple[Any, ...] | None = self.connection.execute(sql, values).fetchone()
        if row is not None:
            self._check(row, kinds)
        return row

    def one(self, sql: str, kinds: Kinds, values: Values = ()) -> tuple[Any, ...]:
        """The row of a query that always has one."""
        row = self.row(sql, kinds, values)
        assert row is not None, "a sum is always there"
        return row

    def write(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        with self.explain_errors():
            return self.connection.execute(sql, values)

    @contextlib.contextmanager
    def lenient_text(self) -> Iterator[None]:
        """In the body, a text that is no UTF-8 is read all the same, with half characters in it."""
        factory = self.connection.text_factory
        self.connection.text_factory = _lenient
        try:
            yield
        finally:
            self.connection.text_factory = factory

    @contextlib.contextmanager
    def transaction(self, begin: str = "BEGIN") -> Iterator[None]:
        """The body reads, or writes, one state of the ledger. One that writes waits until no other program does."""
        with self.explain_errors():
            when_free(self.connection, self.path, lambda: self.connection.execute(begin))
        try:
            yield
            self.write("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def _check(self, row: tuple[Any, ...], kinds: Kinds) -> None:
        if (place := wrong(row, kinds)) is not None:
            raise damaged_error(self.path, f"it holds {str(row[place])[:40]!r} where that cannot be")

    # -- rows that hold a checksum

    def reply(self, row: tuple[Any, ...]) -> Reply:
        """The reply in a row of REPLY_COLUMNS."""
        *facts, checksum = row
        if checksums.of_row(*facts) != checksum:
            raise self.damaged_reply(*facts[:4])
        *_, finish_reason, refusal, model, simulated, prompt, completion, text = facts
        usage = None if prompt is None else Usage(prompt, completion or 0)
        return Reply(text, finish_reason, refusal, usage, model, bool(simulated))

    def require_sound(self, outcome: tuple[Any, ...]) -> None:
        """Raise DamagedError unless the checksum of a row of OUTCOME_COLUMNS fits."""
        *facts, checksum = outcome
        if checksums.of_row(*facts) != checksum:
            raise self.damaged_outcome(*facts[:2])

    def record(self, scenario: int, task: TaskId, data: bytes, checksum: int) -> bytes:
        """A record whose checksum fits, which is JSON."""
        if checksums.of_record(scenario, task, data) != checksum or not _is_json(data):
            raise self.damaged_outcome(scenario, task)
        return data

    def damaged_reply(self, scenario: int, task: TaskId, step: int, attempt: int) -> DamagedError:
        name = f"CAST(x'{task.encode().hex()}' AS TEXT)" if isinstance(task, str) else task
        forget = (
            f"DELETE FROM replies WHERE scenario = {scenario} AND task = {name} "  # noqa: S608 - numbers, and hex digits
            f"AND step = {step} AND attempt = {attempt}"
        )
        return DamagedError(
            f"{self.path}: the stored answer to scenario {scenario} (task {task}, step {step}, attempt "
            f"{attempt}) is damaged: its checksum does not fit. It was paid for, so it is not asked again unasked. "
            "Restore the ledger from a copy; or give this answer up, and it is asked again: "
            f'sqlite3 {self.path} "{forget}"'
        )

    def damaged_outcome(self, scenario: int, task: TaskId) -> DamagedError:
        return DamagedError(
            f"{self.path}: what was made of the answers to scenario {scenario} (task {task}) is damaged: its "
            "checksum does not fit. Start the command that made this ledger again (`edgen generate`, or `edgen pairs` "
            "for a judge's): it is made anew from the stored answers, without a call."
        )


def find_unsound(book: CheckedReader) -> Iterator[tuple[Any, Any]]:
    """Scenario and task of what has an outcome or a record that is not as it was written. Both are derived, and can
    be made again."""
    with book.explain_errors(), book.lenient_text():
        for row in book.connection.execute(
            f"SELECT {OUTCOME_COLUMNS}, {RECORD_COLUMNS} FROM outcomes o LEFT JOIN {RECORDS}"  # noqa: S608
        ):
            if not _is_sound(row[: len(OUTCOME)], row[len(OUTCOME) :]):
                yield row[:2]


def _is_sound(outcome: tuple[Any, ...], record: tuple[Any, ...]) -> bool:
    if wrong(outcome, OUTCOME) is not None or _checksum(outcome) != outcome[-1]:
        return False
    if record == (None, None):
        return bool(outcome[2] != "accepted")
    if (
        wrong(record, RECORD) is not None
        or checksums.of_record(outcome[0], outcome[1], record[0]) != record[1]
    ):
        return False
    return _is_json(record[0])


_any_json = msgspec.json.Decoder(msgspec.Raw).decode


def _is_json(data: bytes) -> bool:
    try:
        data.decode()
        _any_json(data)
    except (ValueError, RecursionError):
        return False
    return True


def _checksum(outcome: tuple[Any, ...]) -> int | None:
    try:
        return checksums.of_row(*outcome[:-1])
    except UnicodeEncodeError:  # half of a character: no text that was written
        return None


def _is_text(row: Sequence[Any]) -> bool:
    """Whether the texts in a row hold no half of a character."""
    try:
        for value in row:
            if isinstance(value, str):
                value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
