"""`edgen init`: a new project folder with a job, a template and a space ready to edit."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli import complete
from edgen.cli.options import JsonOption
from edgen.cli.output import print_value


def command(
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder to make.")],
    protocol: Annotated[
        str,
        Option(
            metavar="NAME",
            help="How conversations are made, as in oneshot (one prompt plays both sides) or selfplay (agents take turns). "
            "`edgen list protocols` describes each.",
        ),
    ] = "oneshot",
    space: Annotated[
        str | None,
        Option(
            metavar="SPACE",
            help="A space: a shipped one's name, or a file. The folder gets a copy of it, and templates that name its "
            "dimensions.",
            autocompletion=complete.spaces,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a project folder with a job, its templates and a space.

    The files are ready to edit. The job runs as it is, on the simulator: it needs no key and costs nothing.

    Example: edgen init my-project && edgen generate my-project/job.yaml

    Example: edgen init my-talks --space my_space.yaml --protocol selfplay
    """
    from edgen.api.projects import SCHEMAS, make_project

    made = make_project(folder, protocol, space)
    *first, last = made.templates
    asked = f"{', '.join(first)} and {last}" if first else last
    job = shlex.quote(str(made.job))
    lines = (
        f"{folder} is ready. job.yaml says what to make, space.yaml what about, and {asked} how to ask.",
        f"The first lines of job.yaml and space.yaml name schemas in {SCHEMAS}/, so editors check both files.",
        f"Look:  edgen preview {job}",
        f"Make:  edgen generate {job}",
    )
    facts = {"folder": str(folder), "job": str(made.job), "templates": list(made.templates)}
    print_value(facts, lines, json=json)
