"""Questions to a ledger at a path, read only: a run in progress is not disturbed, a finished one not changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from edgen.store.ledger.checked_reader import CheckedReader
from edgen.store.ledger.column_types import NATURAL
from edgen.store.ledger.opening import connect
from edgen.store.ledger.outstanding import Batch, read_batches
from edgen.store.ledger.status import (
    RunStatus,
    read_facts,
    read_status,
    sum_charges,
    sum_set_aside,
    sum_unanswered,
)


class LedgerSummary(msgspec.Struct, frozen=True):
    """All that is told of a run at once. `out` and `unanswered` are (tokens, US dollars): set aside for what is
    out, and charged for calls without an answer, as ledger/status has them. `facts` are those about the run."""

    status: RunStatus
    out: tuple[int, float]
    unanswered: tuple[int, float]
    batches: list[Batch]
    facts: dict[str, str]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[CheckedReader]:
    book = CheckedReader(connect(path, read_only=True), path)
    try:
        yield book
    finally:
        book.close()


def summary_at(path: Path) -> LedgerSummary:
    """How the run of the ledger at `path` stands."""
    with _reading(path) as book:
        return LedgerSummary(
            read_status(book),
            sum_set_aside(book),
            sum_unanswered(book),
            read_batches(book),
            read_facts(book),
        )


def run_status(path: Path) -> RunStatus:
    """The status of the ledger at `path`."""
    with _reading(path) as book:
        return read_status(book)


def batches_at(path: Path) -> list[Batch]:
    """Every batch of the ledger at `path`; none if there is no ledger."""
    if not path.exists():
        return []
    with _reading(path) as book:
        return read_batches(book)


def out_at(path: Path, batch: int) -> int:
    """How many requests of a batch of the ledger at `path` are out."""
    with _reading(path) as book:
        return int(book.one("SELECT COUNT(*) FROM outstanding WHERE batch = ?", (NATURAL,), (batch,))[0])


def charged_at(path: Path, price: Callable[[int, int], float]) -> tuple[int, float]:
    """What `Ledger.sum_charges` says of the ledger at `path`; nothing if there is none."""
    if not path.exists():
        return 0, 0.0
    with _reading(path) as book:
        return sum_charges(book, price)
