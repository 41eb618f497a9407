"""`edgen compare`: arms of an experiment, runs of the same scenarios, or data sets, side by side with
intervals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from typer import Argument

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.evaluation.options import CompareOptions


class CompareCommand(o.SeveralWords):
    option = "--arms"


COMMAND = CompareCommand  # see cli/app


def command(
    runs: Annotated[
        list[Path] | None,
        Argument(
            metavar="PATH…",
            help="A run with arms, several runs of the same scenarios, or data sets.",
            autocompletion=complete.runs,
        ),
    ] = None,
    *,
    options: CompareOptions,
    json: o.JsonOption = False,
) -> None:
    """Compare the arms of an experiment, or runs, with 95% intervals.

    The first arm or run is the baseline. Differences are paired by scenario. A * marks a difference that
    remains significant after Holm's correction for all tests.

    Any other path is a data set that `edgen stats` can read. It is compared as an independent sample, on the
    measures that apply to both.

    Example: edgen compare outputs/experiment --arms published json --prompts

    Example: edgen compare dataset.json outputs/quickstart --role Teacher=Tutor
    """
    from edgen.api.finished import compare_runs
    from edgen.cli.control import make_control
    from edgen.core.plugins.faults import FaultyPluginError
    from edgen.evaluation.comparison.render import render_comparison
    from edgen.evaluation.measure_files import load_measures, load_run_measures

    load_measures(options.own)
    control = make_control(trust_code=options.trust_code)
    load_run_measures(runs or [], control)
    comparison, file = compare_runs(runs or [], options, control)
    lines = [*render_comparison(comparison, max(40, min(120, shutil.get_terminal_size().columns)))]
    if options.prompts and not comparison.prompts:
        lines.append("prompts    the prompts of the first scenario are the same in all arms")
    if file is not None:
        lines.append(f"stored     {file}")
    print_value(comparison, lines, json=json)
    for fault in comparison.faults or ():
        raise FaultyPluginError(fault)
