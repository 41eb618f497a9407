"""A book that several processes write opens while another process holds it."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgen.core.errors import RunError
from edgen.store.people import People, shared_book
from edgen.store.people.mailbox import Mailbox
from edgen.store.people.shared_book import SharedBook

BOOKS = [Mailbox, People]


@contextlib.contextmanager
def held(path: Path, seconds: float) -> Iterator[None]:
    """Hold a new, empty book by another connection for some seconds, as a process does that opens it too."""
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE other (x)")
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(seconds, lambda: other.execute("COMMIT"))
        timer.start()
        yield
        timer.join()


@pytest.mark.parametrize("kind", BOOKS)
def test_a_new_book_that_another_process_holds_is_opened_later(
    tmp_path: Path, kind: type[SharedBook]
) -> None:
    """SQLite itself does not wait here, with any timeout."""
    began = time.monotonic()
    with held(tmp_path / "people" / kind.NAME, 0.3), kind(tmp_path) as book:
        assert time.monotonic() - began >= 0.3
        assert book._read("PRAGMA journal_mode") == [("wal",)]


def test_a_book_that_stays_held_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_book, "_PATIENCE", 0.1)
    path = tmp_path / "people" / Mailbox.NAME
    with held(path, 1.0), pytest.raises(RunError, match=r"it cannot be used \(database is locked\)"):
        Mailbox(tmp_path)
