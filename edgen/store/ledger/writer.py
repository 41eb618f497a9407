"""The ledger's only writer: a thread that commits queued statements, in order, in groups.

Callers of `put` wait until their group is on disk (WAL, synchronous=FULL). While one group is written, the
next one queues. A short pause before each commit lets the group grow, since a commit costs far more than a
row. The pause ends when `enough` callers wait, since others depend on them.

If another program locks the database, the writer waits and reports it, since queued replies are paid for.
Once the run ends (`close`, `stop_waiting`), the wait is limited.

A small file next to the ledger has the number of replies on disk (`Acknowledgement`), so that a lost log is
noticed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from edgen.core import system
from edgen.core.errors import EdgenError
from edgen.core.files import read_regular
from edgen.store.ledger.opening import LedgerConnection, run_when_free
from edgen.store.ledger.problems import describe_sqlite_error
from edgen.store.ledger.schema import COUNT_REPLIES

ACKNOWLEDGED = "-acked"  # suffix of the acknowledgement next to a ledger
COUNT = "SELECT IFNULL(MAX(rowid), 0) FROM replies"  # replies are never deleted


def read_acknowledged(ledger: Path) -> int:
    """Return the acknowledged number of a ledger; 0 if the file is missing or invalid."""
    return _read_note(ledger) or 0


def has_acknowledgement(ledger: Path) -> bool:
    """Return whether a ledger has a valid acknowledgement."""
    return _read_note(ledger) is not None


def _read_note(ledger: Path) -> int | None:
    try:
        line = read_regular(_find_place(ledger), 100)
        number = line[:19]
        return int(number) if line == _render_note(number) else None
    except (OSError, ValueError):
        return None


def _render_note(number: bytes) -> bytes:
    return b"%b %08x\n" % (number, crc32(number))


def describe_lost_replies(ledger: Path, count: int) -> str:
    """Describe the lost replies of a ledger and the consequences."""
    many = f"{count:,} answers that were stored are" if count > 1 else "an answer that was stored is"
    again = "They are asked for and paid for again" if count > 1 else "It is asked for and paid for again"
    return (
        f"{ledger}: {many} missing from this ledger: it or its log ({ledger.name}-wal) was cut or removed, "
        f"or the ledger is an older copy. {again}, unless both files are restored first."
    )


class Acknowledgement:
    """The number of replies on disk, in a file next to an open ledger. If the disk cannot store it, there is
    no file."""

    def __init__(self, ledger: Path) -> None:
        self._noted = -1
        self._file: int | None = None
        with contextlib.suppress(OSError):
            number = system.open_no_follow(_find_place(ledger), os.O_WRONLY | os.O_CREAT)
            found = os.fstat(number)
            # Do not write to links and special files.
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                self._file = number
            else:
                os.close(number)

    def note(self, count: int) -> None:
        """Store that this many replies are on disk."""
        if self._file is None or count == self._noted:
            return
        number = b"%019d" % count
        with contextlib.suppress(OSError):
            os.write(self._file, _render_note(number))
            os.lseek(self._file, 0, os.SEEK_SET)
            self._noted = count

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _find_place(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ACKNOWLEDGED)


_PAUSE = 0.008  # seconds that a group may grow before it is committed
GROUP = 1024  # rows that trigger a commit at once
_CLOSING = 30.0  # seconds to wait for a locked database once the run ends

Statement = tuple[str, tuple[Any, ...]]  # SQL, and the parameters of its row
# Statements of one group, the future for their callers, and the number of callers
Item = tuple[Sequence[Statement], asyncio.Future[None] | None, int]

log = logging.getLogger("edgen")


class Writer:
    """A queue of rows with durable group commits. Create and use it on the event loop's thread.

    `pause`: seconds that a group may grow. `enough`: this many waiting callers trigger a commit at once.
    `before_commit` is called in the writer's thread before each commit, for example to simulate a slow disk.
    `connect` opens the ledger in that thread.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[Path], LedgerConnection],
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        self.enough, self.pause = GROUP, _PAUSE
        self._path = path
        self._connect = connect
        self._before_commit = before_commit
        self._asked = 0  # waiting callers, counted in the loop's thread,
        self._taken = 0  # and callers whose rows are in a group, counted in the writer's thread
        self._full = threading.Event()
        self._patience = float("inf")  # seconds to wait for a locked database
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._error: EdgenError | None = None
        self._thread = threading.Thread(target=self._work, name="edgen-ledger", daemon=True)
        self._thread.start()

    def add(self, *statements: Statement) -> None:
        """Queue statements that are stored together or not at all. Raises the error that stopped the
        writer."""
        if self._error is not None:
            raise self._error
        self._queue.put((statements, None, 0))

    def put(self, *statements: Statement) -> asyncio.Future[None]:
        """Queue statements as `add` does, and return a future that is done when they are on disk."""
        return self.put_for(1, statements)

    def put_for(self, callers: int, statements: Sequence[Statement]) -> asyncio.Future[None]:
        """Queue statements as `put` does, for several callers that wait for the same future."""
        if self._error is not None:
            raise self._error
        future = self._loop.create_future()
        self._queue.put((statements, future, callers))
        self._asked += callers
        if self._asked - self._taken >= self.enough and not self._full.is_set():
            self._full.set()
        return future

    def stop_waiting(self) -> None:
        """Stop waiting for a database that another program locks."""
        self._patience = 0.0

    async def close(self) -> None:
        """Commit everything queued and end the thread. Raises the error that stopped the writer."""
        self._patience = min(self._patience, _CLOSING)
        self._full.set()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        connection: LedgerConnection | None = None
        acknowledged = Acknowledgement(self._path)
        stored = 0  # replies
        group: list[Item] = []
        more = True
        try:
            connection = self._connect(self._path)
            connection.execute("PRAGMA synchronous = FULL")
            stored = connection.execute(COUNT).fetchone()[0]
            while more:
                group, more = self._gather()
                if group:
                    stored = self._commit(connection, group, stored)
                    acknowledged.note(stored)
                self._answer(group, None)
                group = []
        except Exception as problem:  # noqa: BLE001 - the loop's thread must get every error
            self._error = describe_sqlite_error(self._path, problem)
            self._answer(group, self._error)
            if more:  # otherwise `close` was called, and no more callers come
                self._drain()
        finally:
            acknowledged.close()
            if connection is not None:
                connection.close()

    def _gather(self) -> tuple[list[Item], bool]:
        """Return the next group, and whether more may follow."""
        item = self._queue.get()
        if item is None:
            return [], False
        group = [item]
        if self._asked - self._taken < self.enough and self._queue.qsize() < GROUP:
            self._full.wait(self.pause)
        self._full.clear()
        try:
            while len(group) < GROUP:
                item = self._queue.get_nowait()
                if item is None:
                    return group, False
                group.append(item)
        except queue.Empty:
            pass
        self._taken += sum(callers for _, _, callers in group)
        return group, True

    def _commit(self, connection: LedgerConnection, group: list[Item], stored: int) -> int:
        """Commit one transaction. `stored` is the number of replies before it; return the number after it.

        Statements are grouped by kind, in order of first appearance. A reply is queued before its outcome, so
        no outcome is stored without its reply. Deletions go last, since a row may be deleted in the group
        that inserts it.
        """
        by_sql: dict[str, list[tuple[Any, ...]]] = {}
        for statements, _, _ in group:
            for sql, row in statements:
                by_sql.setdefault(sql, []).append(row)
        self._before_commit()
        run_when_free(
            connection, self._path, lambda: connection.execute("BEGIN IMMEDIATE"), lambda: self._patience
        )
        try:
            for sql, batch in sorted(by_sql.items(), key=lambda kind: kind[0].startswith("DELETE")):
                connection.insert_rows(sql, batch)
            count: int = connection.execute(COUNT).fetchone()[0]
            if count > stored:
                connection.execute(COUNT_REPLIES, (stored,))
            connection.commit()
            return count
        except BaseException:
            connection.rollback()
            raise

    def _answer(self, group: list[Item], error: EdgenError | None) -> None:
        futures = [future for _, future, _ in group if future is not None]
        if futures:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller waits any more
                self._loop.call_soon_threadsafe(_resolve, futures, error)

    def _drain(self) -> None:
        """Give the error to further callers, until `close`."""
        while (item := self._queue.get()) is not None:
            self._answer([item], self._error)


def _resolve(futures: list[asyncio.Future[None]], error: EdgenError | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
