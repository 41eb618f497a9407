"""A finished run as one page to read and to send around."""

from __future__ import annotations

from pathlib import Path

from edgen.api.supervision.control import Control
from edgen.report.write import WrittenReport
from edgen.report.write import write_report as write


def write_report(run: Path, control: Control, output: Path | None = None) -> WrittenReport:
    """Write one self-contained HTML file about a run, in place of an earlier one. What of the run it is not about is
    told as notes. Raises what reading the run raises, and UsageError where the file cannot be written."""
    with control.stages() as tell:
        written = write(run, output, progress=tell)
    if not written.accepted:
        control.note(
            f"no conversation was accepted ({written.refused:,} were rejected or failed), so there is nothing to "
            "measure; the report says why they were."
        )
    if written.pending:
        pending = "1 conversation is" if written.pending == 1 else f"{written.pending:,} conversations are"
        control.note(f"{pending} pending; the report is about what is there.")
    if written.missing:
        control.note(
            f"nothing is settled in {', '.join(written.missing)}; the report is about the other arms."
        )
    if written.uncompared:
        control.note(f"the arms are not compared: {written.uncompared}")
    return written
