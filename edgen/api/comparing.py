"""Arms of an experiment, or runs of the same scenarios, side by side with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from edgen.api.supervision.control import Control
from edgen.api.supervision.supervise import explain_os_errors
from edgen.core.errors import UsageError
from edgen.evaluation.comparison.result import Comparison
from edgen.evaluation.comparison.run_arms import open_comparison, store


class StoredComparison(NamedTuple):
    """A comparison, and the file that holds it."""

    comparison: Comparison
    file: Path


def compare_runs(
    runs: Sequence[Path],
    control: Control,
    *,
    arms: Sequence[str] = (),
    prompts: bool = False,
    output: Path | None = None,
) -> StoredComparison:
    """Compare the arms of a run, or runs, on the scenarios they share, the first with each other; `arms` chooses some.

    Stored in `output`, or in the first run's `comparisons/`. `prompts`: with how the rendered prompts differ. Raises
    what `evaluation.comparison` raises.
    """
    if not runs:
        raise UsageError(
            "name a run, before the options: edgen compare RUN --arms A B (every word behind --arms is an arm)."
        )
    with (
        control.stages() as tell,
        open_comparison(runs, arms, prompts=prompts, tell=tell) as comparison,
        explain_os_errors(output or runs[0]),
    ):
        return StoredComparison(comparison, store(comparison, runs[0], output))
