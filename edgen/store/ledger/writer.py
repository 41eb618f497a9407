"""The ledger's only writer: a thread that commits what is queued, in order, in groups.

Whoever awaits `put` goes on when the group is on the disk (WAL, synchronous=FULL). Groups form by
themselves: while one is written, the next one queues; a short pause before each lets it grow, since
a commit costs far more than a row. The pause ends when `enough` callers wait for the group: they hold
up others.

A database that another program holds is waited for, with words: what is queued is paid for. Once the run is to
end (`close`, `hurry`) the wait has an end, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgen.core.errors import EdgenError
from edgen.store.ledger.opening import connect, describe_sqlite_error

PAUSE = 0.008  # seconds that a group may grow before it is committed
GROUP = 1024  # rows after which a group is committed at once
_CLOSING = 30.0  # seconds that a held database is waited for once the run ends
_BUSY = 250  # milliseconds that sqlite itself waits for a database that is held, each time
_SPEAK = (5.0, 60.0)  # seconds of waiting after which that is said, and said again

Statement = tuple[str, tuple[Any, ...]]  # SQL, and the values of its row
Item = tuple[tuple[Statement, ...], asyncio.Future[None] | None]  # what belongs in one group

log = logging.getLogger("edgen")


class Writer:
    """Rows in, durable groups out. Built and used on the event loop's thread.

    `enough`: that many callers who wait are reason to commit at once. `before_commit` is called in the writer's
    thread before each commit; a slow disk can be had by it.
    """

    def __init__(self, path: Path, before_commit: Callable[[], None] = lambda: None) -> None:
        self.enough = GROUP
        self._path = path
        self._before_commit = before_commit
        self._asked = 0  # callers that have begun to wait: counted in the loop's thread,
        self._taken = 0  # those of them whose rows are in a group: counted in the writer's
        self._full = threading.Event()
        self._patience = float("inf")  # seconds that a held database is waited for
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._error: EdgenError | None = None
        self._thread = threading.Thread(target=self._work, name="edgen-ledger", daemon=True)
        self._thread.start()

    def add(self, *statements: Statement) -> None:
        """Queue what is stored together or not at all. Raises what stopped the writer."""
        if self._error is not None:
            raise self._error
        self._queue.put((statements, None))

    def put(self, *statements: Statement) -> asyncio.Future[None]:
        """As `add`; the future is done when it is on the disk."""
        if self._error is not None:
            raise self._error
        future = self._loop.create_future()
        self._queue.put((statements, future))
        self._asked += 1
        if self._asked - self._taken >= self.enough and not self._full.is_set():
            self._full.set()
        return future

    def hurry(self) -> None:
        """Wait no longer for a database that another program holds."""
        self._patience = 0.0

    async def close(self) -> None:
        """Commit what is queued and end the thread. Raises what stopped the writer."""
        self._patience = min(self._patience, _CLOSING)
        self._full.set()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        connection: sqlite3.Connection | None = None
        group: list[Item] = []
        more = True
        try:
            connection = connect(self._path)
            connection.execute("PRAGMA synchronous = FULL")
            while more:
                group, more = self._gather()
                self._commit(connection, group)
                self._answer(group, None)
                group = []
        except Exception as problem:  # noqa: BLE001 - the loop's thread must hear of it, whatever it is
            self._error = describe_sqlite_error(self._path, problem)
            self._answer(group, self._error)
            if more:  # else `close` was called, and nobody comes any more
                self._drain()
        finally:
            if connection is not None:
                connection.close()

    def _gather(self) -> tuple[list[Item], bool]:
        """The next group, and whether more may follow."""
        item = self._queue.get()
        if item is None:
            return [], False
        group = [item]
        if self._asked - self._taken < self.enough and self._queue.qsize() < GROUP:
            self._full.wait(PAUSE)
        self._full.clear()
        try:
            while len(group) < GROUP:
                item = self._queue.get_nowait()
                if item is None:
                    return group, False
                group.append(item)
        except queue.Empty:
            pass
        self._taken += sum(future is not None for _, future in group)
        return group, True

    def _commit(self, connection: sqlite3.Connection, group: list[Item]) -> None:
        """One transaction. Statements of one kind go together, kinds in the order they first came:
        a reply is queued before its outcome, so no outcome is ever stored without its reply. What is deleted
        goes last: a row may be struck out in the group that brings it."""
        by_sql: dict[str, list[tuple[Any, ...]]] = {}
        for statements, _ in group:
            for sql, row in statements:
                by_sql.setdefault(sql, []).append(row)
        self._before_commit()
        when_free(
            connection, self._path, lambda: connection.execute("BEGIN IMMEDIATE"), lambda: self._patience
        )
        try:
            for sql, batch in sorted(by_sql.items(), key=lambda kind: kind[0].startswith("DELETE")):
                connection.executemany(sql, batch)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _answer(self, group: list[Item], error: EdgenError | None) -> None:
        futures = [future for _, future in group if future is not None]
        if futures:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(_resolve, futures, error)

    def _drain(self) -> None:
        """After an error: answer whoever still comes, until `close`."""
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


def when_free(
    connection: sqlite3.Connection,
    path: Path,
    work: Callable[[], object],
    patience: Callable[[], float] = lambda: float("inf"),
    speak: tuple[float, float] = _SPEAK,
) -> None:
    """Do what changes the database at `path`, as soon as no other program holds it. Raises sqlite's own error where
    it is held for longer than `patience` (seconds, asked for again and again). `speak`: the seconds after which that
    is said, and said again."""
    connection.execute(f"PRAGMA busy_timeout = {_BUSY}")
    began = spoke = time.monotonic()
    wait, later = speak
    while True:
        try:
            work()
            return
        except sqlite3.OperationalError as problem:
            now = time.monotonic()
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or now - began > patience():
                raise
            if now - spoke >= wait:
                log.warning(
                    "%s: another program has held the ledger for %d s. It is waited for; what was answered is kept, "
                    "and nothing more is asked until it is stored.",
                    path,
                    now - began,
                )
                spoke, wait = now, later
