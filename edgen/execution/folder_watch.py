"""Whether the ledger that is worked on still has its name: its folder may be moved or removed meanwhile.

The system lets a process go on with a file that was moved or removed. So answers would go on being paid for, and
nobody would find them. A look costs a question or two to the system, and opens nothing: to close a second
descriptor of a ledger would give up the locks that SQLite has on it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from edgen.core.errors import EdgenError, RunError, StoppedError


class FolderWatch:
    """The ledger at `path`, as it is there now. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._shown = path
        self._folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._known = _identity(self._path)

    def __enter__(self) -> FolderWatch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)

    def look(self) -> EdgenError | None:
        """Why the work is to stop, if the ledger is not there any more."""
        try:
            if _identity(self._path) == self._known:
                return None
            gone = f"{self._shown}: this ledger has been replaced by another one"
        except (FileNotFoundError, NotADirectoryError):
            gone = f"{self._shown}: this ledger, or the folder that it was in, has been removed"
        except OSError:  # a disk that cannot be asked now; who writes hears of it
            return None
        if self._moved():
            return StoppedError(
                f"{self._shown}: the folder of this ledger has been moved{self._whereto()} while it was worked on. "
                "Nothing more was asked, and what was answered is stored where it is now: name that folder with "
                "-o, and the same command goes on."
            )
        return RunError(
            f"{gone} while it was worked on. Nothing more was asked; what was answered is lost with it. "
            "Restore it from a copy, or start again in another folder with -o."
        )

    def _moved(self) -> bool:
        try:
            return _identity(self._path.name, self._folder) == self._known
        except OSError:
            return False

    def _whereto(self) -> str:
        with contextlib.suppress(OSError):
            return f" to {Path(f'/proc/self/fd/{self._folder}').readlink()}"
        return ""


def _identity(path: Path | str, folder: int | None = None) -> tuple[int, int]:
    found = os.stat(path, dir_fd=folder)
    return found.st_dev, found.st_ino
