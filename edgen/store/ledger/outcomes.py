"""The outcomes of a scope, read in order: what was accepted, with its records, and what was not, with its replies.

Rows are read in pages, so that no long read holds the writer's log back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from edgen.core.values import Reply
from edgen.store.ledger.checked_reader import (
    OUTCOME,
    OUTCOME_COLUMNS,
    RECORD,
    RECORD_COLUMNS,
    RECORDS,
    REPLY,
    REPLY_COLUMNS,
    CheckedReader,
    Kinds,
)
from edgen.store.ledger.column_types import NATURAL, TASK
from edgen.store.ledger.status import IN_SCOPE, Scope

_PAGE = 500
_RECORDS = 100  # of a page: they are some thousand bytes each
BEHIND = b""  # comes behind every task: SQLite sorts numbers, then texts, then bytes
# SQL: what of a table with tasks is on the next page, and the same of outcomes.
TASKS = (
    "(scenario, task) > (:scenario, :task) AND scenario < :end AND (:replicates = 0 OR task < :replicates)"
)
_OUTCOMES = f"{TASKS} AND fingerprint = :fingerprint"
_ORDER = "ORDER BY scenario, task LIMIT :page"


class Outcomes:
    """Those of `scope` in the ledger that `book` reads."""

    def __init__(self, book: CheckedReader, scope: Scope) -> None:
        self._book = book
        self._scope = scope

    def accepted(self) -> Iterator[tuple[int, Any]]:
        """(scenario, task) of what was accepted."""
        query = f"SELECT scenario, task FROM outcomes WHERE {_OUTCOMES} AND status = 'accepted' {_ORDER}"  # noqa: S608
        yield from self._paged(query, (NATURAL, TASK))

    def groups(self) -> Iterator[tuple[int, int]]:
        """(group hash, accepted outcomes), by ascending hash."""
        yield from self._book.stream(
            f"SELECT grp, COUNT(*) FROM outcomes WHERE {IN_SCOPE} AND status = 'accepted' GROUP BY grp ORDER BY grp",  # noqa: S608
            (NATURAL, NATURAL),
            self._scope.values,
        )

    def records(self) -> Generator[tuple[int, Any, int, bytes], None, None]:
        """(scenario, task, group hash, record) of what was accepted."""
        for row in self._paged(
            f"SELECT {OUTCOME_COLUMNS}, {RECORD_COLUMNS} FROM outcomes o JOIN {RECORDS} "  # noqa: S608
            f"WHERE {_OUTCOMES} AND o.status = 'accepted' {_ORDER}",
            (*OUTCOME, *RECORD),
            _RECORDS,
        ):
            outcome = row[: len(OUTCOME)]
            self._book.require_sound(outcome)
            scenario, task, *_, group, _, _ = outcome
            yield scenario, task, group, self._book.record(scenario, task, *row[len(OUTCOME) :])

    def settled(self) -> Iterator[tuple[int, Any, str, str | None]]:
        """(scenario, task, status, reason) of every outcome."""
        for row in self._rows(""):
            scenario, task, status, reason, *_ = row
            yield scenario, task, status, reason

    def refused(self) -> Iterator[tuple[int, Any, str, str | None, str | None, Reply | None]]:
        """(scenario, task, status, reason, detail, last reply) of what was not accepted."""
        for scenario, task, status, reason, detail, _, key, _ in self._rows("AND status != 'accepted'"):
            reply = None if key is None else self._book.row(
                f"SELECT {REPLY_COLUMNS} FROM replies WHERE scenario = ? AND task = ? AND key = ?",  # noqa: S608
                REPLY,
                (scenario, task, key),
            )  # fmt: skip
            yield scenario, task, status, reason, detail, None if reply is None else self._book.reply(reply)

    def _rows(self, where: str) -> Iterator[tuple[Any, ...]]:
        for row in self._paged(
            f"SELECT {OUTCOME_COLUMNS} FROM outcomes o WHERE {_OUTCOMES} {where} {_ORDER}",  # noqa: S608
            OUTCOME,
        ):
            self._book.require_sound(row)
            yield row

    def _paged(self, sql: str, kinds: Kinds, size: int = _PAGE) -> Iterator[tuple[Any, ...]]:
        """The rows of a query over TASKS, ordered and limited as _ORDER says, whose first columns are scenario and
        task."""
        values = {**self._scope.values, "scenario": self._scope.first - 1, "task": BEHIND, "page": size}
        while True:
            rows, whole = self._book.page(sql, kinds, values)
            yield from rows
            if whole and len(rows) < size:
                return
            values["scenario"], values["task"] = rows[-1][:2]
            del rows
