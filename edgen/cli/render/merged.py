"""What `edgen merge` put together, as JSON and in lines, and what the new run lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from edgen.api.merging import MergedRun
from edgen.cli.render.figures import first_of
from edgen.cli.render.status import render_status
from edgen.core.errors import ShortError
from edgen.execution.merge import MergeInput


def merged_as_json(run: MergedRun) -> dict[str, Any]:
    """The new run's status, and what was put together."""
    merged = run.merged
    duplicates = {
        "same": merged.same,
        "other": merged.other,
        "others": list(merged.others),
        "calls": merged.answered_twice,
        "calls_otherwise": merged.answered_otherwise,
    }
    gaps = [
        {"arm": arm or None, "first": first, "end": end}
        for arm, gaps in merged.gaps.items()
        for first, end in gaps
    ]
    inputs = [to_builtins(one) | {"arm": one.arm or None} for one in merged.inputs]
    return {**to_builtins(run.status), "inputs": inputs, "duplicates": duplicates, "gaps": gaps}


def render_merged(run: MergedRun) -> Iterator[str]:
    merged = run.merged
    for one in merged.inputs:
        yield f"input      {_describe_input(one)}"
    if merged.same or merged.other or merged.answered_twice:
        yield (
            f"twice      {merged.same + merged.other} conversations, {merged.same} of them alike; "
            f"{merged.answered_twice} calls, {merged.answered_otherwise} of them answered otherwise"
        )
    if merged.others:
        more = merged.other - len(merged.others)
        yield f"unlike     {', '.join(merged.others)}{f' and {more} more' if more else ''}"
    yield from render_status(run.status)


def require_complete(run: MergedRun, output: Path) -> None:
    """Raise ShortError with what the new run lacks, and who makes it."""
    status, merged = run.status, run.merged
    if merged.complete:
        return
    gaps = [_describe_gap(arm, *gap) for arm, those in merged.gaps.items() for gap in those]
    pending, go_on = status.pending, f"`edgen generate JOB -o {output}` makes what is missing."
    if gaps:
        missing = f"{first_of(gaps, 5, ' gaps')} are in none of the runs ({pending} conversations pending)"
        raise ShortError(f"{output} is made, and not complete: {missing}. {go_on}")
    if pending or status.state == "stopped":
        raise ShortError(f"{output} is made, and not complete: {pending} conversations are pending. {go_on}")
    again = f" Failed ones are tried again by `edgen generate JOB -o {output}`." if status.failed else ""
    raise ShortError(
        f"{output} is made, and short: {status.accepted} of {status.planned} conversations were accepted."
        f"{again}"
    )


def _describe_input(one: MergeInput) -> str:
    if one.end <= one.first:
        return f"{one.run}: nothing was planned"
    pending = f", {one.pending} pending" if one.pending else ""
    return f"{one.run}: scenarios {one.first} to {one.end - 1}, {one.accepted} of {one.planned} accepted{pending}"


def _describe_gap(arm: str, first: int, end: int) -> str:
    scenarios = f"scenario {first}" if end - first == 1 else f"scenarios {first}-{end - 1}"
    return f"{scenarios} of arm {arm}" if arm else scenarios
