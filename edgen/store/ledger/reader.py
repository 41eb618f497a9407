"""Read-only view of a ledger: the results of a scope, without disturbing a writer.

Rows are read in pages, since one long read would keep the writer's log from being truncated.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.core.values import Reply, Status, TaskId, Usage
from edgen.store.ledger.checked_reader import (
    OUTCOMES,
    REPLIES,
    WITH_ANY_RECORDS,
    Amount,
    CheckedReader,
    Moment,
    Natural,
    OutcomeRow,
    ReplyRow,
    Row,
    Task,
    open_to_read,
)
from edgen.store.ledger.facts import SELECTION, SIMULATED, Selection, read_fact, read_facts, read_selection
from edgen.store.ledger.opening import connect
from edgen.store.ledger.schema import PICO, SCENARIOS
from edgen.store.ledger.status import (
    IN_SCOPE,
    OPEN,
    LedgerSession,
    NotedBatch,
    RunPlan,
    RunStatus,
    Scope,
    read_batches,
    read_lost,
    read_sessions,
    read_status,
    sum_column,
    sum_lost,
    sum_out,
)
from edgen.store.ledger.writer import COUNT, read_acknowledged

ADDITIONAL = "/beside"  # suffix of the fingerprint of outcomes that hold additional values of a record
_PAGE = 500
_RECORDS = 100  # rows per page: each has some thousand bytes
_LAST = b""  # sorts after every task: SQLite sorts numbers, then texts, then bytes
# SQL: the next page of a table with tasks, and the same of outcomes.
_TASKS = (
    "(scenario, task) > (:scenario, :task) AND scenario < :end AND (:replicates = 0 OR task < :replicates)"
)
_OUTCOMES = f"{_TASKS} AND fingerprint = :fingerprint"
_ORDER = "ORDER BY scenario, task LIMIT :page"
_ALL = range(SCENARIOS)
_BY_TASK = f"GROUP BY scenario, task {_ORDER}"


class CountedReply(NamedTuple):
    """An answered call, and the tokens that the service counted."""

    step: int
    attempt: int
    usage: Usage


class Outcomes:
    """The outcomes of `scope` in the ledger that `reader` reads."""

    def __init__(self, reader: CheckedReader, scope: Scope) -> None:
        self._reader = reader
        self._scope = scope

    def list_accepted(self, first: int = 0) -> Iterator[tuple[int, Any]]:
        """Yield (scenario, task) of accepted outcomes, from the scenario `first` on."""
        self._reader.require_statuses()
        query = f"SELECT scenario, task FROM outcomes WHERE {_OUTCOMES} AND status = 'accepted' {_ORDER}"  # noqa: S608
        return self._read_in_pages(query, tuple[Natural, Task], first=first)

    def iterate_groups(self) -> Iterator[tuple[int, int]]:
        """Yield (group hash, accepted outcomes), by ascending hash."""
        return self._reader.iterate_rows(
            f"SELECT grp, COUNT(*) FROM outcomes WHERE {IN_SCOPE} AND status = 'accepted' GROUP BY grp "  # noqa: S608
            "ORDER BY grp",
            tuple[Natural, Natural],
            self._scope.values,
        )

    def iterate_records(self, within: range = _ALL) -> Generator[tuple[int, Any, int, bytes], None, None]:
        """Yield (scenario, task, group hash, record) of accepted outcomes, for scenarios `within` a range."""
        self._reader.require_statuses()
        query = f"{WITH_ANY_RECORDS} WHERE {_OUTCOMES} AND o.status = 'accepted' {_ORDER}"
        for row in self._read_in_pages(query, OutcomeRow, _RECORDS, within.start):
            if row.scenario >= within.stop:
                return
            self._reader.require_sound(row)
            yield row.scenario, row.task, row.grp, self._reader.check_record(row)

    def list_settled(self) -> Iterator[tuple[int, Any, Status, str | None]]:
        """Yield (scenario, task, status, reason) of every outcome."""
        for row in self._iterate_rows(""):
            yield row.scenario, row.task, row.status, row.reason

    def list_answered(self) -> Iterator[tuple[int, Any, Status, str | None]]:
        """Yield the same as `list_settled` without failed outcomes, which have no answer and are retried.
        Checksums are not checked."""
        query = (
            f"SELECT scenario, task, status, reason FROM outcomes WHERE {_OUTCOMES} AND status != 'failed' "  # noqa: S608
            f"{_ORDER}"
        )
        return self._read_in_pages(query, tuple[Natural, Task, Status, str | None])

    def list_refused(self) -> Iterator[tuple[int, Any, Status, str | None, str | None, Reply | None]]:
        """Yield (scenario, task, status, reason, detail, last reply) of outcomes that were not accepted."""
        for row in self._iterate_rows("AND status != 'accepted'"):
            last = None
            if row.reply_key is not None:
                query = f"{REPLIES} WHERE scenario = ? AND task = ? AND key = ?"
                last = self._reader.read_row(query, ReplyRow, (row.scenario, row.task, row.reply_key))
            reply = None if last is None else self._reader.check_reply(last)
            yield row.scenario, row.task, row.status, row.reason, row.detail, reply

    def iterate_candidates(self, reasons: Collection[str]) -> Iterator[tuple[int, Any, bytes]]:
        """Yield (scenario, task, record) of outcomes that were accepted, or rejected for one of these reasons
        with a stored record."""
        for row in self._read_in_pages(
            f"{WITH_ANY_RECORDS} WHERE {_OUTCOMES} {_ORDER}", OutcomeRow, _RECORDS
        ):
            if row.status is Status.ACCEPTED or (row.reason in reasons and row.data is not None):
                self._reader.require_sound(row)
                yield row.scenario, row.task, self._reader.check_record(row)

    def iterate_candidate_outcomes(self, reasons: Collection[str]) -> Iterator[OutcomeRow]:
        """Yield the outcomes of the records in `iterate_candidates`, in the same order."""
        rows = self._iterate_rows("")
        return (row for row in rows if row.status is Status.ACCEPTED or row.reason in reasons)

    def read_additional_values(self, scenario: int, task: TaskId) -> dict[str, bytes]:
        """Return the additional values of a task's record, by name."""
        first = name_additional_task(task, "")
        found = {}
        query = (
            f"{WITH_ANY_RECORDS} WHERE scenario = ? AND task >= ? AND task < ? AND o.fingerprint = ? ORDER "
            "BY task"
        )
        values = (scenario, first, first[:-1] + chr(ord(first[-1]) + 1), self._scope.fingerprint + ADDITIONAL)
        for row in self._reader.read_rows(query, OutcomeRow, values):
            self._reader.require_sound(row)
            found[str(row.task).removeprefix(first)] = self._reader.check_record(row)
        return found

    def _iterate_rows(self, where: str) -> Iterator[OutcomeRow]:
        for row in self._read_in_pages(f"{OUTCOMES} WHERE {_OUTCOMES} {where} {_ORDER}", OutcomeRow):
            self._reader.require_sound(row)
            yield row

    def _read_in_pages(self, sql: str, row: type[Row], size: int = _PAGE, first: int = 0) -> Iterator[Row]:
        """Yield the rows of a query over _TASKS that begins with scenario and task, from a scenario on."""
        begin = max(self._scope.first, first) - 1
        values = {**self._scope.values, "scenario": begin, "task": _LAST, "page": size}
        while True:
            rows, whole = self._reader.read_page(sql, row, values)
            yield from rows
            if whole and len(rows) < size:
                return
            last: Any = rows[-1]
            values["scenario"], values["task"] = last[:2]
            del rows, last


class LedgerReader(Outcomes, contextlib.AbstractContextManager["LedgerReader"]):
    """A reader of the outcomes of a ledger's present plan, and of other facts. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        reader = CheckedReader(connect(path, read_only=True), path)
        try:
            self.status: RunStatus = read_status(reader)
        except BaseException:
            reader.close()
            raise
        super().__init__(reader, self.status.plan.scope)

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    @property
    def path(self) -> Path:
        """The absolute path of the ledger."""
        return self._reader.path.absolute()

    @property
    def plan(self) -> RunPlan:
        return self.status.plan

    @property
    def simulated(self) -> bool:
        """True if a simulator took part in the present plan's results."""
        return read_fact(self._reader, SIMULATED) == self.plan.fingerprint

    def read_fact(self, name: str) -> str | None:
        """Return a fact about the run; None if missing."""
        return read_fact(self._reader, name)

    @property
    def selection(self) -> Selection | None:
        """The selection that made this run; None if it was generated."""
        return read_selection(read_fact(self._reader, SELECTION), self._reader.path)

    def is_sound(self) -> bool:
        """Return whether every outcome and record is unchanged."""
        return next(self._reader.find_unsound(), None) is None

    def read_record(self, scenario: int, task: TaskId) -> bytes | None:
        """Return the record of one accepted outcome of the plan; None if missing."""
        plan = self.plan
        beyond = isinstance(task, int) and 0 < plan.replicates <= task
        if beyond or not plan.first <= scenario < plan.scenarios:
            return None
        row = self._reader.read_row(
            f"{WITH_ANY_RECORDS} WHERE scenario = ? AND task = ? AND o.status = 'accepted' AND "
            "o.fingerprint = ?",
            OutcomeRow,
            (scenario, task, plan.fingerprint),
        )
        return None if row is None else self._reader.check_record(row)

    def read_group(self, scenario: int) -> int | None:
        """Return the group of the accepted conversations of a scenario; None without any."""
        query = f"{OUTCOMES} WHERE scenario = ? AND status = 'accepted' AND fingerprint = ? LIMIT 1"
        row = self._reader.read_row(query, OutcomeRow, (scenario, self.plan.fingerprint))
        if row is None:
            return None
        self._reader.require_sound(row)
        return row.grp

    def read_outcomes(self, scenario: int) -> dict[Any, tuple[Status, str | None, bytes | None]]:
        """Return (status, reason, record) of every outcome of one scenario under any plan, by task. An
        outcome that is not accepted can also have a record: its own, or that of an earlier outcome."""
        found = {}
        for row in self._reader.read_rows(
            f"{WITH_ANY_RECORDS} WHERE scenario = ? ORDER BY task", OutcomeRow, (scenario,)
        ):
            self._reader.require_sound(row)
            data = None if row.data is None else self._reader.check_record(row)
            found[row.task] = row.status, row.reason, data
        return found

    def read_outcome(self, scenario: int, task: TaskId) -> tuple[Status, str | None, str | None] | None:
        """Return (status, reason, detail) of one outcome of the plan; None if missing."""
        row = self._reader.read_row(
            f"{OUTCOMES} WHERE scenario = ? AND task = ? AND fingerprint = ?",
            OutcomeRow,
            (scenario, task, self.plan.fingerprint),
        )
        if row is None:
            return None
        self._reader.require_sound(row)
        return row.status, row.reason, row.detail

    def read_replies(self, scenario: int, task: TaskId) -> list[tuple[int, int, Reply]]:
        """Return (step, attempt, reply) of the latest answer to each call of one task, in this order."""
        query = f"{REPLIES} WHERE scenario = ? AND task = ? ORDER BY step, attempt, rowid"
        latest = {
            (row.step, row.attempt): row for row in self._reader.read_rows(query, ReplyRow, (scenario, task))
        }
        return [(*call, self._reader.check_reply(row)) for call, row in latest.items()]

    def list_spending(self) -> Iterator[tuple[int, Any, int, int, int, float | None]]:
        """Yield (scenario, task, calls answered, prompt tokens, completion tokens, US dollars) of every task
        of the plan with replies, in order. This includes replies to an earlier form of the job."""
        return self._read_in_pages(
            f"SELECT scenario, task, COUNT(*), {sum_column('prompt_tokens')}, {sum_column('completion_tokens')}, "  # noqa: S608
            f"SUM(cost_usd) FROM replies WHERE {_TASKS} {_BY_TASK}",
            tuple[Natural, Task, Natural, Natural, Natural, Amount | None],
        )

    def list_outstanding_tasks(self) -> Iterator[tuple[int, Any, int, int, float]]:
        """Yield (scenario, task, calls, tokens, maximum US dollars) of every task of the plan with
        outstanding batch requests, in order."""
        states = ", ".join(f"'{state}'" for state in OPEN)
        return self._read_in_pages(
            f"SELECT scenario, task, COUNT(*), {sum_column('tokens')}, TOTAL(usd) FROM outstanding "  # noqa: S608 - ours
            f"WHERE batch IN (SELECT id FROM batches WHERE state IN ({states}) AND fingerprint = "
            f":fingerprint) AND {_TASKS} {_BY_TASK}",
            tuple[Natural, Task, Natural, Natural, Amount],
        )

    def list_counted_replies(self) -> Iterator[tuple[int, Any, list[CountedReply]]]:
        """Yield (scenario, task, its calls), in order, of every task of the plan whose answers were all
        counted and belong to one form of the job."""
        rows = self._reader.iterate_rows(
            "SELECT scenario, task, step, attempt, prompt_tokens, completion_tokens, "
            "IFNULL(cache_read_tokens, 0), IFNULL(cache_write_tokens, 0) FROM replies "
            "WHERE scenario >= :first AND scenario < :end AND (:replicates = 0 OR task < :replicates) "
            "ORDER BY scenario, task, step, attempt",
            tuple[Natural, Task, Natural, Natural, Natural | None, Natural | None, Natural, Natural],
            self._scope.values,
        )
        for (scenario, task), answers in itertools.groupby(rows, key=lambda row: row[:2]):
            calls = [row[2:] for row in answers]
            counted = [
                CountedReply(step, attempt, Usage(prompt, completion, *cached))
                for step, attempt, prompt, completion, *cached in calls
                if prompt is not None and completion is not None
            ]
            if len(calls) == len(counted) == len({call[:2] for call in calls}):
                yield scenario, task, counted

    def read_sessions(self) -> list[LedgerSession]:
        """Return every session in order."""
        return read_sessions(self._reader)

    def iterate_latencies(self) -> Iterator[float]:
        """Yield the seconds that each stored answer took, in no particular order."""
        return (
            latency for (latency,) in self._reader.iterate_rows("SELECT latency FROM replies", tuple[Amount])
        )

    def list_reply_times(self, moment: float, most: int) -> Iterator[float]:
        """Yield the times at which the latest replies were stored, the last first, in seconds since the
        epoch: not before `moment`, and at most `most`."""
        rows = self._reader.iterate_rows(
            "SELECT answered_at FROM (SELECT answered_at FROM replies ORDER BY rowid DESC LIMIT :most)",
            tuple[Moment],
            {"most": most},
        )
        return (at for (at,) in rows if at >= moment)

    def count_in_flight(self) -> int:
        """Return the number of outstanding single calls."""
        row = self._reader.read_row(
            "SELECT COUNT(*) FROM outstanding WHERE batch IS NULL", tuple[Natural], ()
        )
        return 0 if row is None else row[0]


def name_additional_task(task: TaskId, name: str) -> str:
    """Return the task of an additional value of a task's record. It is a text, so it does not collide with
    numbered tasks."""
    return f"{task}/{name}"


class LedgerSummary(msgspec.Struct, frozen=True):
    """A summary of a run."""

    status: RunStatus  # counts and state
    out: tuple[int, float]  # tokens and US dollars reserved for outstanding calls
    unanswered: tuple[int, float]  # tokens and US dollars charged for unanswered calls; see `sum_lost`
    batches: list[NotedBatch]  # noted batches
    facts: dict[str, str]  # of the run, by name
    lost_replies: int = 0  # replies that were stored once and are missing now


def read_summary(path: Path) -> LedgerSummary:
    """Return a summary of the ledger at `path`."""
    acknowledged = read_acknowledged(path)  # first, since a writer may continue meanwhile
    with open_to_read(path) as reader:
        (out, out_pico), (lost, lost_pico) = sum_out(reader), sum_lost(reader)
        return LedgerSummary(
            status=read_status(reader),
            out=(out, out_pico / PICO),
            unanswered=(lost, lost_pico / PICO),
            batches=read_batches(reader),
            facts=read_facts(reader),
            lost_replies=read_lost(reader)
            + max(0, acknowledged - reader.require_row(COUNT, tuple[Natural])[0]),
        )
