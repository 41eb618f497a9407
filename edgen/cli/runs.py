"""`edgen runs`: the runs in a folder, a line each, the one last worked on first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from edgen.cli.options import JsonOption
from edgen.cli.output import align_columns, note, print_value
from edgen.core.durations import span
from edgen.core.figures import format_money, format_short

if TYPE_CHECKING:
    from edgen.api.runs import RunFacts


def command(
    folder: Annotated[
        Path, Argument(metavar="[DIR]", help="A folder of runs, or a run.", show_default="outputs")
    ] = Path("outputs"),
    json: JsonOption = False,
) -> None:
    """List the runs in a folder: state, counts, calls, cost, when each was last worked on, and its size.

    Reads and changes nothing. A run that cannot be read is listed with what is wrong with it.

    Example: edgen runs
    """
    from edgen.api.runs import list_runs

    runs = list_runs(folder)
    print_value({"folder": str(folder), "runs": [run.as_json() for run in runs]}, _render(runs), json=json)
    if not runs and not json:
        note(f"edgen: {folder}: there are no runs in this folder.")


def _render(runs: list[RunFacts]) -> Iterator[str]:
    if not runs:
        return
    head = ("run", "state", "accepted", "calls", "tokens", "cost", "age", "size")
    first, *rest = align_columns([head, *map(_cells, runs)], left=2)
    yield first
    for line, run in zip(rest, runs, strict=True):
        yield line
        if run.problem:
            yield f"  {run.problem}"


def _cells(run: RunFacts) -> tuple[str, ...]:
    old = run.age_seconds >= 2 * 86_400
    age = f"{run.age_seconds // 86_400:.0f}d" if old else span(run.age_seconds)
    size = f"{format_short(run.bytes)}B"
    if (status := run.status) is None:
        return run.name, "unreadable", "-", "-", "-", "-", age, size
    calls, tokens = status.calls.made, format_short(status.tokens.prompt + status.tokens.completion)
    cost = "no price" if calls else "-"
    if status.cost_usd is not None:
        cost = format_money(status.cost_usd)
    accepted = f"{status.accepted}/{status.planned}"
    return run.name, status.state, accepted, str(calls), tokens, cost, age, size
