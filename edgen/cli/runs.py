"""The runs of a folder as lines: one for each, with its state or the reason of its stop, and the totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from edgen.cli.output import align_columns, wrap_behind
from edgen.core.text import format_dollars, format_short, format_span

if TYPE_CHECKING:
    from edgen.api.runs import RunFacts, RunTotals

_WIDTH = 78  # columns of a line below a row, which is indented by two
_HEAD = ("run", "state", "accepted", "calls", "tokens", "cost", "age", "size")


def render_runs(runs: Sequence[RunFacts], totals: RunTotals) -> Iterator[str]:
    """Yield the table. Below a row: the run's problem, the process at work, or why it stopped."""
    if not runs:
        return
    first, *rest, last = align_columns([_HEAD, *map(_list_cells, runs), _list_total_cells(totals)], left=2)
    yield first
    for line, run in zip(rest, runs, strict=True):
        yield line
        yield from (f"  {said}" for said in _describe(run))
    yield last


def _describe(run: RunFacts) -> Iterator[str]:
    if run.problem:
        yield run.problem
    if run.work is not None:
        speed = f", {run.work.calls_per_minute:,.0f} calls a minute" if run.work.calls_per_minute else ""
        yield f"running    {run.work.process} for {format_span(run.work.seconds)}{speed}"
    yield from _describe_end(run)


def _describe_end(run: RunFacts) -> Iterator[str]:
    """Yield why a run stopped, or is short."""
    if run.status is not None and (why := run.status.stopped):
        yield from wrap_behind("stopped    ", f"{why.reason}: {why.detail}", _WIDTH)


def _list_cells(run: RunFacts) -> tuple[str, ...]:
    old = run.age_seconds >= 2 * 86_400
    age = f"{run.age_seconds // 86_400:.0f}d" if old else format_span(run.age_seconds)
    size = f"{format_short(run.bytes)}B"
    if (status := run.status) is None:
        return run.name, "unreadable", "-", "-", "-", "-", age, size
    calls, tokens = status.calls.made, format_short(status.tokens.prompt + status.tokens.completion)
    accepted, cost = f"{status.accepted:,}/{status.planned:,}", _format_cost(status.cost_usd, calls)
    return run.name, status.state, accepted, str(calls), tokens, cost, age, size


def _list_total_cells(totals: RunTotals) -> tuple[str, ...]:
    states = f"{totals.running} running" if totals.running else ""
    accepted, size = f"{totals.accepted:,}/{totals.planned:,}", f"{format_short(totals.bytes)}B"
    tokens, cost = format_short(totals.tokens), _format_cost(totals.cost_usd, totals.calls)
    return f"total {totals.runs}", states, accepted, str(totals.calls), tokens, cost, "", size


def _format_cost(usd: float | None, calls: int) -> str:
    if usd is None:
        return "no price" if calls else "-"
    return format_dollars(usd)
