"""`edgen compare`: arms of an experiment, or runs of the same scenarios, side by side with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption
from edgen.cli.options.several_words import SeveralArms as Command
from edgen.cli.output import print_value

__all__ = ["Command", "command"]


def command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN…", help="A run with arms, or several runs of the same scenarios.", show_default=False
        ),
    ] = None,
    arms: Annotated[
        list[str] | None,
        typer.Option(
            "--arms",
            metavar="A B…",
            help="Only these arms, behind the runs; the first is the baseline.  [default: all]",
        ),
    ] = None,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Show how the rendered prompts of the first scenario differ.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
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
    from edgen.api.comparing import compare_runs
    from edgen.cli.control import make_control
    from edgen.cli.render.comparison import render_comparison

    found = compare_runs(runs or [], make_control(), arms=arms or [], prompts=prompts, output=output)
    print_value(found.comparison, render_comparison(found, prompts=prompts), json=json)
