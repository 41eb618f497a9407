"""`edgen status`: how a run stands, finished or in progress, or all runs of a folder."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET
from typer import Argument

from edgen.cli import complete
from edgen.cli.options import JsonOption
from edgen.cli.output import (
    align_columns,
    format_cost,
    note,
    print_json_line,
    print_line,
    print_value,
    wrap_after_label,
)
from edgen.core.errors import UsageError
from edgen.core.options import option
from edgen.core.text import (
    describe_counts,
    describe_reasons,
    escape_for_terminal,
    format_compact_duration,
    format_dollars,
    format_short,
    quantity,
)

if TYPE_CHECKING:
    from edgen.api.runs import RunFacts, RunTotals
    from edgen.execution.progress import Amount, Tokens
    from edgen.runtime.status import StatusReport


class StatusOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a look at runs."""

    list_: Annotated[bool, option("List runs, even if DIR is itself one.", "--list")] = False
    watch: Annotated[bool, option("Follow the run until it ends.")] = False


def command(
    run: Annotated[
        Path | None,
        Argument(
            metavar="[RUN|DIR]",
            help="A run, or a folder of runs.  [default: outputs]",
            autocompletion=complete.runs,
        ),
    ] = None,
    *,
    options: StatusOptions,
    json: JsonOption = False,
) -> None:
    """Show how a run stands, or list the runs in a folder.

    A folder has a line for each run, the newest first, with its state and the reason of a stop, and totals.
    --watch follows a run until no process works on it, and waits for one that has not begun.

    Example: edgen status outputs/quickstart

    Example: edgen status outputs
    """
    from edgen.api.runs import has_runs
    from edgen.api.status import follow_status, read_status
    from edgen.runtime.status import list_last_messages

    if options.list_ or run is None or has_runs(run):
        if options.watch:
            raise UsageError("--watch follows one run: name its folder, as in `edgen status RUN --watch`.")
        _print_runs(run or Path("outputs"), json=json)
        return
    if options.watch:
        _show_changes(follow_status(run, lambda text: note(f"edgen: {text}")), json=json)
        return
    status = read_status(run)
    lasts = (f"last       {message}" for message in list_last_messages(status))
    print_value(status, [*render_status(status), *lasts], json=json)


def _print_runs(folder: Path, *, json: bool) -> None:
    from edgen.api.runs import add_up_runs, list_runs

    runs = list_runs(folder, divided=True)
    totals = add_up_runs(runs)
    facts = {"folder": str(folder), "runs": [run.as_json() for run in runs], "totals": totals}
    print_value(facts, _render_runs(runs, totals), json=json)
    if not runs and not json:
        note(f"edgen: {folder}: there are no runs in this folder.")


def _show_changes(changes: Iterable[StatusReport], *, json: bool) -> None:
    """Show a JSON object per line, a screen that changes in place, or a line per change."""
    speed = _Speed()
    if json or not sys.stdout.isatty():
        for status in changes:
            if json:
                print_json_line(status)
            else:
                print_line(_render_change(status, speed.describe(status)))
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False) as live:
        for status in changes:
            lines = [*render_status(status)]
            if rate := speed.describe(status):
                lines.append(f"speed      {rate}")
            live.update(Text(escape_for_terminal("\n".join(lines)), overflow="fold"), refresh=True)


def render_status(status: StatusReport) -> Iterator[str]:
    """Yield a line per fact."""
    calls, tokens, part = status.calls, status.tokens, status.range
    piece = f" (scenarios {part.first} to {part.end - 1} of {part.of})" if part else ""
    # Calls of this start, if earlier starts made calls as well.
    now = f" ({calls.now:,} now)" if calls.now is not UNSET and calls.now != calls.made else ""
    yield f"run        {status.run}"
    yield f"state      {status.state}"
    yield f"planned    {status.planned:,}{piece}"
    if status.round:
        yield f"round      {status.round.number} of {status.round.of}"
    yield f"accepted   {status.accepted:,}"
    yield f"rejected   {describe_counts(status.rejected)}"
    for code, clause in (status.reasons or {}).items():
        yield f"           {code}: {clause}"
    yield f"failed     {describe_counts(status.failed)}"
    yield f"pending    {status.pending:,}"
    late = f", {status.timeouts:,} timeouts" if status.timeouts else ""
    yield f"calls      {calls.made:,} made{now}, {calls.replayed:,} replayed, {calls.retried:,} retried{late}"
    if status.retried:
        yield f"retried    {describe_reasons(Counter(status.retried), len(status.retried))}"
    yield f"tokens     {tokens.prompt:,} prompt{_describe_cache_use(tokens)}, {tokens.completion:,} completion"
    yield f"cost       {format_cost(status.cost_usd, calls=calls.made)}"
    for address, server in (status.servers or {}).items():
        yield f"server     {address}: {server.answers:,} answers, {server.failures:,} failures"
    for name, worker in (status.workers or {}).items():
        lost = ", lost" if worker.lost else ""
        yield (
            f"worker     {name}: {worker.answers:,} answers, {worker.failures:,} failures, {worker.ended:,} "
            f"tasks{lost}"
        )
    if status.out:
        yield f"reserved   {_describe_amount(status.out)} at most, for open batches and calls"
    if status.unanswered:
        yield f"unanswered {_describe_amount(status.unanswered)} at most, charged for answers not kept"
    yield from _render_budget(status)
    if status.lost_replies:
        gone = quantity(status.lost_replies, "stored answer")
        yield f"lost       {gone} missing from the ledger: its log was cut or removed"
    yield from _render_batches([status, *status.begun_arms().values()])
    for name, arm in (status.arms or {}).items():
        stand = arm and f"{arm.state}, {arm.accepted:,} of {arm.planned:,} accepted, {arm.pending:,} pending"
        yield f"arm        {name}: {stand or 'not begun'}"
    yield from _render_later_work(status)


def _render_later_work(status: StatusReport) -> Iterator[str]:
    """Yield the progress of work on finished conversations, a line per worker or layer."""
    for one in status.rollouts or ():
        yield f"rollouts   {one.agents}: {one.played:,} of {one.planned:,} played, {one.pending:,} pending"
    for judge in status.judges or ():
        yield (
            f"judge      {judge.judge}: {judge.judged:,} of {judge.planned:,} pairs judged, "
            f"{judge.pending:,} pending"
        )
    for own in status.annotators or ():
        told = f"{own.labelled:,} of {own.planned:,} labelled, {own.pending:,} pending"
        yield f"layer      {own.layer}, {own.annotator}: {told}"
    for name in sorted({*(status.layers or ())} - {own.layer for own in status.annotators or ()}):
        yield f"layer      {name}"
    for writer in status.writers or ():
        told = f"{writer.written:,} of {writer.planned:,} turns written for, {writer.pending:,} pending"
        yield f"candidates {writer.writes}, {writer.writer}: {told}"
    for other in status.asked or ():
        told = f"{other.answered:,} of {other.planned:,} answered, {other.pending:,} pending"
        yield f"asked      {other.asker}, {other.answerer}: {told}"


def _render_budget(status: StatusReport) -> Iterator[str]:
    """Yield the use of the budget that the run shares, a line per cap."""
    budget = status.budget
    if budget is UNSET:
        return
    if budget.problem is not UNSET:
        yield f"budget     {budget.problem}"
    for cap in budget.caps:
        used, left, most = (
            format_dollars(amount) if cap.unit == "usd" else f"{amount:,.0f} tokens"
            for amount in (cap.used, cap.left, cap.most)
        )
        yield (
            f"budget     {cap.cap} {cap.period}: {left} left, {used} of {most} used by all runs "
            f"({budget.file})"
        )


def _render_change(status: StatusReport, speed: str) -> str:
    """Return the status in a line with the time of day."""
    parts = [
        f"{time.strftime('%H:%M:%S')} {status.state}: {status.planned - status.pending:,}/{status.planned:,}",
        f"{status.accepted:,} accepted",
        f"{sum(status.rejected.values()):,} rejected",
        f"{sum(status.failed.values()):,} failed",
        f"{status.calls.made:,} calls",
    ]
    if status.cost_usd is not None:
        parts.append(format_dollars(status.cost_usd))
    batches = [batch for run in (status, *status.begun_arms().values()) for batch in run.batches or ()]
    if batches:
        parts.append(f"{sum(batch.requests for batch in batches):,} requests in {len(batches)} open batches")
    return " · ".join([*parts, speed] if speed else parts)


class _Speed:
    """The speed since the first look, in conversations a second, and the remaining time at that speed."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def describe(self, status: StatusReport) -> str:
        now, ended = time.monotonic(), status.planned - status.pending
        if self._first is None:
            self._first = now, ended
        passed, made = now - self._first[0], ended - self._first[1]
        if made <= 0 or status.state != "running":
            return ""
        return f"{made / passed:.1f}/s, {format_compact_duration(status.pending * passed / made)} left"


def _describe_cache_use(tokens: Tokens) -> str:
    """Return the part of the prompts that used a service's cache, "" without one."""
    kinds = {"read from": tokens.cache_read, "written to": tokens.cache_write}
    said = " and ".join(f"{count:,} {what}" for what, count in kinds.items() if count)
    return f" ({said} the prompt cache)" if said else ""


def _describe_amount(amount: Amount) -> str:
    money = f", {format_cost(amount.cost_usd)}" if amount.cost_usd else ""
    return f"{amount.tokens:,} tokens{money}"


def _render_batches(runs: list[StatusReport]) -> Iterator[str]:
    """Yield the sent batches of a run and its arms, in a line."""
    out = [batch for run in runs for batch in run.batches or ()]
    if out:
        sent = min((batch.sent_at for batch in out if batch.sent_at is not None), default=None)
        requests = sum(batch.requests for batch in out)
        yield (
            f"batches    {len(out)} open: {requests:,} requests, "
            f"{'not sent' if sent is None else _format_sent_time(sent)}"
        )


def _format_sent_time(moment: str) -> str:
    local = datetime.fromisoformat(moment).astimezone()
    today = local.date() == datetime.now().astimezone().date()
    return f"sent {local:%H:%M}" if today else f"sent {local:%Y-%m-%d %H:%M}"


# -- all runs of a folder

_REASON_LINES = 4  # lines of a reason below a row, at most
_ROW_WIDTH = 78  # columns of a line below a row, without its indentation of two
_RUN_COLUMNS = ("run", "state", "accepted", "calls", "tokens", "cost", "age", "size")


def _render_runs(runs: Sequence[RunFacts], totals: RunTotals) -> Iterator[str]:
    """Yield the table. Below a row: the run's problem, the process at work, or why it stopped."""
    if not runs:
        return
    first, *rest, last = align_columns(
        [_RUN_COLUMNS, *map(_list_cells, runs), _list_total_cells(totals)], left=2
    )
    yield first
    for line, run in zip(rest, runs, strict=True):
        yield line
        yield from (f"  {said}" for said in _describe_run(run))
    yield last


def _describe_run(run: RunFacts) -> Iterator[str]:
    if run.problem:
        yield run.problem
    if run.work is not None:
        speed = f", {run.work.calls_per_minute:,.0f} calls a minute" if run.work.calls_per_minute else ""
        yield f"running    {run.work.process} for {format_compact_duration(run.work.seconds)}{speed}"
    if run.status is not None and (why := run.status.stopped):
        lines = wrap_after_label("stopped    ", f"{why.reason}: {why.detail}", _ROW_WIDTH - len(" …"))
        if len(lines) > _REASON_LINES:  # `edgen status RUN` has the whole
            lines[_REASON_LINES - 1 :] = [f"{lines[_REASON_LINES - 1]} …"]
        yield from lines


def _list_cells(run: RunFacts) -> tuple[str, ...]:
    old = run.age_seconds >= 2 * 86_400
    age = f"{run.age_seconds // 86_400:.0f}d" if old else format_compact_duration(run.age_seconds)
    size = f"{format_short(run.bytes)}B"
    if (status := run.status) is None:
        return run.name, "unreadable", "-", "-", "-", "-", age, size
    calls, tokens = status.calls.made, format_short(status.tokens.prompt + status.tokens.completion)
    accepted, cost = f"{status.accepted:,}/{status.planned:,}", _format_run_cost(status.cost_usd, calls)
    return run.name, status.state, accepted, f"{calls:,}", tokens, cost, age, size


def _list_total_cells(totals: RunTotals) -> tuple[str, ...]:
    states = f"{totals.running} running" if totals.running else ""
    accepted, size = f"{totals.accepted:,}/{totals.planned:,}", f"{format_short(totals.bytes)}B"
    tokens, cost = format_short(totals.tokens), _format_run_cost(totals.cost_usd, totals.calls)
    return f"total {totals.runs}", states, accepted, f"{totals.calls:,}", tokens, cost, "", size


def _format_run_cost(usd: float | None, calls: int) -> str:
    if usd is None:
        return "no price" if calls else "-"
    return format_dollars(usd)
