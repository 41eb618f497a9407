"""`edgen space from-csv`: a table to a space file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from edgen.cli.output import note, print_line


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A CSV file: a column a dimension.", show_default=False)
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
    weights: Annotated[
        Literal["counts", "equal"],
        typer.Option(help="How much a value weighs: as often as it is there, or as much as any other."),
    ] = "counts",
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT if it is there.")] = False,
) -> None:
    """Write a space file out of a table: a column a dimension, and columns like topic.grade for its fields.

    Example: edgen space from-csv learners.csv --weights equal -o learners.yaml
    """
    from edgen.api.spaces.from_csv import make_space_from_csv

    made = make_space_from_csv(file, output, name, weights=weights, force=force)
    if output is None:
        print_line(made.text.rstrip("\n"))
    found = ", ".join(f"{count} of {dimension}" for dimension, count in made.values.items())
    note(f"{made.rows:,} rows: {found}" + (f"; written to {output}" if output else ""))
