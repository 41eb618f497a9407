"""Who works on a run: one process that writes, or several that read.

A lock is the operating system's and ends with its holder, however that ends; a file that a dead process left locks
nothing. Whoever lets go takes its name off the file, so a name that stands in a free one is that of a killed process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from edgen.core.errors import LockedError, RunError
from edgen.core.files import open_lock, read_regular

_LONGEST = 2_000  # bytes of a lock file


@contextlib.contextmanager
def lock_for_writing(lock: Path, taken: str, other: str) -> Iterator[str | None]:
    """Hold a lock file for this process alone; gives the name of a holder that was killed, None if there is none.

    Raises LockedError, which begins with `taken`, if a live process holds it; `other` is what one can choose with -o
    instead. Raises RunError where the file cannot be made or locked.
    """
    try:
        file = open_lock(lock)
    except OSError as problem:
        raise RunError(f"{lock}: the folder cannot be written ({problem.strerror}).") from None
    with file:
        try:
            _lock(file, fcntl.LOCK_EX)
        except BlockingIOError:
            raise LockedError(
                f"{_name_holder(taken, lock)}. Wait for it, stop it, or choose {other} with -o."
            ) from None
        except OSError as problem:
            raise RunError(f"{lock}: it cannot be locked here ({problem.strerror}).") from None
        file.seek(0)
        dead = _holder(lock) if b'"since"' in file.read(_LONGEST) else None
        file.truncate(0)
        me = {"pid": os.getpid(), "host": socket.gethostname(), "since": round(time.time(), 3)}
        file.write(json.dumps(me).encode())
        file.flush()
        try:
            yield dead
        finally:
            with contextlib.suppress(OSError):
                file.truncate(0)


@contextlib.contextmanager
def lock_for_reading(lock: Path, taken: str) -> Iterator[None]:
    """Keep others from writing. Raises LockedError, which begins with `taken`, if one does. A lock file that is not
    there, or on a disk that cannot be written, is nobody's."""
    try:
        file = open_lock(lock, make=False)
    except OSError:
        yield
        return
    with file:
        try:
            _lock(file, fcntl.LOCK_SH)
        except BlockingIOError:
            raise LockedError(
                f"{_name_holder(taken, lock)}. Wait for it, or stop it; it goes on where it stopped."
            ) from None
        yield


def is_locked(lock: Path) -> bool:
    """Whether a live process holds a lock file for writing."""
    try:
        with open_lock(lock, make=False) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _lock(file: BinaryIO, kind: int) -> None:
    """Lock it, or raise BlockingIOError. `is_locked` holds it for a moment, so a few tries are made."""
    for _ in range(6):
        try:
            return fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
    return fcntl.flock(file, kind | fcntl.LOCK_NB)


def _name_holder(taken: str, lock: Path) -> str:
    """`taken`, which speaks of another process, with its name; or that it is this very process."""
    who = _holder(lock)
    if who == f"process {os.getpid()} on {socket.gethostname()}":
        return taken.replace("another process", "another call in this process")
    return f"{taken} ({who})"


def _holder(lock: Path) -> str:
    try:
        who = json.loads(read_regular(lock, _LONGEST))
        return f"process {who['pid']} on {who['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it left no name"
