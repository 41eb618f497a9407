"""Atomic file writes, locks, and reads that follow no link.

A new file is made next to its destination, under an unpredictable unused name, and renamed when all of it is
on disk. So a planted link, pipe or device is never written through, and an earlier file stays until the new
one is whole. A kill leaves a file whose name `find_target` recognises. A live writer holds a lock on it, so
the next writer of the same file can recognise and remove a dead one.

Errors are OSErrors that name the destination, never the temporary name.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from edgen.core import system
from edgen.core.errors import FileError, RunError, StoppedError

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_BUFFER = 1 << 18
_NAME = 200  # bytes of a name kept in its temporary name; most systems allow 255 in all
_PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part", re.DOTALL)


def choose_temporary_name(path: Path) -> Path:
    """Return an unpredictable name next to `path`, for a file that is renamed to it."""
    return path.with_name(f".{_shorten_name(path)}.{secrets.token_hex(8)}.part")


def _shorten_name(path: Path) -> str:
    """Return the part of a name that is kept in its temporary name."""
    return os.fsdecode(os.fsencode(path.name)[:_NAME])


def find_target(name: str) -> str | None:
    """Return the file name that a temporary name is for, None for any other name. Without a live writer, a
    kill left the file."""
    found = _PART.fullmatch(name)
    return None if found is None else found[1]


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files and folders for `path` of killed processes; those of live ones stay. Each
    folder is searched once per process."""
    for name in _find_leftovers(path.parent).get(_shorten_name(path), ()):
        _remove_dead(path.with_name(name))


def remove_leftovers_for(folder: Path, wanted: Callable[[str], bool]) -> None:
    """Search a folder again, and `remove_leftovers` for the names that `wanted` selects."""
    _find_leftovers.cache_clear()
    for target in filter(wanted, _find_leftovers(folder)):
        remove_leftovers(folder / target)


@functools.lru_cache(maxsize=64)
def _find_leftovers(folder: Path) -> dict[str, list[str]]:
    """Return the temporary names in a folder, by destination."""
    found: dict[str, list[str]] = {}
    with contextlib.suppress(OSError):  # writers there report the problem
        for name in os.listdir(folder):  # noqa: PTH208 - names are all that is needed
            if (target := find_target(name)) is not None:
                found.setdefault(target, []).append(name)
    return found


def _remove_dead(place: Path) -> None:
    """Remove a temporary file or folder unless a live process holds its lock."""
    with contextlib.suppress(OSError):
        found = place.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            # It already has its final name. Do not open it: closing it would drop SQLite's locks on that
            # name.
            place.unlink()
        elif stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
            if stat.S_ISDIR(found.st_mode):
                number = system.open_folder(place)
            else:
                number = system.open_no_follow(place, os.O_RDWR)
            try:
                system.try_lock(number)
                shutil.rmtree(place) if stat.S_ISDIR(found.st_mode) else place.unlink()
            finally:
                os.close(number)


def _hold(number: int) -> int | None:
    """Lock a new file as a sign of a live process; return the lock's handle, None if the system has no locks.
    Raises FileNotFoundError if another process removed it as a dead process's file."""
    held = os.dup(number)
    try:
        system.try_lock(held)
    except BlockingIOError:
        os.close(held)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
    except OSError:  # without locks, no process removes files of dead ones
        os.close(held)
        return None
    if os.fstat(held).st_nlink == 0:
        os.close(held)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return held


class Part:
    """A file being written. Call `close`, then `publish` or `publish_new`; a final `discard` is harmless.

    `alone`: no other process writes in that folder. Then the file is not locked, so any number can be open,
    and the next writer removes what a kill left.
    """

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        self.path = path
        self._held: int | None = None
        if not alone:
            remove_leftovers(path)
        with name_file_in_errors(path):
            number = self._make(alone)
        self.file: BinaryIO = open(number, "wb", buffering=_BUFFER)  # noqa: PTH123, SIM115 - by number
        self.write = self.file.write

    def _make(self, alone: bool) -> int:
        """Create the file under its own name, and lock it unless it is `alone`."""
        while True:
            self._part = choose_temporary_name(self.path)
            number = system.open_no_follow(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                self._held = None if alone else _hold(number)
            except FileNotFoundError:
                os.close(number)
            except BaseException:
                os.close(number)
                self._part.unlink(missing_ok=True)
                raise
            else:
                return number

    def close(self, *, sync: bool = True) -> None:
        """End the file; with `sync`, when all of it is on disk."""
        with name_file_in_errors(self.path):
            self.file.flush()
            if sync:
                os.fsync(self.file.fileno())
            self.file.close()

    def publish(self) -> None:
        """Rename the file to its destination and replace anything there; a link is replaced, not its
        target."""
        with name_file_in_errors(self.path):
            self._part.replace(self.path)
        self._let_go()

    def publish_new(self) -> None:
        """Rename the file to its destination if that name is free. Raises FileExistsError."""
        with name_file_in_errors(self.path):
            try:
                system.link_new(self._part, self.path)
            except FileExistsError:
                raise
            except OSError:
                self.publish_without_links()

    def publish_without_links(self) -> None:
        """Do what `publish_new` does, on a disk without hard links: create the name, then rename the file to
        it."""
        os.close(system.open_no_follow(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        try:
            self._part.replace(self.path)
        except BaseException:
            self.path.unlink()
            raise

    def discard(self) -> None:
        """Remove the file if it is unpublished."""
        with contextlib.suppress(OSError):  # a failed write cannot be flushed either
            self.file.close()
        with contextlib.suppress(OSError):
            self._part.unlink()
        self._let_go()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


@contextlib.contextmanager
def replace_file(path: Path, *, sync: bool = True, new: bool = False) -> Iterator[BinaryIO]:
    """Replace `path` with what the body has written when the body ends; if the body raises, nothing is
    changed. `sync`: wait for the disk. `new`: only if the path is free; raises FileExistsError."""
    part = Part(path)
    try:
        yield part.file
        part.close(sync=sync)
        part.publish_new() if new else part.publish()
        if sync:
            sync_folder(path.parent)
    finally:
        part.discard()


def write_whole(path: Path, data: str | bytes, *, sync: bool = True) -> None:
    """Write `data`, text as UTF-8, to `path` atomically."""
    with replace_file(path, sync=sync) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def write_new(path: Path, data: str | bytes) -> None:
    """Write `data` to a free `path` atomically. Raises FileExistsError."""
    with replace_file(path, new=True) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder that becomes `target` on success, and else is removed with its contents. An existing
    `target` must be an empty folder."""
    place = Path(os.path.realpath(target))
    made = [parent for parent in place.parents if not parent.exists()]
    stage = choose_temporary_name(place)
    held: int | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place)
        stage.mkdir()
        held = _hold_folder(stage)
        yield stage
        stage.replace(place)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    finally:
        if held is not None:
            os.close(held)
    with contextlib.suppress(OSError):
        sync_folder(place.parent)


def _hold_folder(folder: Path) -> int | None:
    """Lock a new folder, as `_hold` does; return None if the system cannot."""
    try:
        number = system.open_folder(folder)
    except OSError:
        return None
    try:
        return _hold(number)
    finally:
        os.close(number)


def write_lines(path: Path, lines: Iterable[bytes]) -> int:
    """Write a file of lines, adding line feeds; return their number. Errors are those of
    `explain_write_errors`."""
    count = 0
    with explain_write_errors(path), replace_file(path) as file:
        for line in lines:
            file.write(line + b"\n")
            count += 1
    return count


@contextlib.contextmanager
def explain_read_errors(source: str, error: type[FileError], hint: Callable[[], str] = str) -> Iterator[None]:
    """Raise `error` for a file that cannot be opened or read. `hint` returns an addition to the message about
    a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise error(source, f"there is no such file.{hint()}") from None
    except IsADirectoryError:
        raise error(source, "this is a folder, not a file.") from None
    except (OSError, ValueError) as problem:
        raise error(source, f"it cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Raise StoppedError if the disk is full while `path` is written, RunError for any other OSError."""
    try:
        yield
    except OSError as problem:
        if problem.errno in DISK_FULL:
            raise StoppedError(
                f"{path}: the disk is full ({problem.strerror}); an earlier file is unchanged. "
                "Free some space and run the same command again."
            ) from None
        raise RunError(
            f"{path}: it cannot be written ({problem.strerror}); an earlier file is unchanged."
        ) from None


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk, if the system can."""
    try:
        number = system.open_folder(folder)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def open_lock(path: Path, *, make: bool = True) -> BinaryIO:
    """Open a lock file, which names its holder; create it if it is missing and `make` is set. Raises OSError
    for anything but a regular file, and for a file with several hard links, whose content would be lost."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if make else os.O_RDONLY
    file: BinaryIO = _open(path, flags, "a+b" if make else "rb", alone=make)
    return file


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read. Raises OSError for a link and for anything but a regular file; never blocks."""
    file: BufferedReader = _open(path, os.O_RDONLY, "rb")
    return file


def _open(path: Path, flags: int, mode: str, *, alone: bool = False) -> Any:
    """Open a regular file in place. `alone`: refuse a file with several hard links."""
    with name_file_in_errors(path):
        file = open(system.open_no_follow(path, flags), mode)  # noqa: PTH123, SIM115 - by number
        try:
            found = os.fstat(file.fileno())
            _require_regular(found)
            if alone and found.st_nlink > 1:
                raise OSError(errno.EMLINK, "it is a hard link: the file has another name, too")
        except BaseException:
            file.close()
            raise
    return file


def read_regular(path: Path, limit: int) -> bytes:
    """Read a whole file of at most `limit` bytes. Raises OSError for a larger one, and as `open_regular`."""
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EOVERFLOW, f"it is larger than {limit} bytes, the limit", str(path))
    return data


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket, not a file")


@contextlib.contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Raise the system's errors with the name of the intended file, and a clear one for a link."""
    try:
        yield
    except OSError as problem:
        if problem.errno == errno.ELOOP and path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link, which is not followed", str(path)) from None
        raise OSError(problem.errno, problem.strerror, str(path)) from None
