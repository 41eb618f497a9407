"""`edgen init`: a folder of one's own, with a job, a template and a space ready to edit."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgen.cli.output import print_line


def command(
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder to make.")],
    protocol: Annotated[
        str,
        Option(
            help="oneshot: one prompt plays both sides. selfplay: two agents, and pairs of what they say. "
            "tutoring: exercises with right answers, three tutors a turn. guided: a state machine says what one role may say. "
            "forum: one asks in a forum, several answer."
        ),
    ] = "oneshot",
) -> None:
    """Make a folder with a job, its templates and a preference space, ready to edit.

    Example: edgen init my-project && edgen generate my-project/job.yaml
    """
    from edgen.api.projects import SCHEMAS, make_project

    made = make_project(folder, protocol)
    *first, last = made.templates
    asked = f"{', '.join(first)} and {last}" if first else last
    job = shlex.quote(str(made.job))
    print_line(f"{folder} is ready: job.yaml says what to make, {asked} how to ask, space.yaml about what.")
    print_line(f"Editors check job.yaml and space.yaml with {SCHEMAS}/, which their first lines name.")
    print_line(f"Look:  edgen preview {job}")
    print_line(f"Make:  edgen generate {job}")
