"""`edgen merge`: merge pieces of a job, or several runs of it, into one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import to_builtins
from typer import Argument

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.cli.status import render_status
from edgen.core.errors import ShortError, UsageError
from edgen.core.options import declare_output
from edgen.core.text import join_first, quantity

if TYPE_CHECKING:
    from edgen.merging.merge import MergeResult
    from edgen.runtime.status import StatusReport


class MergeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a merged run."""

    output: Annotated[Path | None, declare_output("RUN", "The new run's folder.  [required]")] = None


def command(
    runs: Annotated[
        list[Path], Argument(metavar="RUN...", help="The folders of runs.", autocompletion=complete.runs)
    ],
    options: MergeOptions,
    json: o.JsonOption = False,
) -> None:
    """Merge several runs of the same job into one new run.

    The runs, made by `edgen generate --range`, stay unchanged. A conversation in several runs is taken from
    the first; the others go to merged/duplicates.jsonl. The complete result equals an undivided run. `edgen
    generate JOB -o NEW_RUN` makes missing conversations.

    Example: edgen merge outputs/piece-1 outputs/piece-2 -o outputs/whole
    """
    output = options.output
    if output is None:
        raise UsageError("-o is missing: name the folder of the new run, as in -o outputs/whole.")
    from edgen.api.finished import merge_runs
    from edgen.cli.control import make_control

    status, merged = merge_runs(runs, output, make_control())
    print_value(_as_json(status, merged), _render(status, merged), json=json)
    _require_complete(status, merged, output)


def _as_json(status: StatusReport, merged: MergeResult) -> dict[str, Any]:
    """Return the new run's status, and its sources."""
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
    return {**to_builtins(status), "inputs": inputs, "duplicates": duplicates, "gaps": gaps}


def _render(status: StatusReport, merged: MergeResult) -> Iterator[str]:
    for one in merged.inputs:
        pending = f", {one.pending:,} pending" if one.pending else ""
        made = (
            f"scenarios {one.first} to {one.end - 1}, {one.accepted:,} of {one.planned:,} accepted{pending}"
        )
        yield f"input      {one.run}: {made if one.end > one.first else 'nothing planned'}"
    if merged.same or merged.other or merged.answered_twice:
        yield (
            f"twice      {merged.same + merged.other} conversations, {merged.same} of them identical; "
            f"{merged.answered_twice} calls, {merged.answered_otherwise} of them with other answers"
        )
    if merged.others:
        more = merged.other - len(merged.others)
        yield f"unlike     {', '.join(merged.others)}{f' and {more} more' if more else ''}"
    yield from render_status(status)


def _require_complete(status: StatusReport, merged: MergeResult, output: Path) -> None:
    """Raise ShortError with the missing conversations of the new run and the command that makes them."""
    if merged.complete:
        return
    gaps = [_describe_gap(arm, *gap) for arm, those in merged.gaps.items() for gap in those]
    pending = quantity(status.pending, "conversation")
    go_on = f"`edgen generate JOB -o {output}` makes what is missing."
    if gaps:
        missing = f"none of the runs has {join_first(gaps, 5, ' gaps')} ({pending} pending)"
        raise ShortError(f"{output} is written but incomplete: {missing}. {go_on}")
    if status.pending or status.state == "stopped":
        raise ShortError(f"{output} is written but incomplete, with {pending} pending. {go_on}")
    again = f" Failed ones are tried again by `edgen generate JOB -o {output}`." if status.failed else ""
    raise ShortError(
        f"{output} is written but short: {status.accepted:,} of {status.planned:,} conversations were "
        f"accepted.{again}"
    )


def _describe_gap(arm: str, first: int, end: int) -> str:
    scenarios = f"scenario {first}" if end - first == 1 else f"scenarios {first}-{end - 1}"
    return f"{scenarios} of arm {arm}" if arm else scenarios
