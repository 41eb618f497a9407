"""`edgen compare`: arms of an experiment, or runs of the same scenarios, side by side with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgen.cli.options import JsonOption, SeveralWords
from edgen.cli.output import print_json, print_line
from edgen.cli.progress import Stages
from edgen.cli.work import worded
from edgen.errors import UsageError

if TYPE_CHECKING:
    from edgen.comparison.model import Comparison


class SeveralArms(SeveralWords):
    option = "--arms"


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
    from edgen.engine.comparing import comparing, store

    if not runs:
        raise UsageError(
            "name a run, before the options: edgen compare RUN --arms A B (every word behind --arms is an arm)."
        )
    with (
        Stages() as stages,
        comparing(runs, arms or [], prompts=prompts, tell=stages) as comparison,
        worded(output or runs[0]),
    ):
        path = store(comparison, runs[0], output)
    if json:
        print_json(comparison)
        return
    for line in _lines(comparison):
        print_line(line)
    if prompts and not comparison.prompts:
        print_line("prompts    those of the first scenario are the same in all arms")
    print_line(f"stored     {path}")


def _lines(comparison: Comparison) -> Iterator[str]:
    import shutil

    from edgen.comparison.render import rendered

    return rendered(comparison, max(80, min(120, shutil.get_terminal_size().columns)))
