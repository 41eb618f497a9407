"""Files that are written whole or not at all, locks, and reads that follow no link.

A new file is made beside its place, under a name that nobody can guess and that nothing has yet, and is renamed when
all of it is on the disk. So a link, a pipe or a device that somebody put there is never written through, and an earlier
file stands until the new one is whole. A kill leaves a file whose name `target_name` knows.

What goes wrong is an OSError that names the file meant, never its temporary name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from edgen.core.errors import RunError, StoppedError

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_BUFFER = 1 << 18
_NAME = 200  # bytes of a name that its temporary name keeps; most systems allow 255 in all
_PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part", re.DOTALL)
# Files that are opened where they stand: no link is followed, and a pipe is never waited for.
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def temporary(path: Path) -> Path:
    """A name beside `path` that nobody can guess, for what is to be renamed to it."""
    name = os.fsdecode(os.fsencode(path.name)[:_NAME])
    return path.with_name(f".{name}.{secrets.token_hex(8)}.part")


def target_name(name: str) -> str | None:
    """The name of the file that a temporary name is for, None for any other name. If nobody is at work there, a kill
    left the file."""
    found = _PART.fullmatch(name)
    return None if found is None else found[1]


class Part:
    """A file in the making. It needs `close`, then `publish` or `publish_new`; `discard` in the end does no harm."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._part = temporary(path)
        with _naming(path):
            number = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _AS_IT_IS, 0o666)
        self.file: BinaryIO = open(number, "wb", buffering=_BUFFER)  # noqa: PTH123, SIM115 - by number
        self.write = self.file.write

    def close(self, *, sync: bool = True) -> None:
        """End the file, with `sync` when all of it is on the disk."""
        with _naming(self.path):
            self.file.flush()
            if sync:
                os.fsync(self.file.fileno())
            self.file.close()

    def publish(self) -> None:
        """Give it its name in place of whatever has that name: a link is replaced, not what it leads to."""
        with _naming(self.path):
            self._part.replace(self.path)

    def publish_new(self) -> None:
        """Give it its name if nothing has it. Raises FileExistsError."""
        with _naming(self.path):
            try:
                os.link(self._part, self.path, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:
                self.publish_without_links()

    def publish_without_links(self) -> None:
        """As `publish_new`, on a disk without hard links: take the name first, then put the file in its place."""
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _AS_IT_IS, 0o666))
        try:
            self._part.replace(self.path)
        except BaseException:
            self.path.unlink()
            raise

    def discard(self) -> None:
        """Remove the file if it has no name yet."""
        with contextlib.suppress(OSError):  # what could not be written cannot be flushed either
            self.file.close()
        with contextlib.suppress(OSError):
            self._part.unlink()


@contextlib.contextmanager
def replacing(path: Path, *, sync: bool = True, new: bool = False) -> Iterator[BinaryIO]:
    """What the body writes is at `path` when it ends; if it raises, nothing is changed. `sync`: on the disk, too.
    `new`: only where nothing is; raises FileExistsError."""
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
    """Have `data`, text as UTF-8, at `path` in place of what was there."""
    with replacing(path, sync=sync) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def write_new(path: Path, data: str | bytes) -> None:
    """Have `data` at `path`, where nothing is. Raises FileExistsError."""
    with replacing(path, new=True) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def write_lines(path: Path, lines: Iterable[bytes]) -> int:
    """Write a file of lines, each of which gets its line feed; returns how many. What goes wrong is told as
    `explain_write_errors` does."""
    count = 0
    with explain_write_errors(path), replacing(path) as file:
        for line in lines:
            file.write(line + b"\n")
            count += 1
    return count


def update_text(path: Path, text: str) -> None:
    """Write `text` to `path`, unless the file holds it already."""
    if not (path.exists() and path.read_bytes() == text.encode()):
        write_whole(path, text)


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Raise StoppedError where the disk is full while `path` is written, RunError for any other OSError."""
    try:
        yield
    except OSError as problem:
        if problem.errno in DISK_FULL:
            raise StoppedError(
                f"{path}: there is no room left on the disk ({problem.strerror}); what stood there before "
                "still does. Make room and start the same command again."
            ) from None
        raise RunError(
            f"{path}: it cannot be written ({problem.strerror}); what stood there before still does."
        ) from None


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where a disk can be told so."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)


def open_lock(path: Path, *, make: bool = True) -> BinaryIO:
    """A file to lock and to leave a name in, made if it is not there and `make`. Raises OSError for anything that is no
    regular file, and for one that has other names, whose content would be lost."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if make else os.O_RDONLY
    file: BinaryIO = _open(path, flags, "a+b" if make else "rb", alone=make)
    return file


def open_regular(path: Path) -> BufferedReader:
    """A file to read. Raises OSError for a link and for anything else that is no regular file; waits for nothing."""
    file: BufferedReader = _open(path, os.O_RDONLY, "rb")
    return file


def _open(path: Path, flags: int, mode: str, *, alone: bool = False) -> Any:
    """A regular file as it stands there; `alone`: one without another name."""
    with _naming(path):
        file = open(os.open(path, flags | _AS_IT_IS, 0o666), mode)  # noqa: PTH123, SIM115 - by number
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
    """All of a file of at most `limit` bytes. Raises OSError for a larger one, and as `open_regular`."""
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EOVERFLOW, f"it is larger than {limit} bytes, the most that is read", str(path))
    return data


_LINK = (
    "a link, and what edgen keeps is none: a link could lead anywhere",
    "Put what it leads to in its place, or remove it.",
)
_DEVICE = ("a pipe, a device or a socket, and what edgen keeps is files", "Remove it.")


def refuse_links(folder: Path, names: Collection[str] | None = None) -> None:
    """Raise RunError if anything in `folder`, at any depth, is no regular file and no folder; `names`: look at these
    names in it alone. The folder's own path may be a link: it is the one that a person gave."""
    for entry in _walk(folder, names):
        if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
            what, hint = _LINK if entry.is_symlink() else _DEVICE
            raise RunError(f"{entry.path}: this is {what}. Nothing was read or changed. {hint}")


def sweep(folder: Path, names: Collection[str]) -> None:
    """Remove the temporary files that kills left for these names in a folder, and in the folders of these names."""
    for entry in _walk(folder, names):
        if target_name(entry.name) is not None and not entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()


def _walk(folder: Path, names: Collection[str] | None) -> Iterator[os.DirEntry[str]]:
    """All that is in a folder, at any depth; links are not followed. `names`: below these names in it alone, and the
    temporary names that are for them."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                found = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            raise RunError(f"{place}: it cannot be read ({problem.strerror}).") from None
        for entry in found:
            if place is folder and names is not None and (target_name(entry.name) or entry.name) not in names:
                continue
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket, and no file")


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raise the system's error with the name of the file that is meant; say in words that it is a link."""
    try:
        yield
    except OSError as problem:
        if problem.errno == errno.ELOOP and path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link, which is not followed", str(path)) from None
        raise OSError(problem.errno, problem.strerror, str(path)) from None
