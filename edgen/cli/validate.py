"""`edgen validate`: what is wrong with records, whoever wrote them, and repaired copies of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption
from edgen.cli.output import note, print_value


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Runs, folders of shards, or files: JSON lists or JSON Lines of records.",
            show_default=False,
        ),
    ],
    json: JsonOption = False,
    fix: Annotated[
        Path | None,
        typer.Option(
            "--fix",
            metavar="OUT",
            help="Write repaired copies to the folder OUT, and what was changed to OUT/changes.jsonl.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check records against the schema and the rules, whoever wrote them.

    Errors make a record invalid; warnings do not. Exits with 0 if all records are valid, with 3 if
    some are not (with --fix, too).

    Example: edgen validate outputs/quickstart

    Example: edgen validate conversations_train1.json --fix repaired
    """
    from edgen.api.validating import validate
    from edgen.cli.render.validation import render_validation

    found = validate(paths, fix, note)
    print_value(found, render_validation(found), json=json)
    if not found.sound:
        raise typer.Exit(3)
