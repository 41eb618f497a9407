"""Pictures of a run's course: outcomes of the plan, reasons of rejections, use of calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgen.core.text import format_dollars, format_duration, number, percent, quantity, readable_name
from edgen.evaluation.drawings import (
    Axis,
    Bar,
    Bars,
    HistogramBars,
    Histograms,
    Picture,
    Stack,
    Stacks,
    Table,
    describe_rows,
    explain_histograms,
    label_with_arm,
    series_colour,
)
from edgen.report.model import ArmReport

_COLOURS = {"accepted": "green", "rejected": "vermillion", "failed": "purple", "pending": "grey"}
_MOST_BARS = 20


def draw_outcomes(arms: Sequence[ArmReport]) -> Picture:
    """Return planned = accepted + rejected + failed + pending, one bar per arm."""
    rows, cells = [], []
    for arm in arms:
        planned, counts = arm.status.planned, arm.outcomes
        share = percent(counts["accepted"] / planned if planned else None)
        pieces = [(_COLOURS[status], count) for status, count in counts.items()]
        rows.append(Stack(arm.name, f"{share} accepted", pieces))
        cells.append((arm.name, number(planned), *map(number, counts.values())))
    said = "; ".join(f"{arm.name}: {describe_equation(arm)}" for arm in arms)
    equation = (
        "Planned = accepted + rejected + failed + pending."
        if len(arms) > 1
        else f"{describe_equation(arms[0])}."
    )
    return Picture(
        name="outcomes",
        title="Outcome of all planned conversations",
        chart=Stacks(rows),
        caption=f"{equation} Look for anything that is not accepted."
        + (" Pending conversations may still come." if any(arm.outcomes["pending"] for arm in arms) else ""),
        alternative=f"Stacked bars. {said}.",
        tables=(Table(("", "planned", *_COLOURS), tuple(cells)),),
        legend=tuple(
            (colour, status)
            for status, colour in _COLOURS.items()
            if any(arm.outcomes[status] for arm in arms)
        ),
    )


def describe_equation(arm: ArmReport) -> str:
    """Return `200 planned = 190 accepted + 8 rejected + 0 failed + 2 pending`."""
    parts = " + ".join(f"{number(count)} {status}" for status, count in arm.outcomes.items())
    return f"{number(arm.status.planned)} planned = {parts}"


def draw_rejections(arms: Sequence[ArmReport]) -> Iterator[Picture]:
    """Yield the reasons of rejections and failures."""
    found = sorted(((arm, reason) for arm in arms for reason in arm.reasons), key=lambda row: -row[1].count)
    if not found:
        return
    rows = [
        Bar(
            label_with_arm(readable_name(reason.reason), arm.label),
            reason.count / arm.status.planned,
            f"{number(reason.count)} ({percent(reason.count / arm.status.planned)})",
            _COLOURS[reason.status],
        )
        for arm, reason in found[:_MOST_BARS]
    ]
    cells = ((reason.reason, reason.status, arm.name, number(reason.count)) for arm, reason in found)
    title = "Why conversations were not accepted"
    yield Picture(
        name="reasons",
        title=title,
        chart=Bars(rows),
        caption="The full width is the planned number. Look for one reason that stands out: a model that "
        "refuses, a template that asks for too much, a token limit that cuts off."
        + (f" The {_MOST_BARS} most frequent of {len(found)}." if len(found) > _MOST_BARS else ""),
        alternative=describe_rows("Bars", title, rows),
        tables=(Table(("reason", "status", "arm", "count"), tuple(cells)),),
        legend=tuple(
            (_COLOURS[status], status) for status in dict.fromkeys(reason.status for _, reason in found)
        ),
    )


def draw_tokens(arms: Sequence[ArmReport]) -> Iterator[Picture]:
    """Yield the tokens of prompts and completions."""
    if not any(arm.tokens for arm in arms):
        return
    rows, cells = [], []
    for arm in arms:
        both = (arm.status.counts.prompt_tokens, arm.status.counts.completion_tokens)
        for words, count, colour in zip(("prompts", "completions"), both, ("sky", "blue"), strict=True):
            rows.append(Bar(label_with_arm(words, arm.label), count, number(count), colour))
        each = arm.tokens / arm.status.accepted if arm.status.accepted else None
        cells.append((arm.name, *map(number, both), number(each)))
    yield Picture(
        name="tokens",
        title="Tokens",
        chart=Bars(rows, None),
        caption="As the service counted them, over all sessions. Look for prompts that are much longer than "
        "their completions.",
        alternative=describe_rows("Bars", "Tokens", rows),
        tables=(Table(("", "prompts", "completions", "a conversation accepted"), tuple(cells)),),
    )


def draw_latencies(arms: Sequence[ArmReport]) -> Iterator[Picture]:
    """Yield the latencies of answers, on a logarithmic axis."""
    rows = [
        HistogramBars(arm.name, arm.latency, series_colour(place))
        for place, arm in enumerate(arms)
        if arm.latency.n
    ]
    if not rows:
        return
    said = " ".join(
        f"{row.label}: median {_format_time(row.distribution.median)}, 95% within {_format_time(row.distribution.p95)}."
        for row in rows
    )
    keys = ("p5", "p25", "median", "p75", "p95", "max")
    cells = (
        (
            row.label,
            number(row.distribution.n),
            *(_format_time(getattr(row.distribution, key)) for key in keys),
        )
        for row in rows
    )
    yield Picture(
        name="latency",
        title="How long an answer took",
        chart=Histograms(rows, Axis("time of an answer", _format_tick, log=True)),
        caption="Every stored answer, also to earlier forms of the job: the attempt that succeeded, without "
        "waits and retries. The axis is logarithmic. Look for a second peak: "
        f"the service stalls or queues. {explain_histograms(rows)}",
        alternative=f"Latency of answers. {said}",
        tables=(Table(("", "answers", "5%", "25%", "median", "75%", "95%", "longest"), tuple(cells)),),
    )


def _format_time(logarithm: float | None) -> str:
    return format_duration(None if logarithm is None else 10**logarithm)


def _format_tick(logarithm: float) -> str:
    value = 10**logarithm
    if abs(logarithm - round(logarithm)) < 1e-9:
        for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if value >= size * 0.999:
                return f"{value / size:,.0f} {unit}"
    return format_duration(value)


def tabulate_costs(arms: Sequence[ArmReport]) -> Table:
    """Return the use of each arm's answers."""
    rows = (
        (
            arm.name, number(arm.status.counts.made), number(arm.status.counts.retried), number(arm.tokens),
            "no price" if arm.status.counts.cost_usd is None else format_dollars(arm.status.counts.cost_usd),
            describe_sessions(arm),
        )
        for arm in arms
    )  # fmt: skip
    return Table(("", "answers", "retries", "tokens", "cost", "time"), tuple(rows))


def describe_sessions(arm: ArmReport) -> str:
    """Describe the duration of the sessions in words."""
    known = [max(0.0, each.ended_at - each.started_at) for each in arm.sessions if each.ended_at is not None]
    open_ends = len(arm.sessions) - len(known)
    words = (
        f"{format_duration(sum(known))} in {quantity(len(arm.sessions), 'session')}" if known else "unknown"
    )
    return words + (f", {quantity(open_ends, 'session')} without a noted end" if open_ends and known else "")
