"""A ledger read only: what its present plan came to, without disturbing whoever may be writing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from edgen.core.values import Reply, TaskId
from edgen.store.ledger.checked_reader import (
    OUTCOME,
    OUTCOME_COLUMNS,
    RECORD,
    RECORD_COLUMNS,
    RECORDS,
    REPLY,
    REPLY_COLUMNS,
    CheckedReader,
    find_unsound,
)
from edgen.store.ledger.column_types import AMOUNT, BLOB, MOMENT, NATURAL, TASK, TEXT
from edgen.store.ledger.opening import connect
from edgen.store.ledger.outcomes import TASKS, Outcomes
from edgen.store.ledger.outstanding import OPEN
from edgen.store.ledger.schema import total
from edgen.store.ledger.status import RunPlan, RunStatus, read_status

_BY_TASK = "GROUP BY scenario, task ORDER BY scenario, task LIMIT :page"


class CountedReply(NamedTuple):
    """Which call was answered, and the tokens that the service counted."""

    step: int
    attempt: int
    prompt_tokens: int
    completion_tokens: int


class LedgerReader(Outcomes):
    """The outcomes of a ledger's present plan, and more. Close it, or use it as a context manager."""

    def __init__(self, path: Path) -> None:
        book = CheckedReader(connect(path, read_only=True), path)
        try:
            self.status: RunStatus = read_status(book)
        except BaseException:
            book.close()
            raise
        super().__init__(book, self.status.plan.scope)

    def __enter__(self) -> LedgerReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._book.close()

    @property
    def plan(self) -> RunPlan:
        return self.status.plan

    @property
    def simulated(self) -> bool:
        """Whether a simulator had a part in what the present plan made."""
        row = self._book.row("SELECT value FROM meta WHERE name = 'simulated'", (TEXT,))
        return row is not None and row[0] == self.plan.fingerprint

    def is_sound(self) -> bool:
        """Whether every outcome and every record is as it was written."""
        return next(find_unsound(self._book), None) is None

    def record(self, scenario: int, task: TaskId) -> bytes | None:
        """The record of one accepted outcome of the plan, None if there is none."""
        plan = self.plan
        beyond = isinstance(task, int) and 0 < plan.replicates <= task
        if beyond or not plan.first <= scenario < plan.scenarios:
            return None
        row = self._book.row(
            f"SELECT {RECORD_COLUMNS} FROM outcomes o JOIN {RECORDS} "  # noqa: S608 - ours
            "WHERE scenario = ? AND task = ? AND o.status = 'accepted' AND o.fingerprint = ?",
            RECORD,
            (scenario, task, plan.fingerprint),
        )
        return None if row is None else self._book.record(scenario, task, *row)

    def outcomes(self, scenario: int) -> dict[Any, tuple[str, str | None, bytes | None]]:
        """(status, reason, record) of every outcome of one scenario, by task, whatever plan it was made
        under. A record may stand beside an outcome that is not accepted: its own, or an earlier one's."""
        found = {}
        for row in self._book.rows(
            f"SELECT {OUTCOME_COLUMNS}, {RECORD_COLUMNS} FROM outcomes o LEFT JOIN {RECORDS} "  # noqa: S608
            "WHERE scenario = ? ORDER BY task",
            (*OUTCOME, BLOB.or_none, NATURAL.or_none),
            (scenario,),
        ):
            self._book.require_sound(row[: len(OUTCOME)])
            (_, task, status, reason), (data, checksum) = row[:4], row[len(OUTCOME) :]
            if data is not None:
                data = self._book.record(scenario, task, data, checksum)
            found[task] = status, reason, data
        return found

    def outcome(self, scenario: int, task: TaskId) -> tuple[str, str | None, str | None] | None:
        """(status, reason, detail) of one outcome of the plan; None if there is none yet."""
        row = self._book.row(
            f"SELECT {OUTCOME_COLUMNS} FROM outcomes o WHERE scenario = ? AND task = ? AND fingerprint = ?",  # noqa: S608
            OUTCOME,
            (scenario, task, self.plan.fingerprint),
        )
        if row is None:
            return None
        self._book.require_sound(row)
        return row[2], row[3], row[4]

    def replies(self, scenario: int, task: TaskId) -> list[tuple[int, int, Reply]]:
        """(step, attempt, reply): the latest answer to each call of one task, in this order."""
        rows = self._book.rows(
            f"SELECT {REPLY_COLUMNS} FROM replies WHERE scenario = ? AND task = ? ORDER BY step, attempt, answered_at",  # noqa: S608
            REPLY,
            (scenario, task),
        )
        latest = {row[2:4]: row for row in rows}
        return [(step, attempt, self._book.reply(row)) for (step, attempt), row in latest.items()]

    def spent(self) -> Iterator[tuple[int, Any, int, int, int, float | None]]:
        """(scenario, task, calls answered, prompt tokens, completion tokens, US dollars) of every task
        of the plan that has replies, in order. All replies count, those of an earlier form of the job too."""
        yield from self._paged(
            f"SELECT scenario, task, COUNT(*), {total('prompt_tokens')}, {total('completion_tokens')}, SUM(cost_usd) "  # noqa: S608
            f"FROM replies WHERE {TASKS} {_BY_TASK}",
            (NATURAL, TASK, NATURAL, NATURAL, NATURAL, AMOUNT.or_none),
        )

    def out(self) -> Iterator[tuple[int, Any, int, int, float]]:
        """(scenario, task, calls, tokens, US dollars at most) of every task of the plan with requests in
        batches that are out, in order."""
        states = ", ".join(f"'{state}'" for state in OPEN)
        yield from self._paged(
            f"SELECT scenario, task, COUNT(*), {total('tokens')}, TOTAL(usd) FROM outstanding "  # noqa: S608 - ours
            f"WHERE batch IN (SELECT id FROM batches WHERE state IN ({states}) AND fingerprint = :fingerprint) "
            f"AND {TASKS} {_BY_TASK}",
            (NATURAL, TASK, NATURAL, NATURAL, AMOUNT),
        )

    def counted_replies(self) -> Iterator[tuple[int, Any, list[CountedReply]]]:
        """(scenario, task, its calls) of every task of the plan whose answers were all counted, and asked in one form
        of the job, in order."""
        rows = self._book.stream(
            "SELECT scenario, task, step, attempt, prompt_tokens, completion_tokens FROM replies "
            "WHERE scenario >= :first AND scenario < :end AND (:replicates = 0 OR task < :replicates) "
            "ORDER BY scenario, task, step, attempt",
            (NATURAL, TASK, NATURAL, NATURAL, NATURAL.or_none, NATURAL.or_none),
            self._scope.values,
        )
        for (scenario, task), calls in itertools.groupby(rows, key=lambda row: row[:2]):
            found = [row[2:] for row in calls]
            once = len({call[:2] for call in found}) == len(found)
            if once and not any(None in call for call in found):
                yield scenario, task, [CountedReply(*call) for call in found]

    def sessions(self) -> list[dict[str, Any]]:
        """Every session, the first one first: when it started and ended (seconds since the epoch), what it made."""
        names = ("started_at", "ended_at", "edgen", "made", "replayed", "retried", "prompt_tokens",
                 "completion_tokens", "cost_usd", "state", "message")  # fmt: skip
        kinds = (MOMENT, MOMENT.or_none, TEXT, NATURAL, NATURAL, NATURAL, NATURAL, NATURAL, AMOUNT.or_none, TEXT,
                 TEXT.or_none)  # fmt: skip
        rows = self._book.rows(f"SELECT {', '.join(names)} FROM sessions ORDER BY id", kinds)  # noqa: S608 - our names
        return [dict(zip(names, row, strict=True)) for row in rows]

    def latencies(self) -> Iterator[float]:
        """Seconds that each stored answer took, in no particular order."""
        for (latency,) in self._book.stream("SELECT latency FROM replies", (AMOUNT,)):
            yield latency
