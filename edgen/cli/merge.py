"""`edgen merge`: pieces of a job, or several runs of it, made one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_line
from edgen.cli.progress import Stages
from edgen.cli.status import facts_of, status_lines
from edgen.cli.work import worded
from edgen.errors import ShortError, UsageError
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.engine.merging import Input, Merged


def command(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The folders of runs.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("-o", metavar="RUN", help="The new run's folder.", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make one run of pieces of a job (`edgen generate --range`), or of several runs of the same job.

    Nothing is dropped, and the runs stay as they are. What stands in several of them is taken from the first that is
    named; the others' go to merged/duplicates.jsonl in the new run. When all is there, its shards are those of one
    undivided run; what is missing, `edgen generate JOB -o` the new run makes.

    Example: edgen merge outputs/piece-1 outputs/piece-2 -o outputs/whole
    """
    if output is None:
        raise UsageError("say where the new run is to be: -o RUN.")
    from edgen.engine.merging import merge

    with Stages() as stages, worded(output):
        merged = merge(runs, output, stages)
    facts = {**facts_of(RunDir(output), held=False), **_facts(merged)}
    if json:
        print_json(facts)
    else:
        _print(facts, merged)
    for sentence in merged.notes:
        note(f"edgen: {sentence}")
    if not merged.complete:
        raise ShortError(_missing(facts, merged, output))


def _facts(merged: Merged) -> dict[str, Any]:
    """What `--json` says beside the new run's status."""
    from msgspec import to_builtins

    return {
        "inputs": to_builtins(merged.inputs),
        "duplicates": {
            "same": merged.same,
            "other": merged.other,
            "others": list(merged.others),
            "calls": merged.answered_twice,
            "calls_otherwise": merged.answered_otherwise,
        },
        "gaps": [
            {"arm": arm or None, "first": first, "end": end}
            for arm, gaps in merged.gaps.items()
            for first, end in gaps
        ],
    }


def _print(facts: dict[str, Any], merged: Merged) -> None:
    for one in merged.inputs:
        print_line(f"input      {_input(one)}")
    if merged.same or merged.other or merged.answered_twice:
        print_line(
            f"twice      {merged.same + merged.other} conversations, {merged.same} of them alike; "
            f"{merged.answered_twice} calls, {merged.answered_otherwise} of them answered otherwise"
        )
    if merged.others:
        more = merged.other - len(merged.others)
        print_line(f"unlike     {', '.join(merged.others)}{f' and {more} more' if more else ''}")
    for line in status_lines(facts):
        print_line(line)


def _input(one: Input) -> str:
    if one.end <= one.first:
        return f"{one.run}: nothing was planned"
    pending = f", {one.pending} pending" if one.pending else ""
    return f"{one.run}: scenarios {one.first} to {one.end - 1}, {one.accepted} of {one.planned} accepted{pending}"


def _missing(facts: dict[str, Any], merged: Merged, output: Path) -> str:
    """What the new run lacks, and who makes it."""
    gaps = [
        f"{'scenario' if end - first == 1 else 'scenarios'} {first}{f'-{end - 1}' if end - first > 1 else ''}"
        f"{f' of arm {arm}' if arm else ''}"
        for arm, those in merged.gaps.items()
        for first, end in those
    ]
    pending, go_on = facts["pending"], f"`edgen generate JOB -o {output}` makes what is missing."
    if gaps:
        shown = ", ".join(gaps[:5]) + (f" and {len(gaps) - 5} more gaps" if len(gaps) > 5 else "")
        return f"{output} is made, and not complete: {shown} are in none of the runs ({pending} conversations pending). {go_on}"
    if pending or facts["state"] == "stopped":
        return f"{output} is made, and not complete: {pending} conversations are pending. {go_on}"
    again = f" Failed ones are tried again by `edgen generate JOB -o {output}`." if facts["failed"] else ""
    return (
        f"{output} is made, and short: {facts['accepted']} of {facts['planned']} conversations were accepted."
        f"{again}"
    )
