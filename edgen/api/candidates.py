"""Texts for a run's turns: have the writer write the missing texts, and write all texts to a file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgen.asking.ledger_paths import open_for_reading, open_for_work
from edgen.asking.options import CandidateOptions
from edgen.asking.writers import WriterStart, WriterTotals
from edgen.core.errors import EdgenError, ShortError
from edgen.core.text import describe_counts
from edgen.runtime.control import Control, run_in_own_loop
from edgen.runtime.status import WriterStatus


@dataclass(frozen=True, slots=True)
class WrittenCandidates:
    """Status of the writer, and its file."""

    run: Path  # folder of the run
    options: CandidateOptions  # options of the call
    file: Path  # file of the texts
    writer: WriterStatus  # status of the writer
    totals: WriterTotals | None = None
    """Totals of `file`; None if `ended` stopped the writer, so that nothing was written."""
    ended: EdgenError | None = None  # the error that stopped the writer, if any


def write_for_run(run: Path, options: CandidateOptions, control: Control) -> WrittenCandidates:
    """Have texts written for a run's turns, and write them to candidates/<kind>.jsonl.

    Raises UsageError, RunError and LockedError, and the error that stopped the writer before its start.
    """
    with open_for_work(run, control, "candidates") as reader:
        start = WriterStart(reader, options, control)
        start.note_pending("texts are written for the finished ones only.")
        (asker,), (ledger,), ended = run_in_own_loop(start.ask())
        file, totals = reader.rundir.locate_written_texts(options.write), None
        if ended is None:
            totals = asker.write_texts(ledger, file)
        return WrittenCandidates(run, options, file, WriterStatus.read_from(ledger), totals, ended)


def estimate_candidates(run: Path, options: CandidateOptions, control: Control) -> dict[str, Any]:
    """Return the calls of `write_for_run`; send and write nothing. Raises its errors before its first
    call."""
    with open_for_reading(run) as reader:
        ((asker, needs),) = asyncio.run(WriterStart(reader, options, control).estimate())
    return {"run": str(run), "writer": asker.id, "writes": options.write, **needs.describe("write")}


def require_candidates(made: WrittenCandidates) -> None:
    """Raise the error that ended the work, or ShortError if texts are missing."""
    if made.ended is not None:
        raise made.ended
    writer = made.writer
    writer.require_answers("turns")
    if made.totals is None or not made.totals.turns:
        raise ShortError(
            f"Nothing could be written: {describe_counts(writer.rejected)}. Another template or backend may "
            "help."
        )
