"""The latest raw reply of a run, to a conversation, a judge, an annotator or another asker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from edgen.core.errors import UsageError
from edgen.core.values import TaskId
from edgen.store.ledger.checked_reader import REPLIES, Moment, ReplyRow, open_to_read
from edgen.store.run_folder import RunFolder


class LatestReply(msgspec.Struct, frozen=True, kw_only=True):
    """A raw reply and the call that it answers."""

    ledger: str  # path of the ledger
    at: str  # the time of the answer, ISO 8601, UTC
    scenario: int  # index of the call's scenario
    task: TaskId  # the call's task in the scenario
    step: int  # the call's step in the task
    attempt: int  # the call's attempt, from 0
    model: str | None  # as the service names it
    finish_reason: str  # as in Reply
    refusal: str | None  # the service's text if it refused
    text: str  # raw text


def find_latest(run: Path) -> LatestReply:
    """Return the reply that was stored last in any ledger of a run, or in the ledger `run`. Raises RunError
    if there is no run, UsageError if there is no answer."""
    ledgers = [run] if run.is_file() else RunFolder(run).require().ledgers()
    found = [latest for path in ledgers if (latest := _read_latest(path)) is not None]
    if not found:
        raise UsageError(f"{run}: there is no answer yet, so there is no reply to show.")
    return max(found, key=lambda one: one[0])[1]


def _read_latest(ledger: Path) -> tuple[float, LatestReply] | None:
    """Return the last reply that a ledger stored, after its time in seconds since the epoch."""
    with open_to_read(ledger) as reader:
        row = reader.read_row(f"{REPLIES} ORDER BY rowid DESC LIMIT 1", ReplyRow)
        if row is None:
            return None
        moment = "SELECT answered_at FROM replies ORDER BY rowid DESC LIMIT 1"
        (at,) = reader.require_row(moment, tuple[Moment])
        reply = reader.check_reply(row)
    return at, LatestReply(
        ledger=str(ledger),
        at=datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        scenario=row.scenario,
        task=row.task,
        step=row.step,
        attempt=row.attempt,
        model=reply.model,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
        text=reply.text,
    )
