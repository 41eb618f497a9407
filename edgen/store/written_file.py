"""Check of the path of a file that a command writes about a run: outside of runs, or its own file inside
one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from edgen.core.errors import UsageError
from edgen.store.run_folder import RunFolder

_HEAD = 2_000  # bytes at the beginning of a file that contain its mark


def run_around(place: Path) -> Path | None:
    """Return the folder of the run that is or contains this path."""
    real = Path(os.path.realpath(place))
    folders = (RunFolder(folder) for folder in (real, *real.parents))
    return next((run.path for run in folders if run.job.is_file() and run.begun), None)


def check_file(path: Path, run: RunFolder, mark: bytes, what: str) -> None:
    """Raise UsageError unless a command may write `what` about `run` to the file `path`: it is new, or an
    earlier version of the same file, with `mark` near its beginning. Inside a run's folder, each file has one
    fixed path."""
    if not path.name or path.is_dir():
        raise UsageError(f"{path}: this is a folder; name a file in it with -o.")
    if path.is_symlink() and not path.exists():
        raise UsageError(f"{path}: this link leads nowhere; name another file with -o.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        wrong = "cannot be written" if path.parent.is_dir() else "is not a folder"
        raise UsageError(f"{path}: {path.parent} {wrong}; name a file elsewhere with -o.")
    real, own = Path(os.path.realpath(path)), RunFolder(Path(os.path.realpath(run.path)))
    if (around := run_around(path)) is not None and own.comparisons != real.parent and own.report != real:
        raise UsageError(f"{path}: this is in the folder of the run {around}; name a file elsewhere with -o.")
    if not path.exists():
        return
    try:
        # Do not read a pipe or a device, which could block forever.
        with path.open("rb") if path.is_file() else contextlib.nullcontext() as file:
            known = file is not None and mark in file.read(_HEAD)
    except OSError as problem:
        raise UsageError(
            f"{path}: it cannot be written ({problem.strerror}); name another file with -o."
        ) from None
    if not known:
        raise UsageError(
            f"{path}: edgen did not write this file as a {what} and does not replace it; name another file "
            "with -o."
        )
