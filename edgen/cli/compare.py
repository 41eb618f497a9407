"""`edgen compare`: arms of an experiment, or runs of the same scenarios, side by side with intervals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.core.options import OwnMeasures, TrustCode


class Command(o.SeveralWords):
    option = "--arms"


def command(
    runs: Annotated[
        list[Path] | None,
        Argument(
            metavar="RUN…",
            help="A run with arms, or several runs of the same scenarios.",
            autocompletion=complete.runs,
        ),
    ] = None,
    arms: Annotated[
        list[str] | None,
        Option(
            metavar="A B…",
            help="Compare only these arms; the first is the baseline. Put it after the runs.  [default: all]",
            autocompletion=complete.arms,
        ),
    ] = None,
    prompts: Annotated[
        bool, Option("--prompts", help="Show how the rendered prompts of the first scenario differ.")
    ] = False,
    output: Annotated[
        Path | None, o.output("FILE", "The result as JSON.  [default: RUN/comparisons/<a>-vs-<b>.json]")
    ] = None,
    own: OwnMeasures = (),
    trust_code: TrustCode = (),
    json: o.JsonOption = False,
) -> None:
    """Compare the arms of an experiment, or runs, with 95% intervals.

    They are compared on their common scenarios, metric by metric. The first arm or run is the baseline.
    Differences to it are paired by scenario where both have the same scenarios. A * marks a difference that
    remains significant after Holm's correction for all tests.

    Example: edgen compare outputs/experiment --arms published json --prompts
    """
    from edgen.api.finished import compare_runs
    from edgen.cli.control import make_control
    from edgen.evaluation.comparison.render import render_comparison
    from edgen.evaluation.measure_files import load_measures, load_run_measures

    load_measures(own)
    control = make_control(trust_code=trust_code)
    load_run_measures(runs or [], control)
    comparison, file = compare_runs(runs or [], control, arms=arms or [], prompts=prompts, output=output)
    lines = [*render_comparison(comparison, max(80, min(120, shutil.get_terminal_size().columns)))]
    if prompts and not comparison.prompts:
        lines.append("prompts    those of the first scenario are the same in all arms")
    print_value(comparison, [*lines, f"stored     {file}"], json=json)
