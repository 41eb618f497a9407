"""Outstanding work: calls that were sent and are not yet answered, and batches.

A call is stored here before it is sent (`hold`) and removed with its reply, so the next session knows which
calls a killed process had under way. Under a budget they are charged at their possible maximum. A batch is
stored before its file is made, and its provider's id before any waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Address
from edgen.store.ledger.checked_reader import Amount, CheckedReader, Natural, Task, read_wall_time
from edgen.store.ledger.schema import PICO
from edgen.store.ledger.status import NotedBatch, sum_column
from edgen.store.ledger.writer import Statement, Writer

_AT = "scenario = ? AND task = ? AND step = ? AND attempt = ? AND key = ?"
_BEGINS = "scenario = ? AND step = ? AND attempt = ? AND substr(key, 1, ?) = ?"
HOLD = "INSERT INTO outstanding VALUES (?,?,?,?,?,?,?,?,?)"
STRIKE = "DELETE FROM outstanding WHERE id = ?"
LOSE = (
    f"UPDATE sessions SET lost_tokens = lost_tokens + ?, lost_usd = ROUND((lost_usd + ?) * {PICO:g}) / "  # noqa: S608
    f"{PICO:g} WHERE id = (SELECT MAX(id) FROM sessions)"
)
_RETURNED = (
    "INSERT INTO returned VALUES (?,?,?,?,?,?,?,1) ON CONFLICT (scenario, task, step, attempt, key) "
    "DO UPDATE SET kind = excluded.kind, detail = excluded.detail, tries = tries + 1"
)
_UNWORKED = "INSERT OR IGNORE INTO returned VALUES (?,?,?,?,?,NULL,NULL,0)"
_FORGIVEN = "UPDATE returned SET kind = NULL, detail = NULL, tries = 0 WHERE kind = ?"
_BATCH = "INSERT OR REPLACE INTO batches VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
_CLEAR = "DELETE FROM outstanding WHERE batch = ?"


class OutstandingCall(msgspec.Struct, frozen=True, array_like=True):
    """An outstanding call: the address of its reply, and its maximum charge."""

    id: Natural  # id of the row
    batch: Natural | None  # number of its batch; None for a single call
    scenario: Natural  # index of the reply's scenario
    task: Task  # the reply's task
    step: Natural  # the reply's step
    attempt: Natural  # the reply's attempt
    key: bytes  # key of the reply
    tokens: Natural  # maximum tokens
    usd: Amount  # maximum US dollars

    @property
    def address(self) -> Address:
        return Address(self.scenario, self.task, self.step, self.attempt)


_CALLS = f"SELECT {', '.join(OutstandingCall.__struct_encode_fields__)} FROM outstanding WHERE"  # noqa: S608 - ours


class OutstandingCalls:
    """The outstanding calls of one open ledger. Reads see committed data."""

    def __init__(self, reader: CheckedReader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer
        self._last = reader.require_row("SELECT IFNULL(MAX(id), 0) FROM outstanding", tuple[Natural])[0]

    # -- single calls

    async def hold(self, address: Address, key: bytes, tokens: int, usd: float) -> int:
        """Store a call before it is sent. Return its id when the row is on disk."""
        number = self._assign_number()
        try:
            await self._writer.put((HOLD, (number, None, *_place(address), key, tokens, usd)))
        except asyncio.CancelledError:  # the row is stored all the same
            self.end_without_reply(number)
            raise
        return number

    def end_without_reply(self, number: int, lost_tokens: int = 0, lost_usd: float = 0.0) -> None:
        """Queue the end of a held call without a reply, and charge its possible cost."""
        self._writer.add((STRIKE, (number,)), *_charge(lost_tokens, lost_usd))

    # -- batches

    def put(self, batch: int, address: Address, key: bytes, tokens: int, usd: float) -> None:
        """Queue a request of a batch in preparation."""
        self._writer.add((HOLD, (self._assign_number(), batch, *_place(address), key, tokens, usd)))

    def note_return(self, row: OutstandingCall, failure: CallError | None, *, lost: bool = False) -> None:
        """Queue that a request of a batch ended without a reply: it failed or was never worked on. `lost`: it
        may have been paid for, so it is charged."""
        place = (*_place(row.address), row.key)
        told = (
            (_UNWORKED, place)
            if failure is None
            else (_RETURNED, (*place, str(failure.kind), failure.message))
        )
        self._writer.add(told, (STRIKE, (row.id,)), *(_charge(row.tokens, row.usd) if lost else ()))

    def read_failure(self, address: Address, key: bytes) -> tuple[int, CallError] | None:
        """Return the number of failures of a request in batches, and the last failure."""
        row = self._reader.read_row(
            f"SELECT tries, kind, IFNULL(detail, '') FROM returned WHERE {_AT} AND kind IS NOT NULL",  # noqa: S608 - ours
            tuple[Natural, FailureKind, str],
            (*_place(address), key),
        )
        return None if row is None else (row[0], CallError(row[1], row[2]))

    def ignore_failures(self, kinds: Iterable[FailureKind]) -> None:
        """Queue that failures of these kinds no longer count, so that the requests are retried."""
        self._writer.add(*((_FORGIVEN, (str(kind),)) for kind in kinds))

    async def note(
        self, batch: NotedBatch, *, clear: bool = False, lost: tuple[int, float] = (0, 0.0)
    ) -> None:
        """Store a batch's state. Return when it is on disk. `clear`: none of its requests is outstanding any
        more. `lost`: tokens and US dollars to charge, since the provider may have worked on them."""
        cleared = [(_CLEAR, (batch.number,))] if clear else []
        row = msgspec.structs.astuple(batch)
        await self._writer.put((_BATCH, row), *cleared, *_charge(*lost))

    async def begin(self, *, fingerprint: str, backend: str, token: str, round_: int) -> NotedBatch:
        """Create a new batch in preparation."""
        number = 1 + self._reader.require_row("SELECT IFNULL(MAX(id), 0) FROM batches", tuple[Natural])[0]
        batch = NotedBatch(
            number=number,
            state="preparing",
            fingerprint=fingerprint,
            backend=backend,
            token=token,
            round=round_,
            made_at=read_wall_time(),
        )
        await self.note(batch)
        return batch

    def has(self, address: Address, key: bytes) -> bool:
        """Return whether this call is outstanding."""
        return bool(self._reader.read_rows(f"{_CALLS} {_AT}", OutstandingCall, (*_place(address), key)))

    def find(self, scenario: int, step: int, attempt: int, prefix: bytes) -> list[OutstandingCall]:
        """Return the outstanding requests of a scenario whose keys begin with `prefix`."""
        place = (scenario, step, attempt, len(prefix), prefix)
        return self._reader.read_rows(f"{_CALLS} {_BEGINS}", OutstandingCall, place)

    def is_back(self, scenario: int, step: int, attempt: int, prefix: bytes) -> bool:
        """Return whether a call of a scenario with this key `prefix` has ended, with or without a reply."""
        place = (scenario, step, attempt, len(prefix), prefix)
        found = f"SELECT 1 FROM replies WHERE {_BEGINS} UNION ALL SELECT 1 FROM returned WHERE {_BEGINS}"  # noqa: S608
        return self._reader.read_row(found, tuple[Natural], place * 2) is not None

    def read_sums(self, batch: int | None) -> tuple[int, int, float]:
        """Return (calls, tokens, maximum US dollars) outstanding in a batch; None: single calls."""
        sql = f"SELECT COUNT(*), {sum_column('tokens')}, TOTAL(usd) FROM outstanding WHERE batch IS ?"  # noqa: S608 - ours
        return self._reader.require_row(sql, tuple[Natural, Natural, Amount], (batch,))

    def _assign_number(self) -> int:
        self._last += 1
        return self._last


def _charge(tokens: int, usd: float) -> list[Statement]:
    """Return the statements that charge the session for unanswered calls; none for zero charges."""
    return [(LOSE, (tokens, usd))] if tokens or usd else []


_place = msgspec.structs.astuple  # columns of an address: scenario, task, step, attempt
