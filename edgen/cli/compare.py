"""`edgen compare`: arms of an experiment, or runs of the same scenarios, side by side with intervals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli.options import JsonOption, SeveralWords
from edgen.cli.output import print_value


class Command(SeveralWords):
    option = "--arms"


def command(
    runs: Annotated[
        list[Path] | None,
        Argument(metavar="RUN…", help="A run with arms, or several runs of the same scenarios."),
    ] = None,
    arms: Annotated[
        list[str] | None,
        Option(
            metavar="A B…",
            help="Only these arms, behind the runs; the first is the baseline.  [default: all]",
        ),
    ] = None,
    prompts: Annotated[
        bool, Option("--prompts", help="Show how the rendered prompts of the first scenario differ.")
    ] = False,
    output: Annotated[
        Path | None,
        Option(
            "-o", metavar="FILE", help="Where to write the JSON.  [default: RUN/comparisons/<a>-vs-<b>.json]"
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare the arms of a run, or runs, on the scenarios they share: each metric with its 95% interval.

    The first is the baseline; differences to it are paired by scenario where both have the same ones. A *
    marks a difference that holds when it is adjusted for all that are tested (Holm).

    Example: edgen compare outputs/experiment --arms published json --prompts
    """
    from edgen.api.finished import compare_runs
    from edgen.cli.control import make_control
    from edgen.evaluation.comparison.render import render_comparison

    comparison, file = compare_runs(
        runs or [], make_control(), arms=arms or [], prompts=prompts, output=output
    )
    lines = [*render_comparison(comparison, max(80, min(120, shutil.get_terminal_size().columns)))]
    if prompts and not comparison.prompts:
        lines.append("prompts    those of the first scenario are the same in all arms")
    print_value(comparison, [*lines, f"stored     {file}"], json=json)
