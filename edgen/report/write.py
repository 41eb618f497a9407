"""A report gathered, laid out, and put in its place all at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgen.errors import UsageError
from edgen.report.gather import gather
from edgen.report.page import GENERATOR, page
from edgen.rundir import RunDir
from edgen.shards import write_jsonl_atomic

_MARK = f'<meta name="generator" content="{GENERATOR}'.encode()
_HEAD = 2_000  # bytes of a file in which the mark stands


@dataclass(frozen=True)
class Written:
    """Where a report is, its size in bytes, and how many of what was planned are pending."""

    path: Path
    size: int
    pending: int
    missing: tuple[str, ...]
    uncompared: str | None


def write(run: Path, output: Path | None = None, tell: Callable[[str], None] = lambda _: None) -> Written:
    """Make the report of the run in the folder `run`: `report.html` in it, or the file `output`.

    An earlier report is replaced. Raises UsageError if something else is there or the file cannot be written, and
    what `gather` raises; nothing is half written.
    """
    RunDir(run).require()
    path = RunDir(run).report if output is None else output
    _check(path)
    report = gather(run, tell)
    tell("drawing")
    text = page(report).encode()
    # what was checked may be another file by now
    _check(path)
    write_jsonl_atomic(path, [text])
    return Written(
        path=path,
        size=len(text) + 1,
        pending=sum(part.pending for part in report.parts),
        missing=report.missing,
        uncompared=report.uncompared,
    )


def _check(path: Path) -> None:
    """Raise UsageError if there is anything at `path` but an earlier report, or if none can be written there."""
    if path.is_dir():
        raise UsageError(f"{path}: this is a folder; name a file with -o, such as {path / 'report.html'}.")
    if path.is_symlink() and not path.exists():
        raise UsageError(f"{path}: this link leads nowhere; name another file with -o.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        wrong = "cannot be written" if path.parent.is_dir() else "is no folder"
        raise UsageError(f"{path}: {path.parent} {wrong}; name a file elsewhere with -o.")
    try:
        with path.open("rb") as file:
            mark = file.read(_HEAD)
    except FileNotFoundError:
        return
    except OSError as problem:
        raise UsageError(
            f"{path}: it cannot be written ({problem.strerror}); name another file with -o."
        ) from None
    if _MARK not in mark:
        raise UsageError(
            f"{path}: this file is no report of edgen, and is left as it is; name another with -o."
        )
