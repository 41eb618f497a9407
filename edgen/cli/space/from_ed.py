"""`edgen space from-ed`: released Education Dialogue (ED) files to a space file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.output import note, print_line


def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Released ED files: JSON lists of records.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="The file to write (else: printed).", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The space's name (else: after OUT).", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT if it is there.")] = False,
) -> None:
    """Write a space file with observed frequencies out of released ED files.

    Example: edgen space from-ed conversations_train*.json -o my_space.yaml
    """
    from edgen.api.spaces.from_ed import make_space_from_ed

    made = make_space_from_ed(files, output, name, force=force)
    if output is None:
        print_line(made.text.rstrip("\n"))
    for remark in made.notes:
        note(remark)
    found = ", ".join(f"{count} {dimension.replace('_', ' ')}" for dimension, count in made.values.items())
    note(f"{made.records:,} records: {found}" + (f"; written to {output}" if output else ""))
