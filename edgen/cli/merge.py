"""`edgen merge`: pieces of a job, or several runs of it, made one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption
from edgen.cli.output import print_value
from edgen.core.errors import UsageError


def command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The folders of runs.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("-o", metavar="RUN", help="The new run's folder.", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make one run of pieces of a job (`edgen generate --range`), or of several runs of the same job.

    Nothing is dropped, and the runs stay as they are. What stands in several of them is taken from the first that is
    named; the others' go to merged/duplicates.jsonl in the new run. When all is there, its shards are those of one
    undivided run; what is missing, `edgen generate JOB -o` the new run makes.

    Example: edgen merge outputs/piece-1 outputs/piece-2 -o outputs/whole
    """
    if output is None:
        raise UsageError("say where the new run is to be: -o RUN.")
    from edgen.api.merging import merge_runs
    from edgen.cli.control import make_control
    from edgen.cli.render.merged import merged_as_json, render_merged, require_complete

    merged = merge_runs(runs, output, make_control())
    print_value(merged_as_json(merged), render_merged(merged), json=json)
    require_complete(merged, output)
