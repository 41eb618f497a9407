"""Options of `edgen space expand`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DimensionOption = Annotated[
    str, typer.Option(metavar="DIMENSION", help="Which list is to grow, as in topic.")
]
NewOption = Annotated[int, typer.Option(metavar="N", min=1, help="How many new values.")]
AskedOption = Annotated[
    str | None,
    typer.Option(
        metavar="JOB[:ROLE]",
        help="Whose backend is asked.  [default: `default` of ./job.yaml if there is one, else the simulator]",
    ),
]
PromptOption = Annotated[
    str, typer.Option(metavar="FILE", help="The template that asks: a shipped name, or a .j2 file.")
]
OutOption = Annotated[
    Path | None, typer.Option("-o", metavar="OUT", help="The new file.  [default: <name>-expanded.yaml]")
]
