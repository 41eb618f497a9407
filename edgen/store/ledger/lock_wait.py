"""Waiting, with words, for a database that another program holds: what is to be written is paid for."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_BUSY = 250  # milliseconds that sqlite itself waits for a database that is held, each time
_SPEAK = (5.0, 60.0)  # seconds of waiting after which that is said, and said again

log = logging.getLogger("edgen")
T = TypeVar("T")


def when_free(
    connection: sqlite3.Connection,
    path: Path,
    work: Callable[[], T],
    patience: Callable[[], float] = lambda: float("inf"),
    speak: tuple[float, float] = _SPEAK,
) -> T:
    """Do what changes the database at `path`, as soon as no other program holds it. Raises sqlite's own error where
    it is held for longer than `patience` (seconds, asked for again and again). `speak`: the seconds after which that
    is said, and said again."""
    connection.execute(f"PRAGMA busy_timeout = {_BUSY}")
    began = spoke = time.monotonic()
    wait, later = speak
    while True:
        try:
            return work()
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
