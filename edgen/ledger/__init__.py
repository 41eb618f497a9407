"""The run's durable record: every reply, raw, before anything reads it; and what became of each.

A reply is stored under a key made of all that shaped it. A restart runs the protocols again and
feeds them from here; only what was never answered is asked. Writing is the writer's (one thread,
group commits); reading is direct, since WAL lets both go on at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from edgen.ledger import checksums
from edgen.ledger.at import Kept, batches_at, charged_at, kept_at, out_at, run_status
from edgen.ledger.batches import OPEN, STRIKE, Batch, Out, Outstanding, abandon
from edgen.ledger.book import (
    OUTCOME,
    OUTCOME_COLUMNS,
    RECORD,
    RECORD_COLUMNS,
    REPLY,
    REPLY_COLUMNS,
    Book,
    unsound,
)
from edgen.ledger.cells import NATURAL, STATUS, TEXT
from edgen.ledger.merge import Drop, Several, Source, Together
from edgen.ledger.opening import check, connect, empty
from edgen.ledger.schema import REPLICATES, unit_number, units
from edgen.ledger.status import Counts, RunPlan, RunStatus, charged, read_plan, read_status
from edgen.ledger.view import View, last_reply
from edgen.ledger.writer import Writer
from edgen.model import Address, Reply, Status

_PAGE = 500
_REPLIES = f"SELECT {REPLY_COLUMNS} FROM replies WHERE unit = ?"  # noqa: S608 - ours

_REPLY = "INSERT OR IGNORE INTO replies VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_OUTCOME = "INSERT OR REPLACE INTO outcomes VALUES (?,?,?,?,?,?,?,?)"
_RECORD = "INSERT OR REPLACE INTO records VALUES (?,?,?)"
_META = "INSERT OR REPLACE INTO meta VALUES (?,?)"
_SESSION = "UPDATE sessions SET replayed=?, retried=?, state=?, message=?, ended_at=? WHERE id=?"


class Outcome(msgspec.Struct, frozen=True):
    """How one conversation's work ended. `group` is the split's group hash, in [0, 2**63)."""

    scenario: int
    replicate: int
    status: Status
    reason: str | None
    detail: str | None
    group: int
    reply_key: bytes | None


class Ledger:
    """An open run.db. Use as an async context manager; everything queued is committed at its end. `before_commit`:
    see Writer."""

    def __init__(
        self, path: Path, *, create: bool = True, before_commit: Callable[[], None] = lambda: None
    ) -> None:
        self._path = path
        self._before_commit = before_commit
        connection = connect(path, create=create)
        self._book = Book(connection, path)
        try:
            check(connection, path)
            # Who opens one that was worked on would otherwise pay again for what a lost log held.
            if not create and self._book.row("SELECT id FROM sessions", (NATURAL,)) is None:
                raise empty(path)
            last = self._book.one("SELECT MAX(unit) FROM replies", (NATURAL.or_none,))[0]
        except BaseException:
            connection.close()
            raise
        self._last_unit = -1 if last is None else last
        self._writer: Writer | None = None
        self._out: Out | None = None

    async def __aenter__(self) -> Ledger:
        try:
            self._writer = Writer(self._path, self._before_commit)
            self._out = Out(self._book, self._writer)
        except BaseException as problem:
            await self.__aexit__(type(problem), problem, None)
            raise
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
            self._book.close()

    @property
    def writer(self) -> Writer:
        assert self._writer is not None, "the ledger is not open"
        return self._writer

    @property
    def out(self) -> Out:
        """The calls that are out, and the batches."""
        assert self._out is not None, "the ledger is not open"
        return self._out

    @property
    def path(self) -> Path:
        return self._path

    # -- replies

    async def store(
        self,
        address: Address,
        key: bytes,
        reply: Reply,
        latency: float,
        tries: int,
        *,
        charged_tokens: int = 0,
        cost_usd: float | None = None,
        held: int | None = None,
    ) -> None:
        """Store a raw reply; returns when it is on the disk. `held`: the id under which the call was out."""
        usage = reply.usage
        unit = unit_number(address.scenario, address.replicate)
        said = (
            unit,
            address.step,
            address.attempt,
            key,
            reply.finish_reason,
            reply.refusal,
            reply.model,
            int(reply.simulated),
            usage.prompt_tokens if usage else None,
            usage.completion_tokens if usage else None,
        )
        row = (
            *said,
            time.time(),
            latency,
            tries,
            charged_tokens,
            cost_usd,
            reply.text,
            checksums.of_reply(*said, reply.text),
        )
        self._last_unit = max(self._last_unit, unit)
        if held is None:
            await self.writer.put(_REPLY, row)
        else:
            await self.writer.put_all([(_REPLY, row), (STRIKE, (held,))])

    def replies(self, scenario: int, replicate: int) -> dict[bytes, Reply]:
        """What was answered for a conversation by now, by key."""
        unit = unit_number(scenario, replicate)
        if unit > self._last_unit:
            return {}
        return {row[3]: self._book.reply(row) for row in self._book.rows(_REPLIES, REPLY, (unit,))}

    def places(self, scenario: int, replicate: int) -> int:
        """How many calls of a conversation were answered; a call that was asked in several forms counts once."""
        answered = "SELECT COUNT(*) FROM (SELECT DISTINCT step, attempt FROM replies WHERE unit = ?)"
        return int(self._book.one(answered, (NATURAL,), (unit_number(scenario, replicate),))[0])

    def reply(self, address: Address, key: bytes) -> Reply | None:
        """What was answered to one request by now, whichever session asked it."""
        unit = unit_number(address.scenario, address.replicate)
        row = self._book.row(
            f"{_REPLIES} AND step = ? AND attempt = ? AND key = ?",
            REPLY,
            (unit, address.step, address.attempt, key),
        )
        return None if row is None else self._book.reply(row)

    # -- outcomes

    def settle(self, outcome: Outcome, fingerprint: str, record: bytes | None) -> None:
        """Queue how a conversation ended and, if it was accepted, its record."""
        unit = unit_number(outcome.scenario, outcome.replicate)
        facts = (outcome.status, outcome.reason, outcome.detail, outcome.group, outcome.reply_key)
        row = (unit, fingerprint, *facts, checksums.of_outcome(unit, *facts))
        kept = [] if record is None else [(_RECORD, (unit, record, checksums.of_record(unit, record)))]
        self.writer.add(*kept, (_OUTCOME, row))

    def settled(
        self, fingerprint: str, first: int, end: int
    ) -> Iterator[tuple[int, int, Status, str | None]]:
        """(scenario, replicate, status, reason) of outcomes made under `fingerprint`, in order.

        `first` and `end` bound the scenarios (half open). Failed ones are left out: they have no
        answer and are tried again. Read in pages, so that no long read holds the log back.
        """
        unit, stop = unit_number(first, 0) - 1, unit_number(end, 0)
        while True:
            rows = self._book.rows(
                "SELECT unit, status, reason, fingerprint FROM outcomes WHERE unit > ? AND unit < ? "
                "ORDER BY unit LIMIT ?",
                (NATURAL, STATUS, TEXT.or_none, TEXT),
                (unit, stop, _PAGE),
            )
            for unit, status, reason, made_under in rows:
                if made_under == fingerprint and status != Status.FAILED:
                    yield unit // REPLICATES, unit % REPLICATES, Status(status), reason
            if len(rows) < _PAGE:
                return

    def kept(
        self, fingerprint: str, first: int, end: int, replicates: int
    ) -> list[tuple[Status, str | None, int]]:
        """How many outcomes of each (status, reason) `settled` has, of so many replicates."""
        rows = self._book.derived(
            "SELECT status, reason, COUNT(*) FROM outcomes WHERE unit >= ? AND unit < ? AND unit % ? < ? "
            "AND fingerprint = ? AND status != 'failed' GROUP BY 1, 2",
            (STATUS, TEXT.or_none, NATURAL),
            (*units(first, end), REPLICATES, replicates, fingerprint),
        )
        return [(Status(status), reason, count) for status, reason, count in rows]

    # -- what a finished run is written from

    # of the scenarios from `first` on and below `scenarios`

    def groups(
        self, fingerprint: str, scenarios: int, replicates: int, first: int = 0
    ) -> Iterator[tuple[int, int]]:
        """(group hash, accepted conversations), by ascending hash."""
        yield from self._book.stream(
            "SELECT grp, COUNT(*) FROM outcomes WHERE fingerprint = ? AND status = 'accepted' "
            "AND unit >= ? AND unit < ? AND unit % ? < ? GROUP BY grp ORDER BY grp",
            (NATURAL, NATURAL),
            (fingerprint, *units(first, scenarios), REPLICATES, replicates),
        )

    def records(
        self, fingerprint: str, scenarios: int, replicates: int, first: int = 0
    ) -> Generator[tuple[int, bytes], None, None]:
        """(group hash, record) of accepted conversations, by scenario and replicate."""
        for row in self._book.stream(
            f"SELECT {OUTCOME_COLUMNS}, {RECORD_COLUMNS} FROM outcomes o JOIN records r ON r.unit = o.unit "  # noqa: S608
            "WHERE o.fingerprint = ? AND o.status = 'accepted' AND o.unit >= ? AND o.unit < ? AND o.unit % ? < ? "
            "ORDER BY o.unit",
            (*OUTCOME, *RECORD),
            (fingerprint, *units(first, scenarios), REPLICATES, replicates),
        ):
            self._book.sound(row[: len(OUTCOME)])
            yield row[4], self._book.record(row[0], *row[len(OUTCOME) :])

    def refused(
        self, fingerprint: str, scenarios: int, replicates: int, first: int = 0
    ) -> Iterator[tuple[int, int, str, str | None, str | None, str | None]]:
        """(scenario, replicate, status, reason, detail, last raw reply) of what was not accepted."""
        for row in self._book.stream(
            f"SELECT {OUTCOME_COLUMNS} FROM outcomes o WHERE o.fingerprint = ? AND o.status != 'accepted' "  # noqa: S608
            "AND o.unit >= ? AND o.unit < ? AND o.unit % ? < ? ORDER BY o.unit",
            OUTCOME,
            (fingerprint, *units(first, scenarios), REPLICATES, replicates),
        ):
            self._book.sound(row)
            unit, status, reason, detail, _, key, _ = row
            reply = last_reply(self._book, unit, key)
            said = None if reply is None else reply.text
            yield unit // REPLICATES, unit % REPLICATES, status, reason, detail, said

    # -- sessions and facts about the run

    def take_over(self) -> None:
        """Before anything is asked: what a dead process had under way is charged to its session, and outcomes and
        records that are damaged are removed, so that they are made again from what was answered."""
        abandon(self._book)
        if gone := list(unsound(self._book)):
            with self._book.at_once("BEGIN IMMEDIATE"):
                for unit in gone:
                    self._book.write("DELETE FROM outcomes WHERE unit = ?", (unit,))
                    self._book.write("DELETE FROM records WHERE unit = ?", (unit,))

    def begin_session(self, pid: int, host: str, edgen: str) -> int:
        """Note that a process works on the run; returns the session's number."""
        with self._book.at_once("BEGIN IMMEDIATE"):
            cursor = self._book.write(
                "INSERT INTO sessions (started_at, pid, host, edgen) VALUES (?,?,?,?)",
                (time.time(), pid, host, edgen),
            )
        return int(cursor.lastrowid or 0)

    def note_session(
        self,
        session: int,
        *,
        replayed: int,
        retried: int,
        state: str = "running",
        message: str | None = None,
    ) -> None:
        """Queue how a session stands; `state` other than running ends it. Replies count themselves."""
        ended = None if state == "running" else time.time()
        row = (replayed, retried, state, message, ended, session)
        self.writer.add((_SESSION, row))

    def charged(self, price: Callable[[int, int], float]) -> tuple[int, float]:
        """(tokens, US dollars) that the run has used so far; `price` of (prompt, completion) tokens
        values replies that were stored without a cost."""
        return charged(self._book, price)

    def set_fact(self, name: str, value: str) -> None:
        """Queue a fact about the run."""
        self.writer.add((_META, (name, value)))

    def fact(self, name: str) -> str | None:
        """A fact as last committed."""
        row = self._book.row("SELECT value FROM meta WHERE name = ?", (TEXT,), (name,))
        return None if row is None else str(row[0])

    @property
    def plan(self) -> RunPlan | None:
        """What the run was to make when it was last worked on."""
        return read_plan(self._book)

    def status(self) -> RunStatus:
        """What `edgen status` prints, as last committed."""
        return read_status(self._book)

    async def flush(self) -> None:
        """Return when all that was queued is on the disk."""
        await self.writer.put(_META, ("flushed", "1"))


__all__ = [
    "OPEN",
    "REPLICATES",
    "Batch",
    "Counts",
    "Drop",
    "Kept",
    "Ledger",
    "Out",
    "Outcome",
    "Outstanding",
    "RunPlan",
    "RunStatus",
    "Several",
    "Source",
    "Together",
    "View",
    "batches_at",
    "charged_at",
    "kept_at",
    "out_at",
    "run_status",
    "unit_number",
]
