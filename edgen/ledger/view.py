"""A ledger read only: what was accepted, without disturbing whoever may be writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgen.ledger.batches import OPEN
from edgen.ledger.book import (
    OUTCOME,
    OUTCOME_COLUMNS,
    RECORD,
    RECORD_COLUMNS,
    REPLY,
    REPLY_COLUMNS,
    Book,
    Kinds,
    unsound,
)
from edgen.ledger.cells import AMOUNT, BLOB, MOMENT, NATURAL, TEXT
from edgen.ledger.opening import connect
from edgen.ledger.schema import REPLICATES, total, unit_number, units
from edgen.ledger.status import RunPlan, RunStatus, read_status
from edgen.model import Reply

_PAGE = 500


class View:
    """The accepted outcomes of a ledger's present plan. Close it, or use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._book = Book(connect(path, read_only=True), path)
        try:
            self.status: RunStatus = read_status(self._book)
        except BaseException:
            self._book.close()
            raise

    def __enter__(self) -> View:
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
        return next(unsound(self._book), None) is None

    def accepted(self) -> Iterator[tuple[int, int]]:
        """(index, replicate) of what was accepted, in order, read in pages."""
        for (unit,) in self._paged(
            "SELECT unit FROM outcomes WHERE unit > :behind AND unit < :stop AND unit % :wide < :replicates "
            "AND status = 'accepted' AND fingerprint = :fingerprint ORDER BY unit LIMIT :page",
            (NATURAL,),
        ):
            yield unit // REPLICATES, unit % REPLICATES

    def record(self, index: int, replicate: int) -> bytes | None:
        """The record of one accepted outcome of the plan, None if there is none."""
        if not (self.plan.first <= index < self.plan.scenarios and 0 <= replicate < self.plan.replicates):
            return None
        unit = unit_number(index, replicate)
        row = self._book.row(
            f"SELECT {RECORD_COLUMNS} FROM outcomes o JOIN records r ON r.unit = o.unit "  # noqa: S608 - ours
            "WHERE o.unit = ? AND o.status = 'accepted' AND o.fingerprint = ?",
            RECORD,
            (unit, self.plan.fingerprint),
        )
        return None if row is None else self._book.record(unit, *row)

    def records(self) -> Iterator[tuple[int, int, bytes]]:
        """(index, replicate, record) of what was accepted, in order, read in pages."""
        for row in self._paged(
            f"SELECT {OUTCOME_COLUMNS}, {RECORD_COLUMNS} FROM outcomes o JOIN records r ON r.unit = o.unit "  # noqa: S608
            "WHERE o.unit > :behind AND o.unit < :stop AND o.unit % :wide < :replicates "
            "AND o.status = 'accepted' AND o.fingerprint = :fingerprint ORDER BY o.unit LIMIT :page",
            (*OUTCOME, *RECORD),
        ):
            self._book.sound(row[: len(OUTCOME)])
            unit = row[0]
            yield unit // REPLICATES, unit % REPLICATES, self._book.record(unit, *row[len(OUTCOME) :])

    def outcomes(self, index: int) -> dict[int, tuple[str, str | None, bytes | None]]:
        """(status, reason, record) of every outcome of one index, by replicate, whatever plan it was made
        under. A record may stand beside an outcome that is not accepted: its own, or an earlier one's."""
        found = {}
        for row in self._book.rows(
            f"SELECT {OUTCOME_COLUMNS}, {RECORD_COLUMNS} FROM outcomes o LEFT JOIN records r ON r.unit = o.unit "  # noqa: S608
            "WHERE o.unit >= ? AND o.unit < ? ORDER BY o.unit",
            (*OUTCOME, BLOB.or_none, NATURAL.or_none),
            (unit_number(index, 0), unit_number(index + 1, 0)),
        ):
            self._book.sound(row[: len(OUTCOME)])
            (unit, status, reason), (data, checksum) = row[:3], row[len(OUTCOME) :]
            if data is not None:
                data = self._book.record(unit, data, checksum)
            found[unit % REPLICATES] = status, reason, data
        return found

    def outcome(self, index: int, replicate: int) -> tuple[str, str | None, str | None] | None:
        """(status, reason, detail) of one conversation of the plan; None if it has no outcome yet."""
        row = self._book.row(
            f"SELECT {OUTCOME_COLUMNS} FROM outcomes o WHERE unit = ? AND fingerprint = ?",  # noqa: S608 - ours
            OUTCOME,
            (unit_number(index, replicate), self.plan.fingerprint),
        )
        if row is None:
            return None
        self._book.sound(row)
        return row[1], row[2], row[3]

    def replies(self, index: int, replicate: int) -> list[tuple[int, int, Reply]]:
        """(step, attempt, reply): the latest answer to each call of one conversation, in this order."""
        rows = self._book.rows(
            f"SELECT {REPLY_COLUMNS} FROM replies WHERE unit = ? ORDER BY step, attempt, answered_at",  # noqa: S608
            REPLY,
            (unit_number(index, replicate),),
        )
        latest = {row[1:3]: row for row in rows}
        return [(step, attempt, self._book.reply(row)) for (step, attempt), row in latest.items()]

    def settled(self) -> Iterator[tuple[int, int, str, str | None]]:
        """(index, replicate, status, reason) of every outcome of the plan, in order, read in pages."""
        for row in self._paged(
            f"SELECT {OUTCOME_COLUMNS} FROM outcomes o WHERE unit > :behind AND unit < :stop "  # noqa: S608 - ours
            "AND unit % :wide < :replicates AND fingerprint = :fingerprint ORDER BY unit LIMIT :page",
            OUTCOME,
        ):
            self._book.sound(row)
            unit, status, reason = row[:3]
            yield unit // REPLICATES, unit % REPLICATES, status, reason

    def refused(self) -> Iterator[tuple[int, int, str, str, str | None, str | None]]:
        """(index, replicate, status, reason, detail, last raw reply) of what was not accepted, in order."""
        for row in self._paged(
            f"SELECT {OUTCOME_COLUMNS} FROM outcomes o WHERE o.unit > :behind AND o.unit < :stop "  # noqa: S608 - ours
            "AND o.unit % :wide < :replicates AND o.status != 'accepted' AND o.fingerprint = :fingerprint "
            "ORDER BY o.unit LIMIT :page",
            OUTCOME,
        ):
            self._book.sound(row)
            unit, status, reason, detail, _, key, _ = row
            reply = last_reply(self._book, unit, key)
            said = None if reply is None else reply.text if reply.refusal is None else reply.refusal
            yield unit // REPLICATES, unit % REPLICATES, status, reason or "unknown", detail, said

    def spent(self) -> Iterator[tuple[int, int, int, int, int, float | None]]:
        """(index, replicate, calls answered, prompt tokens, completion tokens, US dollars) of every conversation
        of the plan that has replies, in order. All replies count, those of an earlier form of the job too."""
        for unit, *rest in self._paged(
            f"SELECT unit, COUNT(*), {total('prompt_tokens')}, {total('completion_tokens')}, SUM(cost_usd) "  # noqa: S608
            "FROM replies WHERE unit > :behind AND unit < :stop AND unit % :wide < :replicates "
            "GROUP BY unit ORDER BY unit LIMIT :page",
            (NATURAL, NATURAL, NATURAL, NATURAL, AMOUNT.or_none),
        ):
            yield (unit // REPLICATES, unit % REPLICATES, *rest)

    def out(self) -> Iterator[tuple[int, int, int, int, float]]:
        """(index, replicate, calls, tokens, US dollars at most) of every conversation of the plan with requests in
        batches that are out, in order."""
        states = ", ".join(f"'{state}'" for state in OPEN)
        for unit, *rest in self._paged(
            f"SELECT unit, COUNT(*), {total('tokens')}, TOTAL(usd) FROM outstanding "  # noqa: S608 - our states
            f"WHERE batch IN (SELECT id FROM batches WHERE state IN ({states}) AND fingerprint = :fingerprint) "
            "AND unit > :behind AND unit < :stop AND unit % :wide < :replicates "
            "GROUP BY unit ORDER BY unit LIMIT :page",
            (NATURAL, NATURAL, NATURAL, AMOUNT),
        ):
            yield (unit // REPLICATES, unit % REPLICATES, *rest)

    def spent_by_side(self, closing: int, stop: int) -> Iterator[tuple[int, int, list[tuple[int, int, int]]]]:
        """(index, replicate, usage) of every conversation below index `stop` whose answers were all counted, and
        asked in one form of the job, in order. The usage is (calls, prompt tokens, completion tokens) of three
        kinds of steps: even ones, odd ones, and those from `closing` on."""
        kinds = (
            f"step < {closing:d} AND step % 2 = 0",
            f"step < {closing:d} AND step % 2 = 1",
            f"step >= {closing:d}",
        )
        columns = ", ".join(
            f"{total(kind)}, {total(f'prompt_tokens * ({kind})')}, {total(f'completion_tokens * ({kind})')}"
            for kind in kinds
        )
        query = (
            f"SELECT unit, {columns} FROM replies WHERE unit > :behind AND unit < MIN(:stop, {unit_number(stop, 0):d}) "  # noqa: S608 - numbers
            "AND unit % :wide < :replicates GROUP BY unit "
            "HAVING COUNT(prompt_tokens + completion_tokens) = COUNT(*) AND COUNT(DISTINCT step * 32 + attempt) = COUNT(*) "
            "ORDER BY unit LIMIT :page"
        )
        for unit, *sums in self._paged(query, (NATURAL,) * 10):
            yield unit // REPLICATES, unit % REPLICATES, [tuple(sums[i : i + 3]) for i in (0, 3, 6)]

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

    def _paged(self, sql: str, kinds: Kinds) -> Iterator[tuple[Any, ...]]:
        """The rows of a query by unit, its first column. It is given `behind` and `stop`, the units between which
        a page begins and ends, the plan's `replicates` of each `wide` numbers, its `fingerprint`, and `page`, the
        rows of a page."""
        plan = self.plan
        first, stop = units(plan.first, plan.scenarios)
        values = {
            "behind": first - 1,
            "stop": stop,
            "wide": REPLICATES,
            "replicates": plan.replicates,
            "fingerprint": plan.fingerprint,
            "page": _PAGE,
        }
        while True:
            rows, whole = self._book.page(sql, kinds, values)
            yield from rows
            if whole and len(rows) < _PAGE:
                return
            values["behind"] = rows[-1][0]

    def groups(self) -> Iterator[tuple[int, int]]:
        """(group hash, accepted outcomes), by ascending hash."""
        plan = self.plan
        yield from self._book.stream(
            "SELECT grp, COUNT(*) FROM outcomes WHERE fingerprint = ? AND status = 'accepted' "
            "AND unit >= ? AND unit < ? AND unit % ? < ? GROUP BY grp ORDER BY grp",
            (NATURAL, NATURAL),
            (plan.fingerprint, *units(plan.first, plan.scenarios), REPLICATES, plan.replicates),
        )


def last_reply(book: Book, unit: int, key: bytes | None) -> Reply | None:
    """The reply of a conversation under a key."""
    row = None if key is None else book.row(
        f"SELECT {REPLY_COLUMNS} FROM replies WHERE unit = ? AND key = ?", REPLY, (unit, key)  # noqa: S608 - ours
    )  # fmt: skip
    return None if row is None else book.reply(row)
