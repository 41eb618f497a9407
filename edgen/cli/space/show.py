"""`edgen space show`: sizes, cells, weights, and how many conversations a balanced design needs."""

from __future__ import annotations

from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption, SpaceArgument
from edgen.cli.output import print_value


def command(
    space: SpaceArgument,
    per_cell: Annotated[
        int | None,
        typer.Option(
            "--per-cell",
            metavar="K",
            min=1,
            max=10_000,
            help="Conversations per cell.  [default: 1, 2 and 5]",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print a space's sizes, cells and weights, and what a balanced design needs for K conversations a cell.

    Example: edgen space show broad --per-cell 3
    """
    from edgen.api.spaces.facts import describe_space
    from edgen.cli.render.space import render_space

    facts = describe_space(space, per_cell)
    print_value(facts, render_space(facts), json=json)
