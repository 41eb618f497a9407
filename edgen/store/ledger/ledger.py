"""The open ledger of a session: its replies, outcomes, sessions and facts, as stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from edgen.core.values import Address, Reply, Status, TaskId
from edgen.store.ledger.checked_reader import (
    REPLIES,
    Amount,
    CheckedReader,
    Natural,
    ReplyRow,
    compute_checksum,
    compute_cost_checksum,
    compute_outcome_checksums,
    list_columns,
    read_wall_time,
)
from edgen.store.ledger.facts import LOST, drop_damaged_facts, put_fact, read_fact
from edgen.store.ledger.opening import check, connect, upgrade
from edgen.store.ledger.outstanding import LOSE, STRIKE, OutstandingCalls
from edgen.store.ledger.problems import make_empty_error
from edgen.store.ledger.reader import ADDITIONAL, Outcomes, name_additional_task
from edgen.store.ledger.reply_details import (
    TABLE,
    add_table,
    store_details,
    with_details,
    with_times,
)
from edgen.store.ledger.schema import PICO
from edgen.store.ledger.status import (
    NotedBatch,
    RunPlan,
    RunStatus,
    Scope,
    State,
    count_outcomes,
    read_batches,
    read_lost,
    read_plan,
    read_status,
    sum_charges,
    sum_column,
    sum_pico_column,
)
from edgen.store.ledger.tally import MADE_AGAIN, RowCounter, connect_counted, count_tables, open_tally
from edgen.store.ledger.writer import COUNT, Acknowledgement, Statement, Writer, read_acknowledged

log = logging.getLogger("edgen")

_OF_TASK = f"{REPLIES} WHERE scenario = ? AND task = ?"

# The text may come as UTF-8 bytes.
_REPLY = "INSERT OR IGNORE INTO replies VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,CAST(? AS TEXT),?)"
_OUTCOME = "INSERT OR REPLACE INTO outcomes VALUES (?,?,?,?,?,?,?,?,?)"
_RECORD = "INSERT OR REPLACE INTO records VALUES (?,?,?,?)"
_SESSION = "UPDATE sessions SET replayed=?, retried=?, state=?, message=?, ended_at=? WHERE id=?"


# The replies of one call: (address, key, reply, charged tokens, US dollars)
Answers = Sequence[tuple[Address, bytes, Reply, int, float | None]]


class Outcome(msgspec.Struct, frozen=True):
    """The result of one task."""

    scenario: int  # index of the scenario
    task: TaskId  # a task of the scenario
    status: Status  # accepted, rejected or failed
    reason: str | None  # None if accepted
    detail: str | None  # explanation of the reason, for people
    group: int  # the split's group hash, in [0, 2**63)
    reply_key: bytes | None  # key of the last reply; None without one


class Ledger:
    """An open run.db. Use as an async context manager; everything queued is committed at its end.

    `before_commit`: see Writer. `lost_replies` counts replies that were stored once and are missing.
    `damaged_outcomes` counts outcomes that `prepare_session` removed. `logprobs`: store the tokens of new
    replies. `people`: people answer some calls, so replies are read with their times. `writer` and `out`
    exist after entering.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        before_commit: Callable[[], None] = lambda: None,
        logprobs: bool = False,
        people: bool = False,
    ) -> None:
        self.path = path
        self._people = people
        self._before_commit = before_commit
        acknowledged = read_acknowledged(path)
        connection = connect(path, create=create)
        self._reader = CheckedReader(connection, path)
        try:
            check(connection, path)
            # If the log is lost, the user pays for its replies again.
            if not create and self._reader.read_row("SELECT id FROM sessions", tuple[Natural]) is None:
                raise make_empty_error(path)
            self._stored_replies = self._reader.require_row(COUNT, tuple[Natural])[0]
            last = self._reader.require_row("SELECT MAX(scenario) FROM replies", tuple[Natural | None])[0]
            with self._reader.explain_errors():
                upgrade(connection, path)
            if logprobs or people:
                add_table(self._reader)
            self._keeps_details = self._reader.has_table(TABLE)
            RowCounter(self._reader)
        except BaseException:
            connection.close()
            raise
        self._last_answered = -1 if last is None else last  # scenario
        self.lost_replies = max(0, acknowledged - self._stored_replies)
        self.damaged_outcomes = 0

    async def __aenter__(self) -> Ledger:
        try:
            problems = open_tally(self._reader)
        except BaseException:
            self._reader.close()
            raise
        for problem in problems:
            log.warning("%s", problem)
        self.writer = Writer(self.path, connect_counted, self._before_commit)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.writer.close()
        except Exception:
            if error is None:
                raise
        finally:
            self._reader.close()

    # -- outstanding work

    @cached_property
    def out(self) -> OutstandingCalls:
        """The outstanding calls and batches."""
        return OutstandingCalls(self._reader, self.writer)

    def list_batches(self, *states: State) -> list[NotedBatch]:
        """Return the batches in one of these states, or all, in order of creation."""
        return read_batches(self._reader, *states)

    # -- replies

    def store(
        self, answers: Answers, latency: float, tries: int, held: int | None = None
    ) -> asyncio.Future[None]:
        """Store the replies of one call, all or none: (address, key, reply, charged tokens, charged US
        dollars). Return a future that is done when they are on disk. `held`: the id of the outstanding
        call."""
        at = read_wall_time()
        statements = [
            one for answer in answers for one in self.make_reply_statements(*answer, at, latency, tries)
        ]
        if held is not None:
            statements.append((STRIKE, (held,)))
        return self.writer.put(*statements)

    def make_reply_statements(
        self, address: Address, key: bytes, reply: Reply, charged_tokens: int, cost_usd: float | None,
        at: float, latency: float, tries: int, checksum: int | None = None, text: bytes | None = None,
    ) -> list[Statement]:  # fmt: skip
        """Return the statements that store a reply received `at` a moment (`read_wall_time`), with its tokens
        if these are stored. `checksum`: the reply's (`compute_reply_checksum`), if known. `text`: the reply's
        text in UTF-8, if the reply comes without text and with its checksum."""
        columns = list_columns(address, key, reply)
        if checksum is None:
            checksum = compute_checksum(*columns, reply.text)  # the same as `compute_reply_checksum`
        if reply.given is not None:
            at, latency = reply.given.at, reply.given.seconds or 0.0  # 0: the page did not measure it
        spent = (at, latency, tries, charged_tokens, cost_usd)
        row = (
            *columns,
            *spent,
            reply.text if text is None else text,
            checksum | compute_cost_checksum(*spent),
        )
        if address.scenario > self._last_answered:
            self._last_answered = address.scenario
        statement = (_REPLY, row)
        return [statement, *store_details(address, key, reply)] if self._keeps_details else [statement]

    def read_replies(self, scenario: int, task: TaskId) -> dict[bytes, Reply]:
        """Return the stored replies to a task, by key."""
        if scenario > self._last_answered:
            return {}
        rows = self._reader.read_rows(_OF_TASK, ReplyRow, (scenario, task))
        found = {row.key: self._reader.check_reply(row) for row in rows}
        if self._people and found:
            found = with_times(self._reader, found, scenario, task)
        return with_details(self._reader, found, scenario, task) if self._keeps_details and found else found

    def count_places(self, scenario: int, task: TaskId) -> int:
        """Return the number of answered calls of a task. A call sent in several forms counts once."""
        answered = (
            "SELECT COUNT(*) FROM (SELECT DISTINCT step, attempt FROM replies WHERE scenario = ? AND task = "
            "?)"
        )
        return self._reader.require_row(answered, tuple[Natural], (scenario, task))[0]

    def read_reply(self, address: Address, key: bytes) -> Reply | None:
        """Return the stored reply to one request, from any session."""
        call = (*msgspec.structs.astuple(address), key)
        row = self._reader.read_row(f"{_OF_TASK} AND step = ? AND attempt = ? AND key = ?", ReplyRow, call)
        if row is None:
            return None
        found = {key: self._reader.check_reply(row)}
        if self._people:
            found = with_times(self._reader, found, address.scenario, address.task)
        if self._keeps_details:
            found = with_details(self._reader, found, address.scenario, address.task)
        return found[key]

    # -- outcomes

    def settle(
        self,
        outcome: Outcome,
        fingerprint: str,
        record: bytes | None,
        additional: Mapping[str, bytes] | None = None,
        checksums: tuple[int, int] | None = None,
    ) -> None:
        """Queue a task's outcome and, if accepted, its record and further JSON values by name. `checksums`:
        the checksums of outcome and record (`compute_outcome_checksums`), if known."""
        self.writer.add(*make_outcome_statements(outcome, fingerprint, record, additional, checksums))

    def list_settled(
        self, fingerprint: str, first: int, end: int
    ) -> Iterator[tuple[int, Any, Status, str | None]]:
        """Yield (scenario, task, status, reason) of the outcomes under `fingerprint` that have not failed, in
        order. `first` and `end` bound the scenarios (half open)."""
        return self.open_outcomes(Scope(fingerprint, end, first=first)).list_answered()

    def count_settled(
        self, fingerprint: str, first: int, end: int, replicates: int
    ) -> list[tuple[Status, str | None, int]]:
        """Return the number of outcomes of each (status, reason) in `list_settled`, for `replicates` numbered
        tasks."""
        counts = count_outcomes(self._reader, Scope(fingerprint, end, replicates, first))
        return [one for one in counts if one[0] != Status.FAILED]

    def open_outcomes(self, scope: Scope) -> Outcomes:
        """Return a reader of the outcomes of a scope, from which a finished run is written."""
        return Outcomes(self._reader, scope)

    # -- sessions and facts about the run

    def prepare_session(self) -> None:
        """Prepare the ledger for a session.

        Outstanding calls of a dead process are charged to its session. Damaged outcomes, records and facts
        are removed, so that they are made again from the replies. Lost replies are counted.
        """
        gone = list(self._reader.find_unsound())
        self.damaged_outcomes = len(gone) or self.damaged_outcomes
        with self._reader.run_transaction("BEGIN IMMEDIATE"):
            _abandon_outstanding(self._reader)
            if self.lost_replies:
                total = read_lost(self._reader) + self.lost_replies
                for statement in put_fact(LOST, str(total)):
                    self._reader.write(*statement)
            drop_damaged_facts(self._reader)
            for unit in gone:
                # A text that is not UTF-8 can only be compared by its bytes.
                as_text = ("CAST(? AS TEXT)" if isinstance(value, str) else "?" for value in unit)
                values = [v.encode("utf-8", "surrogateescape") if isinstance(v, str) else v for v in unit]
                where = "scenario = {} AND task = {}".format(*as_text)
                for table in ("outcomes", "records"):
                    self._reader.write(f"DELETE FROM {table} WHERE {where}", values)  # noqa: S608 - ours
            count_tables(self._reader, MADE_AGAIN)
        if self.lost_replies:
            self._note_present_replies()

    def _note_present_replies(self) -> None:
        """Store the present number of replies as the new reference."""
        note = Acknowledgement(self.path)
        note.note(self._stored_replies)
        note.close()
        self.lost_replies = 0

    def begin_session(self, pid: int, host: str, edgen: str) -> int:
        """Record that a process works on the run. Return the session's number."""
        with self._reader.run_transaction("BEGIN IMMEDIATE"):
            cursor = self._reader.write(
                "INSERT INTO sessions (started_at, pid, host, edgen) VALUES (?,?,?,?)",
                (read_wall_time(), pid, host, edgen),
            )
        return int(cursor.lastrowid or 0)

    def note_session(
        self, session: int, *, replayed: int, retried: int, state: str = "running", message: str | None = None
    ) -> None:
        """Queue a session's state; any `state` other than running ends it. Replies count themselves."""
        ended = None if state == "running" else read_wall_time()
        row = (replayed, retried, state, message, ended, session)
        self.writer.add((_SESSION, row))

    def sum_charges(self, price: Callable[[int, int], float]) -> tuple[int, float]:
        """Return (tokens, US dollars) that the run has used so far. `price` of (prompt, completion) tokens
        values replies stored without a cost."""
        return sum_charges(self._reader, price)

    def set_fact(self, name: str, value: str) -> None:
        """Queue a fact about the run."""
        self.writer.add(*put_fact(name, value))

    def read_fact(self, name: str) -> str | None:
        """Return a committed fact."""
        return read_fact(self._reader, name)

    @property
    def plan(self) -> RunPlan | None:
        """The run's plan, as of the last session."""
        return read_plan(self._reader)

    def read_status(self) -> RunStatus:
        """Return the committed status, for `edgen status`."""
        return read_status(self._reader)

    async def flush(self) -> None:
        """Return when everything queued is on disk."""
        await self.writer.put(*put_fact("flushed", "1"))


def _abandon_outstanding(reader: CheckedReader) -> None:
    """Settle a dead session's outstanding work when a new session starts, in the present transaction. Single
    calls are charged at their maximum, since the service may have worked on them. Batches with an incomplete
    file are ignored."""
    tokens, usd = reader.require_row(
        f"SELECT {sum_column('tokens')}, {sum_pico_column('usd')} / {PICO:g} FROM outstanding WHERE batch IS NULL",  # noqa: S608
        tuple[Natural, Amount],
    )
    if tokens or usd:
        reader.write(LOSE, (tokens, usd))
    reader.write(
        "DELETE FROM outstanding WHERE batch IS NULL "
        "OR batch IN (SELECT id FROM batches WHERE state IN ('preparing', 'read', 'dropped'))"
    )
    reader.write("DELETE FROM batches WHERE state = 'preparing'")


def make_outcome_statements(
    outcome: Outcome,
    fingerprint: str,
    record: bytes | None,
    additional: Mapping[str, bytes] | None = None,
    checksums: tuple[int, int] | None = None,
) -> list[Statement]:
    """Return the statements that store an outcome, its record and further values; see `Ledger.settle`."""
    unit = (outcome.scenario, outcome.task)
    # sqlite3 looks for an adapter of anything but a plain str, which takes as long as writing the row.
    status = str(outcome.status)
    facts = (status, outcome.reason, outcome.detail, outcome.group, outcome.reply_key)
    of_outcome, of_record = checksums or compute_outcome_checksums(unit, facts, record)
    rows: list[Statement] = [] if record is None else [(_RECORD, (*unit, record, of_record))]
    rows.append((_OUTCOME, (*unit, fingerprint, *facts, of_outcome)))
    for name, data in additional.items() if additional else ():
        place = (outcome.scenario, name_additional_task(outcome.task, name))
        one = Outcome(*place, Status.ACCEPTED, None, None, outcome.group, None)
        rows += make_outcome_statements(one, fingerprint + ADDITIONAL, data)
    return rows
