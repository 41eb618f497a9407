"""`edgen init`: a new project folder with a job, a template and a space ready to edit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from typer import Argument

from edgen.cli.options import JsonOption
from edgen.cli.output import print_value
from edgen.core.options import declare_protocol, declare_space, option


class InitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a new project."""

    protocol: Annotated[str | None, declare_protocol("  [default: oneshot]")] = None
    space: Annotated[
        str | None,
        declare_space("The folder gets a copy of it, and templates that name its dimensions."),
    ] = None
    job: Annotated[
        str | None,
        option(
            "Copy this shipped job and its files; `edgen list jobs` describes each.",
            metavar="NAME",
            completes="jobs",
        ),
    ] = None


def command(
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder to make.")],
    options: InitOptions,
    json: JsonOption = False,
) -> None:
    """Make a project folder with a job, its templates and a space.

    The files are ready to edit. The job runs as it is, on the simulator: it needs no key and costs nothing.

    Example: edgen init my-project && edgen generate my-project/job.yaml

    Example: edgen init my-talks --space my_space.yaml --protocol selfplay

    Example: edgen init my-pairs --job rated_pairs
    """
    from edgen.api.projects import make_project

    made = make_project(folder, options.protocol, options.space, options.job)
    path = shlex.quote(str(made.job))
    about = _describe_folder(folder, made.templates, copied=options.job is not None)
    lines = (*about, f"Look:  edgen preview {path}", f"Make:  edgen generate {path}")
    facts = {"folder": str(folder), "job": str(made.job), "templates": list(made.templates)}
    print_value(facts, lines, json=json)


def _describe_folder(folder: Path, templates: Sequence[str], *, copied: bool) -> tuple[str, str]:
    """Return two sentences: the files to edit, and the schemas that editors check them by. `copied`: from a
    shipped job, whose space and templates stay where they are."""
    from edgen.api.projects import SCHEMAS

    if copied:
        return (
            f"{folder} is ready. job.yaml says what to make; its space and templates are the shipped ones.",
            f"Its first line names a schema in {SCHEMAS}/, so editors check the file.",
        )
    *first, last = templates
    asked = f"{', '.join(first)} and {last}" if first else last
    schemas = f"The first lines of job.yaml and space.yaml name schemas in {SCHEMAS}/"
    return (
        f"{folder} is ready. job.yaml says what to make, space.yaml what about, and {asked} how to ask.",
        f"{schemas}, so editors check both files.",
    )
