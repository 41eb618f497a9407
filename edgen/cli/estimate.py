"""`edgen estimate`: what a job will cost, before it is started; calls nothing and writes nothing.

`--json` prints one object, whose keys the structs of `edgen.api.estimating` explain.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.options import common as o
from edgen.cli.output import print_value


def command(
    job: o.JobArgument,
    count: o.CountOption = None,
    set_: o.SetOption = None,
    allow_outside: o.OutsideOption = False,
    part: Annotated[
        str | None, typer.Option("--range", metavar="A:B", help="Only scenarios A to B - 1.")
    ] = None,
    via: o.ViaOption = "online",
    runs: Annotated[
        Path, typer.Option("--runs", metavar="DIR", help="Where earlier runs are, and the job's own.")
    ] = Path("outputs"),
    output: Annotated[
        Path | None, typer.Option("-o", metavar="RUN", help="The job's own run.  [default: DIR/<name>]")
    ] = None,
    json: o.JsonOption = False,
) -> None:
    """Say what a job will cost: calls, tokens, money and time, each with an interval, and what that rests on.

    It calls nothing, needs no key and writes nothing. What the job's run has stored already is not counted
    again. Earlier runs of the same templates make the interval narrow; without any, answers are assumed.

    Example: edgen estimate jobs/quickstart.yaml -n 5000 --via batch
    """
    from edgen.api.estimating import EstimateOptions, estimate_job
    from edgen.cli.render.estimate import render_estimate

    options = EstimateOptions(
        overrides=o.read_overrides(set_, count),
        allow_outside=allow_outside,
        part=o.read_range(part),
        via=via,
        runs=runs,
        output=output,
    )
    estimate = estimate_job(job, options)
    print_value(estimate, render_estimate(estimate), json=json)
