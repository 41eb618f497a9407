"""Questions to a ledger at a path, read only: a run in progress is not disturbed, a finished one not changed."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from edgen.ledger.batches import Batch, read_batches
from edgen.ledger.schema import connect, worded
from edgen.ledger.status import RunStatus, charged, read_status, set_aside, unanswered


class Kept(msgspec.Struct, frozen=True):
    """All that is told of a run at once. `out` and `unanswered` are (tokens, US dollars): set aside for what is
    out, and charged for calls without an answer, as ledger/status has them. `facts` are those about the run."""

    status: RunStatus
    out: tuple[int, float]
    unanswered: tuple[int, float]
    batches: list[Batch]
    facts: dict[str, str]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(path, read_only=True)
    try:
        yield connection
    except sqlite3.DatabaseError as problem:
        raise worded(path, problem) from None
    finally:
        connection.close()


def kept_at(path: Path) -> Kept:
    """How the run of the ledger at `path` stands."""
    with _reading(path) as connection:
        return Kept(
            read_status(connection),
            set_aside(connection),
            unanswered(connection),
            read_batches(connection),
            dict(connection.execute("SELECT name, value FROM meta").fetchall()),
        )


def run_status(path: Path) -> RunStatus:
    """The status of the ledger at `path`."""
    with _reading(path) as connection:
        return read_status(connection)


def batches_at(path: Path) -> list[Batch]:
    """Every batch of the ledger at `path`; none if there is no ledger."""
    if not path.exists():
        return []
    with _reading(path) as connection:
        return read_batches(connection)


def out_at(path: Path, batch: int) -> int:
    """How many requests of a batch of the ledger at `path` are out."""
    with _reading(path) as connection:
        found = connection.execute("SELECT COUNT(*) FROM outstanding WHERE batch = ?", (batch,))
        return int(found.fetchone()[0])


def charged_at(path: Path, price: Callable[[int, int], float]) -> tuple[int, float]:
    """What `Ledger.charged` says of the ledger at `path`; nothing if there is none."""
    if not path.exists():
        return 0, 0.0
    with _reading(path) as connection:
        return charged(connection, price)
