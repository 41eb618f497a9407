"""One run made of pieces of a job, or of several runs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgen.api.status import Status, status_of
from edgen.api.supervision.control import Control
from edgen.api.supervision.supervise import explain_os_errors
from edgen.execution.merge import MergeResult, merge
from edgen.store.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class MergedRun:
    """The new run as it stands, and what was put together."""

    status: Status
    merged: MergeResult


def merge_runs(runs: Sequence[Path], output: Path, control: Control) -> MergedRun:
    """Make one run of these in the folder `output`. They stay as they are, and nothing is dropped.

    Raises what `execution.merge` raises.
    """
    with control.stages() as tell, explain_os_errors(output):
        merged = merge(runs, output, tell)
    for sentence in merged.notes:
        control.note(sentence)
    return MergedRun(status_of(RunFolder(output)), merged)
