"""Options of `edgen export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from edgen.core.registry import names

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="FORMAT",
        help=f"One of these: {', '.join(names('format'))}. Without it, each is listed with what it is for.",
        show_default=False,
    ),
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "-o", metavar="DIR", help="The folder to make; it may not hold anything yet.", show_default=False
    ),
]
TrainOption = Annotated[
    str | None,
    typer.Option(
        "--train",
        "--assistant",
        metavar="ROLE",
        help="The role that is trained, the assistant; all others are the user.  [default: the space's first]",
    ),
]
OpeningOption = Annotated[
    Literal["system", "user", "both"] | None,
    typer.Option(
        help="What a conversation begins with: user: a line by the other side where the trained side would "
        "speak first; system: a system message; both.  [default: user]"
    ),
]
OpeningPromptOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A template for the opening's texts.  [default: export_opening, or export_opening_roles for other spaces than Education Dialogue's]",
    ),
]
LicenseOption = Annotated[
    str | None, typer.Option("--license", metavar="ID", help="The licence that the card states.")
]
LanguageOption = Annotated[
    str | None, typer.Option(metavar="CODE", help="The language that the card states, like en.")
]
StorageOption = Annotated[
    Literal["parquet", "jsonl"] | None,
    typer.Option(help="hf only: how it is stored.  [default: parquet where pyarrow is installed]"),
]
CsvOption = Annotated[
    bool | None,
    typer.Option(
        "--csv-safe/--no-csv-safe",
        help="csv only: an apostrophe before cells that a spreadsheet would take for formulas.  [default: csv-safe]",
        show_default=False,
    ),
]
