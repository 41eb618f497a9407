"""What a ledger notes of its batches as a whole: that some are open, when the first was sent, that all was made."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec

from edgen.core.errors import FailureKind, UsageError
from edgen.store.ledger import Batch, Ledger
from edgen.store.ledger.outstanding import State

_MADE = "batches_made"  # fact: all was made since a batch was last begun
_SINCE = "batches_since"  # fact: when the first batch was sent of those that the run is being made with


def open_batches_error(batches: Sequence[Batch]) -> UsageError:
    """Why a run whose batches are open is not gone on with call by call."""
    numbers = ", ".join(str(batch.number) for batch in batches[:5])
    count = f"{len(batches)} batches" if len(batches) > 1 else "a batch"
    verb = "are" if len(batches) > 1 else "is"
    if all(batch.state == "written" for batch in batches):
        return UsageError(
            f"request files of this run are out with somebody ({count}: {numbers}), and asking their requests again "
            "would pay twice. Read the results with `edgen batch read RUN FILES`, or give them up with "
            "`edgen batch cancel RUN`."
        )
    where = "ready to be sent" if all(batch.state == "ready" for batch in batches) else "at the provider"
    return UsageError(
        f"{count} of this run {verb} {where} ({numbers}), and asking their requests again would pay twice. "
        "Go on with --via batch, or end them with `edgen batch cancel RUN`, which keeps what they have answered."
    )


async def end_unsent(ledger: Ledger, batch: Batch, message: str, state: State = "dropped") -> None:
    """Note that a batch of which nothing was sent, or not by edgen, has ended: none of its requests is out any more."""
    await ledger.out.note(msgspec.structs.replace(batch, state=state, message=message), clear=True)


def first_sent_at(ledger: Ledger) -> float | None:
    """When the first batch was sent, in seconds since the epoch; None if none was, or what is noted is no time."""
    try:
        since = float(ledger.fact(_SINCE) or "nan")
    except ValueError:
        return None
    return since if math.isfinite(since) else None


async def note_first_sent(ledger: Ledger) -> None:
    """Note that batches are sent from now on, unless that is noted already."""
    since = first_sent_at(ledger)
    if since is None or since > time.time():  # never, or by a clock that was set back since
        ledger.set_fact(_SINCE, repr(time.time()))
        await ledger.flush()


def end_batch_period(ledger: Ledger) -> None:
    """Note that all was made: the time of its batches is over, and so are their failures."""
    if ledger.out.batches():
        ledger.set_fact(_SINCE, "")
        ledger.set_fact(_MADE, "1")


async def begin_batch_period(ledger: Ledger) -> None:
    """What failed for good is tried again by the first start after the run was made, as it is with calls made one
    by one; until then it stays failed, whatever the number of starts and rounds."""
    if ledger.fact(_MADE):
        ledger.out.forgive(FailureKind)
        ledger.set_fact(_MADE, "")
        await ledger.flush()
