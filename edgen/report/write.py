"""Make a report: gather, lay out, and write the file whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgen.core.files import write_lines
from edgen.report.gather import gather
from edgen.report.page import GENERATOR, page
from edgen.store.run_folder import RunFolder, check_file

_MARK = f'<meta name="generator" content="{GENERATOR}'.encode()


@dataclass(frozen=True)
class WrittenReport:
    """Where a report is, its size in bytes, and what became of what was planned. `missing`: arms of which nothing
    is settled; `uncompared`: why arms are not compared."""

    path: Path
    size: int
    pending: int
    accepted: int
    refused: int
    missing: tuple[str, ...]
    uncompared: str | None


def write_report(
    run: Path, output: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> WrittenReport:
    """Make the report of the run in the folder `run`: `report.html` in it, or the file `output`.

    An earlier report is replaced. Raises UsageError if something else is there or the file cannot be written, and
    what `gather` raises; nothing is half written.
    """
    RunFolder(run).require()
    path = RunFolder(run).report if output is None else output
    check_file(path, RunFolder(run), _MARK, "report")
    with RunFolder(run).lock_for_reading():  # until the file stands: nobody makes the run anew below it
        found = gather(run, progress)
        progress("drawing")
        text = page(found).encode()
        # what was checked may be another file by now
        check_file(path, RunFolder(run), _MARK, "report")
        write_lines(path, [text])
    return WrittenReport(
        path=path,
        size=len(text) + 1,
        pending=sum(arm.status.pending for arm in found.arms),
        accepted=sum(arm.status.accepted for arm in found.arms),
        refused=sum(reason.count for arm in found.arms for reason in arm.reasons),
        missing=found.missing,
        uncompared=found.uncompared,
    )
