"""Facts of the ledger at a path, each read by opening and closing it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from edgen.core.values import Address, Reply
from edgen.store.ledger.checked_reader import REPLIES, Moment, Natural, ReplyRow, open_to_read
from edgen.store.ledger.facts import read_facts
from edgen.store.ledger.outstanding import NotedBatch, read_batches
from edgen.store.ledger.reader import LedgerReader
from edgen.store.ledger.schema import PICO
from edgen.store.ledger.status import RunStatus, read_lost, read_status, sum_charges, sum_lost, sum_out
from edgen.store.ledger.writer import COUNT, read_acknowledged


class LedgerSummary(msgspec.Struct, frozen=True):
    """A summary of a run."""

    status: RunStatus  # counts and state
    out: tuple[int, float]  # tokens and US dollars reserved for outstanding calls
    unanswered: tuple[int, float]  # tokens and US dollars charged for unanswered calls; see ledger/status
    batches: list[NotedBatch]  # noted batches
    facts: dict[str, str]  # of the run, by name
    lost_replies: int = 0  # stored once, and missing now


def run_status(path: Path) -> RunStatus:
    """Return the status of the ledger at `path`."""
    with LedgerReader(path) as view:
        return view.status


def read_summary(path: Path) -> LedgerSummary:
    """Return a summary of the ledger at `path`."""
    acknowledged = read_acknowledged(path)  # first: a writer may continue meanwhile
    with open_to_read(path) as book:
        (out, out_pico), (lost, lost_pico) = sum_out(book), sum_lost(book)
        return LedgerSummary(
            status=read_status(book),
            out=(out, out_pico / PICO),
            unanswered=(lost, lost_pico / PICO),
            batches=read_batches(book),
            facts=read_facts(book),
            lost_replies=read_lost(book) + max(0, acknowledged - book.require_row(COUNT, tuple[Natural])[0]),
        )


def read_latest_reply(path: Path) -> tuple[float, Address, Reply] | None:
    """Return the last reply that the ledger at `path` stored, its time (seconds since the epoch) and its
    call."""
    with open_to_read(path) as book:
        row = book.read_row(f"{REPLIES} ORDER BY rowid DESC LIMIT 1", ReplyRow)
        if row is None:
            return None
        at = book.require_row("SELECT answered_at FROM replies ORDER BY rowid DESC LIMIT 1", tuple[Moment])[0]
        return at, Address(row.scenario, row.task, row.step, row.attempt), book.check_reply(row)


def read_batches_at(path: Path) -> list[NotedBatch]:
    """Return every batch of the ledger at `path`; none if there is no ledger."""
    if not path.exists():
        return []
    with open_to_read(path) as book:
        return read_batches(book)


def count_outstanding_at(path: Path, batch: int) -> int:
    """Return the number of outstanding requests of a batch of the ledger at `path`."""
    with open_to_read(path) as book:
        query = "SELECT COUNT(*) FROM outstanding WHERE batch = ?"
        return book.require_row(query, tuple[Natural], (batch,))[0]


def sum_charges_at(path: Path, price: Callable[[int, int], float]) -> tuple[int, float]:
    """Return `Ledger.sum_charges` of the ledger at `path`; zeros if there is none."""
    if not path.exists():
        return 0, 0.0
    with open_to_read(path) as book:
        return sum_charges(book, price)
