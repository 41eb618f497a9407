"""Watch for a moved or removed ledger folder during work.

The system lets a process continue with a moved or removed file. Answers would be paid for, and nobody would
find them. A look costs a system call or two, and opens nothing: closing a second descriptor of a ledger would
drop SQLite's locks on it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from edgen.core import system
from edgen.core.errors import EdgenError, RunError, StoppedError


class FolderWatch:
    """Identity of the ledger at `path`. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._shown = path
        self._folder = system.open_folder(self._path.parent)
        self._known = _identity(self._path)

    def __enter__(self) -> FolderWatch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)

    def look(self) -> EdgenError | None:
        """Return the error that stops the work if the ledger is gone."""
        try:
            if _identity(self._path) == self._known:
                return None
            gone = f"{self._shown}: this ledger has been replaced by another one"
        except (FileNotFoundError, NotADirectoryError):
            gone = f"{self._shown}: this ledger, or the folder that it was in, has been removed"
        except OSError:  # an unresponsive disk; the writer notices it
            return None
        if self._moved():
            return StoppedError(
                f"{self._shown}: the folder of this ledger has been moved{self._whereto()} while it was worked on. "
                "No further call was made, and all answers are stored where the folder is now: name it with "
                "-o, and the same command resumes the run."
            )
        return RunError(
            f"{gone} while it was worked on. Nothing more was asked; what was answered is lost with it. "
            "Restore it from a copy, or start again in another run folder."
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
