"""`edgen prompts`: the templates there are, shipped and local, and what each expects."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption
from edgen.cli.output import print_value


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]…", help="More files or folders to look at.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the shipped templates and those in this folder and its prompts/: what each expects and uses.

    Example: edgen prompts my-project
    """
    from edgen.cli.render.templates import render_templates
    from edgen.planning.catalogue import list_templates
    from edgen.prompting import EXPECTED

    entries = list_templates(paths or [])
    print_value({"templates": entries, "expects": EXPECTED}, render_templates(entries, EXPECTED), json=json)
