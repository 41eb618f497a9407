"""`edgen batch read`: result files of batches that somebody sent by hand, or ran elsewhere, into the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgen.cli.options.common import JsonOption, RunArgument
from edgen.cli.output import note, print_value

if TYPE_CHECKING:
    from edgen.api.batches import ReadResults


def command(
    run: RunArgument,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Result files, JSON Lines.", show_default=False)
    ],
    json: JsonOption = False,
) -> None:
    """Read result files into a run: those of the provider, or of `vllm run-batch`, for the request files that
    `edgen generate JOB --via batch --write-only DIR` wrote. ResultCounts a file twice changes nothing.

    Example: edgen batch read outputs/nightly results/*.jsonl
    """
    from edgen.api.batches import read_results

    read = read_results(run, files)
    print_value(read, _render(read), json=json)
    if not json and read.out:
        note(f"{read.out:,} requests of this run are still without an answer.")
    elif not json:
        note(
            "All requests that were out are settled; run the same `edgen generate` command for the next round."
        )
    read.require_own()


def _render(read: ReadResults) -> Iterator[str]:
    for file in read.files:
        counts = ((getattr(file, what), words) for what, words in _WORDS.items())
        said = [f"{count:,} {words}" for count, words in counts if count]
        yield f"{file.path}: {', '.join(said) or 'empty'}"


_WORDS = {
    "answered": "answers",
    "known": "known before",
    "failed": "errors, to be asked again",
    "unanswered": "never worked on, to be asked again",
    "strangers": "of another run",
    "unreadable": "that are no result lines",
}
