"""`edgen baseline`: rank the candidates of a response-selection set without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from edgen.cli.options import JsonOption
from edgen.cli.output import count_noun, print_value


def command(
    examples: Annotated[
        Path,
        Argument(metavar="EXAMPLES", help="A file in DSTC7's layout, with the candidates of each example."),
    ],
    output: Annotated[Path, Option("--output", "-o", metavar="FILE.json", help="The ranking to write.")],
    by: Annotated[
        Literal["chance", "tfidf", "bm25"],
        Option(help="By the words shared with what was said, or by chance."),
    ] = "bm25",
    seed: Annotated[
        int, Option(metavar="N", help="What the order of equally good candidates is drawn from.")
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Rank the candidates of every example: what a model has to be better than. `edgen score` takes the file.

    Example: edgen baseline test.json -o bm25.json --by bm25
    """
    from edgen.api.scoring import baseline

    found = baseline(examples, output, by=by, seed=seed)
    print_value(
        found, [f"ranked     {count_noun(found.examples, 'example')}", f"written    {output}"], json=json
    )
