"""`edgen batch read`: result files of batches that somebody sent by hand, or ran elsewhere, into the run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgen.cli.batch.list_ import RunArgument
from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_line
from edgen.cli.work import worded
from edgen.errors import DataError, RunError, ShortError
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.engine.handing import Held
    from edgen.engine.results import Reading


def command(
    run: RunArgument,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Result files, JSON Lines.", show_default=False)
    ],
    json: JsonOption = False,
) -> None:
    """Read result files into a run: those of the provider, or of `vllm run-batch`, for the request files that
    `edgen generate JOB --via batch --write-only DIR` wrote. Reading a file twice changes nothing.

    Example: edgen batch read outputs/nightly results/*.jsonl
    """
    from edgen.engine.handing import batches_of

    rundir = RunDir(run)
    rundir.require()
    for path in files:
        if not path.is_file():
            raise DataError(str(path), "there is no such file." if not path.exists() else "this is no file.")
    with worded(rundir.path), rundir.held():
        known = batches_of(rundir)
        if not known:
            raise RunError(
                f"{run}: this run has had no batches, so there is nothing that results could be for."
            )
        each = asyncio.run(_read(rundir, known, files))
    read = [_facts(path, readings) for path, readings in each.items()]
    out = sum(_still_out(held) for held in batches_of(rundir))
    _show({"run": str(run), "files": read, "out": out}, json=json)
    strange = [file for file in read if file["strangers"] or file["unreadable"]]
    if strange and not any(file["answered"] or file["known"] or file["failed"] for file in strange):
        raise DataError(
            strange[0]["path"],
            f"none of its {strange[0]['lines']:,} lines answers a request of this run"
            + (f" (the first is about {strange[0]['stranger'][:80]!r})" if strange[0]["stranger"] else "")
            + ". Is it another run's, or a request file?",
        )
    if strange:
        raise ShortError(
            f"{strange[0]['path']}: {strange[0]['strangers'] + strange[0]['unreadable']:,} of its {strange[0]['lines']:,} "
            "lines answer no request of this run and were left aside; the others are read."
        )


async def _read(rundir: RunDir, known: list[Held], files: list[Path]) -> dict[Path, list[Reading]]:
    from edgen.engine.handing import job_of, read_file
    from edgen.ledger import Ledger

    each: dict[Path, list[Reading]] = {path: [] for path in files}
    for held in known:
        async with Ledger(held.path, create=False) as ledger:
            for path in files:
                each[path].append(await read_file(ledger, job_of(rundir, held), path))
    return each


def _facts(path: Path, readings: list[Reading]) -> dict[str, Any]:
    """What came of one file, over all ledgers of the run: a line is a stranger if it is one to all of them."""
    lines, unreadable = readings[0].lines, readings[0].unreadable
    ours = sum(reading.lines - reading.strangers - reading.unreadable for reading in readings)
    strangers = max(0, lines - unreadable - ours)
    return {
        "path": str(path),
        "lines": lines,
        "answered": sum(reading.answered for reading in readings),
        "known": sum(reading.known for reading in readings),
        "failed": sum(reading.failed.total() for reading in readings),
        "unanswered": sum(reading.unanswered for reading in readings),
        "strangers": strangers,
        "stranger": readings[0].stranger if strangers else "",
        "unreadable": unreadable,
    }


def _still_out(held: Held) -> int:
    from edgen.ledger import OPEN, out_at

    return sum(out_at(held.path, batch.number) for batch in held.batches if batch.state in OPEN)


def _show(facts: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(facts)
        return
    for file in facts["files"]:
        said = [f"{file[what]:,} {words}" for what, words in _WORDS.items() if file[what]]
        print_line(f"{file['path']}: {', '.join(said) or 'empty'}")
    if facts["out"]:
        note(f"{facts['out']:,} requests of this run are still without an answer.")
    else:
        note(
            "All requests that were out are settled; run the same `edgen generate` command for the next round."
        )


_WORDS = {
    "answered": "answers",
    "known": "known before",
    "failed": "errors, to be asked again",
    "unanswered": "never worked on, to be asked again",
    "strangers": "of another run",
    "unreadable": "that are no result lines",
}
