"""Measures of a data set: a run, an arm at a time, or other files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.core.errors import UsageError
from edgen.core.registry import list_names
from edgen.core.yaml_values import suggest_name
from edgen.evaluation import measure_files
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measure import JudgeAsking
from edgen.evaluation.measuring import ArmMeasures, find_judged_measure
from edgen.evaluation.measuring import measure as measure_data_set
from edgen.evaluation.options import StatsOptions
from edgen.evaluation.parallel import Parts
from edgen.runtime.control import Control
from edgen.runtime.processes import require_several
from edgen.store.run_folder import RunFolder

if TYPE_CHECKING:
    from edgen.asking.call_estimates import NeededCalls


def load_measures(paths: Sequence[Path], options: StatsOptions, control: Control) -> StatsOptions:
    """Load the user's own measures, and those of the runs' jobs; return the options with the names of all
    chosen measures. Raises UsageError for unknown ones."""
    loaded = measure_files.load_measures(options.own)
    named = None if options.only is None else split_names(options.only)
    measure_files.load_run_measures(paths, control, named)
    chosen = choose_measures(measure_files.add_own_measures(options.only, loaded))
    return msgspec.structs.replace(options, only=None if chosen is None else tuple(chosen))


def measure(paths: Sequence[Path], options: StatsOptions, control: Control) -> dict[str, ArmMeasures]:
    """Return the measured qualities of a data set, by arm. The measures must be loaded.

    Raises UsageError, and the errors of reading and asking.
    """
    judge, workers, on = options.judge, options.workers, options.on
    if on is not None:
        require_several(on, workers)
    chosen = choose_measures(options.only)
    _check_judge(paths, options, chosen)
    judged = {}
    if judge is not None:
        own, judging = find_judged_measure()
        judged = judging.ask_judge(paths[0], _ask(options, control, judge))
    found = {}
    with contextlib.ExitStack() as stack:
        for path in dict.fromkeys(paths):
            stack.enter_context(RunFolder(path).lock_for_reading())
        tell = stack.enter_context(control.events.report_stages())
        for data in open_data_sets(paths):

            def tell_count(done: int, name: str = data.name) -> None:
                tell(f"measuring {name}: {done:,} conversations")

            if workers > 1:
                with Parts(paths, data.arm, workers, on) as helpers:
                    quality = measure_data_set(data, chosen, tell_count, helpers=helpers)
            else:
                quality = measure_data_set(data, chosen, tell_count)
            if (sheets := judged.get(data.arm)) is not None:
                added = judging.with_judged(quality[own], sheets)
                quality = msgspec.structs.replace(quality, values={**quality.values, own: added})
            found[data.arm] = quality
    return found


def estimate_judge(paths: Sequence[Path], options: StatsOptions, control: Control) -> NeededCalls:
    """Return the calls of `measure`. Raises its errors before its first call."""
    _check_judge(paths, options, choose_measures(options.only))
    if options.judge is None:
        raise UsageError("--dry-run goes with --adherence: without it, no model is called.")
    _, judging = find_judged_measure()
    needs: NeededCalls = judging.estimate_judge(paths[0], _ask(options, control, options.judge))
    return needs


def _ask(options: StatsOptions, control: Control, sample: int) -> JudgeAsking:
    """Return the settings of the judge's requests."""
    return JudgeAsking(control, sample, options.overrides, options.prompt)


def _check_judge(paths: Sequence[Path], options: StatsOptions, chosen: Sequence[str] | None) -> None:
    """Raise UsageError for contradictory options."""
    if options.prompt is not None and options.judge is None:
        raise UsageError("--prompt goes with --adherence: it is the template that the judge is asked with.")
    if options.overrides and options.judge is None:
        raise UsageError(
            "--set goes with --adherence: it sets keys of the job for the judge, such as backends.judge."
        )
    judged = options.judge is not None
    if judged and chosen is not None and (own := find_judged_measure()[0]) not in chosen:
        raise UsageError(f"--adherence: add the measure with --only {own}, or leave --only out.")
    if judged and len(paths) != 1:
        raise UsageError("--adherence: name one run; the judge of its job rates it.")


def split_names(only: Iterable[str] | None) -> list[str]:
    """Return names of measures, split at commas."""
    return [name.strip() for text in only or () for name in text.split(",") if name.strip()]


def choose_measures(only: Iterable[str] | None) -> list[str] | None:
    """Return the measures of these names, split at commas; None for all. Raises UsageError."""
    named = split_names(only)
    known = list_names("measure")
    for name in named:
        if name not in known:
            raise UsageError(f"--only {name}: no such measure{suggest_name(name, known)}.")
    return named if only else None
