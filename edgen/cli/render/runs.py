"""Runs, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.api.runs import RunFacts
from edgen.cli.render.figures import align_columns
from edgen.core.durations import span
from edgen.core.figures import format_money, format_short


def render_runs(runs: list[RunFacts]) -> Iterator[str]:
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
