"""Measures of a data set: a run, an arm at a time, or other files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.core.errors import UsageError
from edgen.core.registry import names
from edgen.core.yaml_values import suggest_name
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measure import JudgeAsking
from edgen.evaluation.measuring import Quality, find_judged_measure
from edgen.evaluation.measuring import measure as measure_data_set
from edgen.evaluation.parallel import Parts
from edgen.runtime.control import Control
from edgen.runtime.processes import require_several
from edgen.store.run_folder import RunFolder

if TYPE_CHECKING:
    from edgen.asking.call_estimates import NeededCalls


def measure(
    paths: Sequence[Path],
    control: Control,
    *,
    only: Iterable[str] | None = None,
    judge: int | None = None,
    prompt: str | None = None,
    overrides: Sequence[str] = (),
    workers: int = 1,
    on: str | None = None,
) -> dict[str, Quality]:
    """Return the qualities of a data set, by arm.

    `only`: names of measures, None for all; `judge`: have the job's judge read so many conversations of each
    arm, with the template `prompt` and these `overrides` of the job. `workers`: the number of processes, of
    this machine or `on` a cluster. Raises UsageError, and the errors of reading and asking.
    """
    if on is not None:
        require_several(on, workers)
    chosen = choose_measures(only)
    _check_judge(paths, chosen, judge, prompt, overrides)
    judged = {}
    if judge is not None:
        judged = find_judged_measure().ask_judge(paths[0], JudgeAsking(control, judge, overrides, prompt))
    found = {}
    with contextlib.ExitStack() as stack:
        for path in dict.fromkeys(paths):
            stack.enter_context(RunFolder(path).lock_for_reading())
        tell = stack.enter_context(control.events.stages())
        for data in open_data_sets(paths):

            def tell_count(done: int, name: str = data.name) -> None:
                tell(f"measuring {name}: {done:,} conversations")

            if workers > 1:
                with Parts(paths, data.arm, workers, on) as helpers:
                    quality = measure_data_set(data, chosen, tell_count, helpers=helpers)
            else:
                quality = measure_data_set(data, chosen, tell_count)
            if (sheets := judged.get(data.arm)) is not None:
                own = find_judged_measure()
                added = own.with_judged(quality[own.name], sheets)
                quality = msgspec.structs.replace(quality, values={**quality.values, own.name: added})
            found[data.arm] = quality
    return found


def estimate_judge(
    paths: Sequence[Path],
    control: Control,
    *,
    only: Iterable[str] | None,
    judge: int | None,
    prompt: str | None,
    overrides: Sequence[str],
) -> NeededCalls:
    """Return the calls that `measure` would make. Raises what it raises before its first call."""
    _check_judge(paths, choose_measures(only), judge, prompt, overrides)
    if judge is None:
        raise UsageError("--dry-run goes with --adherence: without it, no model is called.")
    needs: NeededCalls = find_judged_measure().estimate_judge(
        paths[0], JudgeAsking(control, judge, overrides, prompt)
    )
    return needs


def _check_judge(
    paths: Sequence[Path],
    chosen: Sequence[str] | None,
    judge: int | None,
    prompt: str | None,
    overrides: Sequence[str],
) -> None:
    """Raise UsageError where options do not go together."""
    if prompt is not None and judge is None:
        raise UsageError("--prompt goes with --adherence: it is the template that the judge is asked with.")
    if overrides and judge is None:
        raise UsageError(
            "--set goes with --adherence: it sets keys of the job for the judge, such as backends.judge."
        )
    if judge is not None and chosen is not None and (own := find_judged_measure().name) not in chosen:
        raise UsageError(f"--adherence: add the measure with --only {own}, or leave --only out.")
    if judge is not None and len(paths) != 1:
        raise UsageError("--adherence: name one run; the judge of its job rates it.")


def split_names(only: Iterable[str] | None) -> list[str]:
    """Return the names of measures, split at commas."""
    return [name.strip() for text in only or () for name in text.split(",") if name.strip()]


def choose_measures(only: Iterable[str] | None) -> list[str] | None:
    """Return the measures of these names, split at commas; None for all. Raises UsageError."""
    named = split_names(only)
    known = names("measure")
    for name in named:
        if name not in known:
            raise UsageError(f"--only {name}: no such measure{suggest_name(name, known)}.")
    return named if only else None
