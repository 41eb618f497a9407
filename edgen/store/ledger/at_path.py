"""Functions that open the ledger at a path, read one fact and close it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edgen.store.ledger.checked_reader import Natural, open_to_read
from edgen.store.ledger.reader import LedgerReader
from edgen.store.ledger.status import NotedBatch, RunStatus, read_batches, sum_charges


def run_status(path: Path) -> RunStatus:
    """Return the status of the ledger at `path`."""
    with LedgerReader(path) as view:
        return view.status


def read_batches_at(path: Path) -> list[NotedBatch]:
    """Return every batch of the ledger at `path`; none if there is no ledger."""
    if not path.exists():
        return []
    with open_to_read(path) as reader:
        return read_batches(reader)


def count_outstanding_at(path: Path, batch: int) -> int:
    """Return the number of outstanding requests of a batch of the ledger at `path`."""
    with open_to_read(path) as reader:
        query = "SELECT COUNT(*) FROM outstanding WHERE batch = ?"
        return reader.require_row(query, tuple[Natural], (batch,))[0]


def sum_charges_at(path: Path, price: Callable[[int, int], float]) -> tuple[int, float]:
    """Return `Ledger.sum_charges` of the ledger at `path`; zeros if there is none."""
    if not path.exists():
        return 0, 0.0
    with open_to_read(path) as reader:
        return sum_charges(reader, price)
