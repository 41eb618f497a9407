"""`edgen runs`: the runs in a folder, a line each, the one last worked on first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption
from edgen.cli.output import note, print_value


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="A folder of runs, or a run.", show_default="outputs")
    ] = Path("outputs"),
    json: JsonOption = False,
) -> None:
    """List the runs in a folder: state, counts, calls, cost, when each was last worked on, and its size.

    Reads and changes nothing. A run that cannot be read is listed with what is wrong with it.

    Example: edgen runs
    """
    from edgen.api.runs import list_runs
    from edgen.cli.render.runs import render_runs

    runs = list_runs(folder)
    print_value(
        {"folder": str(folder), "runs": [run.as_json() for run in runs]}, render_runs(runs), json=json
    )
    if not runs and not json:
        note(f"edgen: {folder}: there are no runs in this folder.")
