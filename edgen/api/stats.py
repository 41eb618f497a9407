"""What a data set is like, measured: a run, an arm at a time, or anybody's files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from edgen.api.supervision.control import Control
from edgen.core.errors import UsageError
from edgen.core.registry import names
from edgen.core.yaml_values import nearest
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import Quality
from edgen.evaluation.measuring import measure as measure_data_set
from edgen.store.run_folder import RunFolder


def measure(
    paths: Sequence[Path],
    control: Control,
    *,
    only: Iterable[str] | None = None,
    judge: int | None = None,
    overrides: Sequence[str] = (),
) -> dict[str, Quality]:
    """The qualities of a data set, by arm. `only`: names of measures, None for all;
    `judge`: have the job's judge read so many conversations of each arm, with these `overrides` of the job.

    Raises UsageError, and what reading and asking raise.
    """
    chosen = choose_measures(only)
    if overrides and judge is None:
        raise UsageError(
            "--set goes with --judge: it sets keys of the job for the judge, such as backends.judge."
        )
    if judge is not None and chosen is not None and "adherence" not in chosen:
        raise UsageError(
            "--judge: the judge is asked about adherence; add --only adherence, or leave --only out."
        )
    if judge is not None and len(paths) != 1:
        raise UsageError("--judge: name one run; the judge is that of its job.")
    judged = {}
    if judge is not None:
        from edgen.api.adherence import judge_adherence

        judged = judge_adherence(paths[0], control, judge, overrides)
    found = {}
    with contextlib.ExitStack() as stack:
        for path in dict.fromkeys(paths):
            stack.enter_context(RunFolder(path).lock_for_reading())
        tell = stack.enter_context(control.stages())
        for data in open_data_sets(paths):

            def tell_count(done: int, name: str = data.name) -> None:
                tell(f"measuring {name}: {done:,} conversations")

            quality = measure_data_set(data, chosen, tell_count)
            if (sheets := judged.get(data.arm)) is not None:
                adherence = (*quality.values["adherence"], sheets)
                quality = msgspec.structs.replace(quality, values={**quality.values, "adherence": adherence})
            found[data.arm] = quality
    return found


def choose_measures(only: Iterable[str] | None) -> list[str] | None:
    """The measures of these names, several behind one with commas, too; None for all. Raises UsageError."""
    named = [name.strip() for text in only or () for name in text.split(",") if name.strip()]
    known = names("measure")
    for name in named:
        if name not in known:
            raise UsageError(f"--only {name}: no such measure{nearest(name, known)}.")
    return named if only else None
