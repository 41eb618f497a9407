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
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgen.core.errors import EdgenError
from edgen.store.ledger.lock_wait import when_free
from edgen.store.ledger.opening import connect, describe_sqlite_error

PAUSE = 0.008  # seconds that a group may grow before it is committed
GROUP = 1024  # rows after which a group is committed at once
_CLOSING = 30.0  # seconds that a held database is waited for once the run ends

Row = tuple[Any, ...]
Sql = str
Item = tuple[list[tuple[Sql, Row]], asyncio.Future[None] | None]  # rows that belong in one group


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

    def add(self, *rows: tuple[Sql, Row]) -> None:
        """Queue rows that are stored together or not at all. Raises what stopped the writer."""
        if self._error is not None:
            raise self._error
        self._queue.put((list(rows), None))

    def put(self, sql: Sql, row: Row) -> asyncio.Future[None]:
        """Queue a row; the future is done when it is on the disk."""
        return self.put_all([(sql, row)])

    def put_all(self, rows: list[tuple[Sql, Row]]) -> asyncio.Future[None]:
        """Queue rows that belong together; the future is done when they are on the disk."""
        if self._error is not None:
            raise self._error
        future = self._loop.create_future()
        self._queue.put((rows, future))
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
        by_sql: dict[Sql, list[Row]] = {}
        for rows, _ in group:
            for sql, row in rows:
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
            _in_loop(self._loop, lambda: _resolve(futures, error))

    def _drain(self) -> None:
        """After an error: answer whoever still comes, until `close`."""
        while (item := self._queue.get()) is not None:
            self._answer([item], self._error)


def _in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(call)


def _resolve(futures: list[asyncio.Future[None]], error: EdgenError | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
