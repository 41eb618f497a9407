"""Locks of a run: one process that writes, or several that read.

A lock belongs to the operating system and ends with its process, so the file of a dead process locks nothing.
Unlocking clears the holder's name, so a name in an unlocked file belongs to a killed process. `lock_run`
keeps this process from working on a run twice. `FolderWatch` notices if the run's folder is moved or removed
meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from edgen.core import system
from edgen.core.errors import EdgenError, LockedError, RunError, StoppedError
from edgen.core.files import open_lock, read_regular

_LONGEST = 2_000  # bytes of a lock file


class Holder(NamedTuple):
    """The process named in a lock file; `since`: seconds since the epoch."""

    pid: int
    host: str
    since: float

    @classmethod
    def read(cls, lock: Path) -> Holder | None:
        """Return the process named in a lock file, None if there is none."""
        try:
            who = json.loads(read_regular(lock, _LONGEST))
            return cls(int(who["pid"]), str(who["host"]), float(who.get("since", 0)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@contextlib.contextmanager
def lock_for_writing(lock: Path, taken: str, other: str) -> Iterator[str | None]:
    """Hold a lock file exclusively. Yield the name of a killed former holder; None if there is none.

    Raises UsageError on a system without such locks. Raises LockedError if a live process holds it; the
    message begins with `taken` and suggests `other`. Raises RunError if the file cannot be made or locked.
    """
    system.require_locks()
    try:
        file = open_lock(lock)
    except OSError as problem:
        raise RunError(f"{lock}: the folder cannot be written ({problem.strerror}).") from None
    with file:
        try:
            _lock(file, shared=False)
        except BlockingIOError:
            raise LockedError(f"{_name_holder(taken, lock)}. Wait for it, stop it, or use {other}.") from None
        except OSError as problem:
            raise RunError(
                f"{lock}: it cannot be locked here ({problem.strerror}), so two processes could write at "
                "once. Work on a "
                "disk of this machine, or on a network disk that has locks; reading works here."
            ) from None
        dead = _read_holder(lock) if _is_named(lock) else None
        _write_holder(file)
        try:
            yield dead
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), 0)


@contextlib.contextmanager
def lock_for_reading(lock: Path, taken: str) -> Iterator[None]:
    """Keep others from writing. Raises LockedError, which begins with `taken`, if a process writes. A missing
    lock file, or one on a read-only disk, counts as free. On a disk without locks no process can write, so no
    lock is needed."""
    try:
        file = open_lock(lock, make=False)
    except OSError:
        yield
        return
    with file:
        try:
            _lock(file, shared=True)
        except BlockingIOError:
            raise LockedError(
                f"{_name_holder(taken, lock)}. Wait for it, or stop it; it can be resumed."
            ) from None
        except OSError:
            pass
        yield


def is_locked(lock: Path) -> bool:
    """Return whether a live process holds a lock file for writing."""
    try:
        with open_lock(lock, make=False) as file:
            system.try_lock(file.fileno(), shared=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _lock(file: BinaryIO, *, shared: bool) -> None:
    """Lock the file, or raise BlockingIOError after a few tries, since `is_locked` holds it for a moment."""
    for _ in range(6):
        try:
            return system.try_lock(file.fileno(), shared=shared)
        except BlockingIOError:
            time.sleep(0.05)
    return system.try_lock(file.fileno(), shared=shared)


def _write_holder(file: BinaryIO) -> None:
    """Write the holder into a locked file. On a full disk it stays locked without a name."""
    me = {"pid": os.getpid(), "host": socket.gethostname(), "since": round(time.time(), 3)}
    with contextlib.suppress(OSError):
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), json.dumps(me).encode())


def _is_named(lock: Path) -> bool:
    """Return whether a killed process left its name."""
    with contextlib.suppress(OSError):
        return b'"since"' in read_regular(lock, _LONGEST)
    return False


def _name_holder(taken: str, lock: Path) -> str:
    """Return `taken`, a phrase about another process, with that process's name; or a phrase about this
    process."""
    who = _read_holder(lock)
    if who == f"process {os.getpid()} on {socket.gethostname()}":
        return taken.replace("another process", "another call in this process")
    return f"{taken} ({who})"


def _read_holder(lock: Path) -> str:
    holder = Holder.read(lock)
    return "it left no name" if holder is None else str(holder)


_under_way: set[Path] = set()  # folders on which this process works


@contextlib.contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Mark a run as worked on by this process. Raises LockedError if it is already."""
    place = folder.resolve()
    if place in _under_way:
        raise LockedError(
            f"{folder}: this process works on this run already. Wait for it, or name another folder "
            "(output= in Python, -o on the command line)."
        )
    _under_way.add(place)
    try:
        yield
    finally:
        _under_way.discard(place)


class FolderWatch:
    """A watch on the ledger at `path`, which notices if the file is replaced or moved. Use as a context
    manager."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._shown = path
        self._folder = system.open_folder(self._path.parent)
        self._known = _identify_folder(self._path)

    def __enter__(self) -> FolderWatch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)

    def check(self) -> EdgenError | None:
        """Return the error that stops the work if the ledger is gone."""
        try:
            if _identify_folder(self._path) == self._known:
                return None
            gone = f"{self._shown}: this ledger has been replaced by another one"
        except (FileNotFoundError, NotADirectoryError):
            gone = f"{self._shown}: this ledger, or the folder that it was in, has been removed"
        except OSError:  # the disk does not respond; the writer notices it
            return None
        if self._is_moved():
            return StoppedError(
                f"{self._shown}: the folder of this ledger has been moved{self._read_target()} while it was "
                "worked on. "
                "No further call was made, and all answers are stored where the folder is now: name it with "
                "-o, and the same command resumes the run."
            )
        return RunError(
            f"{gone} while it was worked on. Nothing more was asked; what was answered is lost with it. "
            "Restore it from a copy, or start again in another run folder."
        )

    def _is_moved(self) -> bool:
        try:
            return _identify_folder(self._path.name, self._folder) == self._known
        except OSError:
            return False

    def _read_target(self) -> str:
        with contextlib.suppress(OSError):
            return f" to {Path(f'/proc/self/fd/{self._folder}').readlink()}"
        return ""


def _identify_folder(path: Path | str, folder: int | None = None) -> tuple[int, int]:
    found = os.stat(path, dir_fd=folder)
    return found.st_dev, found.st_ino
