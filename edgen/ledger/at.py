"""Questions to a ledger at a path, read only: a run in progress is not disturbed, a finished one not changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from edgen.ledger.batches import Batch, read_batches
from edgen.ledger.book import Book
from edgen.ledger.cells import NATURAL
from edgen.ledger.opening import connect
from edgen.ledger.status import RunStatus, charged, read_facts, read_status, set_aside, unanswered


class Kept(msgspec.Struct, frozen=True):
    """All that is told of a run at once. `out` and `unanswered` are (tokens, US dollars): set aside for what is
    out, and charged for calls without an answer, as ledger/status has them. `facts` are those about the run."""

    status: RunStatus
    out: tuple[int, float]
    unanswered: tuple[int, float]
    batches: list[Batch]
    facts: dict[str, str]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Book]:
    book = Book(connect(path, read_only=True), path)
    try:
        yield book
    finally:
        book.close()


def kept_at(path: Path) -> Kept:
    """How the run of the ledger at `path` stands."""
    with _reading(path) as book:
        return Kept(
            read_status(book),
            set_aside(book),
            unanswered(book),
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
    """What `Ledger.charged` says of the ledger at `path`; nothing if there is none."""
    if not path.exists():
        return 0, 0.0
    with _reading(path) as book:
        return charged(book, price)
