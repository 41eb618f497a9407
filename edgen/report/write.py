"""A report gathered, laid out, and put in its place all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgen.report.gather import gather
from edgen.report.page import GENERATOR, page
from edgen.rundir import RunDir, check_file
from edgen.shards import write_jsonl_atomic

_MARK = f'<meta name="generator" content="{GENERATOR}'.encode()
_WHAT = "report"


@dataclass(frozen=True)
class Written:
    """Where a report is, its size in bytes, and what became of what was planned. `missing`: arms of which nothing
    is settled; `uncompared`: why arms are not compared."""

    path: Path
    size: int
    pending: int
    accepted: int
    refused: int
    missing: tuple[str, ...]
    uncompared: str | None


def write(run: Path, output: Path | None = None, tell: Callable[[str], None] = lambda _: None) -> Written:
    """Make the report of the run in the folder `run`: `report.html` in it, or the file `output`.

    An earlier report is replaced. Raises UsageError if something else is there or the file cannot be written, and
    what `gather` raises; nothing is half written.
    """
    RunDir(run).require()
    path = RunDir(run).report if output is None else output
    check_file(path, RunDir(run), _MARK, _WHAT)
    with RunDir(run).read():  # until the file stands: nobody makes the run anew below it
        report = gather(run, tell)
        tell("drawing")
        text = page(report).encode()
        # what was checked may be another file by now
        check_file(path, RunDir(run), _MARK, _WHAT)
        write_jsonl_atomic(path, [text])
    return Written(
        path=path,
        size=len(text) + 1,
        pending=sum(part.pending for part in report.parts),
        accepted=sum(part.accepted for part in report.parts),
        refused=sum(reason.count for part in report.parts for reason in part.reasons),
        missing=report.missing,
        uncompared=report.uncompared,
    )
