"""`edgen stats`: what a data set is like, measured: a run, an arm at a time, or anybody's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption, SetOption, TrustOption
from edgen.cli.options.several_words import SeveralMeasures as Command
from edgen.cli.output import print_value

__all__ = ["Command", "command"]


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Runs, folders of shards, or files of records; several paths are one data set.",
            show_default=False,
        ),
    ],
    json: JsonOption = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE",
            help="Only these measures, one or several; `edgen plugins` lists them.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Have the job's judge read N conversations of the run (of each arm) for adherence; costs calls.",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    trust_host: TrustOption = None,
) -> None:
    """Measure a data set: sizes, lengths, balance, diversity, duplicates, leakage, coverage, adherence and more.

    A run with arms is measured an arm at a time. Every definition, with its source, is in the output of --json.

    Example: edgen stats conversations_train*.json conversations_eval.json --only diversity leakage
    """
    from edgen.api.stats import choose_measures, measure
    from edgen.cli.control import make_control
    from edgen.cli.render.quality import quality_as_json, render_qualities

    chosen, control = choose_measures(only), make_control(trust_host=trust_host)
    found = measure(paths, control, only=chosen, judge=judge, overrides=set_ or ())
    print_value(quality_as_json(found), render_qualities(found, chosen), json=json)
