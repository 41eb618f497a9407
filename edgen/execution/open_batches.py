"""A ledger's notes on its batch period: when the first batch was sent, whether all work is done; and the
error if batches are open."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec

from edgen.core.errors import FailureKind, UsageError
from edgen.store.ledger import Ledger, NotedBatch
from edgen.store.ledger.status import State

_MADE = "batches_made"  # fact: all work was done when the last period ended
_SINCE = "batches_since"  # fact: when the first batch of the current period was sent


def open_batches_error(batches: Sequence[NotedBatch]) -> UsageError:
    """Return the error for resuming call by call while batches are open."""
    numbers = ", ".join(str(batch.number) for batch in batches[:5])
    count = f"{len(batches)} batches" if len(batches) > 1 else "a batch"
    verb = "are" if len(batches) > 1 else "is"
    if all(batch.state == "written" for batch in batches):
        return UsageError(
            f"request files of this run are with the user who sends them ({count}: {numbers}), "
            "and sending their requests again would pay twice. Read the results with `edgen batch read RUN "
            "FILES`, or give them up with `edgen batch cancel RUN`."
        )
    where = "ready to be sent" if all(batch.state == "ready" for batch in batches) else "at the provider"
    return UsageError(
        f"{count} of this run {verb} {where} ({numbers}), and sending their requests again would pay twice. "
        "Continue with --via batch, or end them with `edgen batch cancel RUN`, which keeps what they have "
        "answered."
    )


async def end_unsent(ledger: Ledger, batch: NotedBatch, message: str, state: State = "dropped") -> None:
    """Note the end of a batch that edgen has not sent, and release its requests."""
    await ledger.out.note(msgspec.structs.replace(batch, state=state, message=message), clear=True)


def read_first_sent_time(ledger: Ledger) -> float | None:
    """Return when the first batch was sent, in seconds since the epoch; None if no batch was sent, or the
    note is invalid."""
    try:
        since = float(ledger.read_fact(_SINCE) or "nan")
    except ValueError:
        return None
    return since if math.isfinite(since) else None


async def note_first_sent(ledger: Ledger) -> None:
    """Note the time of the first batch, unless noted already."""
    since = read_first_sent_time(ledger)
    if since is None or since > time.time():  # a time ahead: the clock was set back since
        ledger.set_fact(_SINCE, repr(time.time()))
        await ledger.flush()


def end_batch_period(ledger: Ledger) -> None:
    """Note that all work is done. The next period has its own start, and retries failures."""
    ledger.set_fact(_SINCE, "")
    ledger.set_fact(_MADE, "1")


async def begin_batch_period(ledger: Ledger) -> None:
    """Start a batch period. If the run was complete before, its permanent failures are retried, as with
    single calls. Until then they stay failed over all starts and rounds."""
    if ledger.read_fact(_MADE):
        ledger.out.ignore_failures(FailureKind)
        ledger.set_fact(_MADE, "")
        await ledger.flush()
