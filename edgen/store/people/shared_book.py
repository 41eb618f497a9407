"""A SQLite file of a run that several processes write concurrently, apart from the ledger and its lock."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec

from edgen.core.errors import RunError

_PATIENCE = 30.0  # seconds to wait for another process that is writing
_PAUSE = 0.01  # seconds between two attempts


class SharedBook:
    """A file with TABLES in the folder `people` of a run. It is safe for several threads and processes.

    Writes are on disk before a method returns. Raises RunError if the file cannot be used.
    """

    NAME: ClassVar[str]
    ABOUT: ClassVar[str]
    """The file in words, for an error message."""
    APPLICATION_ID: ClassVar[int]
    TABLES: ClassVar[str]
    CHANGES: ClassVar[tuple[str, ...]] = ()
    """Statements that upgrade the tables of a file from each earlier version of edgen to the next."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "people" / self.NAME
        self._lock = threading.Lock()
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            kind = self.path.lstat()
        except OSError as problem:
            raise RunError(f"{self.path}: it cannot be made ({problem.strerror}).") from None
        if not stat.S_ISREG(kind.st_mode) or kind.st_nlink > 1 or self.path.parent.is_symlink():
            raise RunError(f"{self.path}: it is a link or not a file; move it away.")
        with self._explain_errors():
            connection = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            known = connection.execute("PRAGMA application_id").fetchone()[0]
            if known not in (0, self.APPLICATION_ID):
                connection.close()
                raise RunError(f"{self.path}: this is not {self.ABOUT}; move it away.")
            _enable_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            if not known:
                # The number is set last: another process that reads it finds the tables.
                connection.executescript(
                    f"{self.TABLES}\nPRAGMA user_version = {len(self.CHANGES)};"
                    f"\nPRAGMA application_id = {self.APPLICATION_ID};"
                )
            self._renew(connection)
        self._identity = (kind.st_dev, kind.st_ino)
        return connection

    def _renew(self, connection: sqlite3.Connection) -> None:
        """Upgrade the tables of a file from an earlier version. Raises RunError if a later version wrote
        it."""
        version = "PRAGMA user_version"
        if connection.execute(version).fetchone()[0] < len(self.CHANGES):
            connection.execute("BEGIN IMMEDIATE")
            for number, change in enumerate(self.CHANGES, 1):
                if connection.execute(version).fetchone()[0] < number:  # else another process has done it
                    for statement in filter(str.strip, change.split(";")):
                        connection.execute(statement)
                    connection.execute(f"{version} = {number}")
            connection.execute("COMMIT")
        if connection.execute(version).fetchone()[0] > len(self.CHANGES):
            connection.close()
            raise RunError(f"{self.path}: a newer edgen wrote this file; use that version.")

    def is_current(self) -> bool:
        """Return whether the open file is still the one at its path."""
        try:
            now = self.path.stat()
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == self._identity

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, statement: str, *values: Any) -> list[Any]:
        with self._lock, self._explain_errors():
            return self._connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _write_in_transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explain_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Report a file that cannot be used."""
        try:
            yield
        except sqlite3.Error as problem:
            raise RunError(f"{self.path}: it cannot be used ({problem}).") from None


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log. While another process opens the file and changes this setting, SQLite
    fails instead of waiting, so try again."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


def as_json(value: Any) -> str:
    """Return a value as JSON for a column."""
    return msgspec.json.encode(value).decode()
