"""Pictures of how the run went: what came of what was planned, why it was refused, what it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgen.quality.results import Distribution
from edgen.report import charts
from edgen.report.charts import Axis, Bar, Shape
from edgen.report.model import Part, Picture, Table
from edgen.report.pictures import series
from edgen.report.text import counted, named, number, percent, seconds

STATUSES = (("accepted", "green"), ("rejected", "vermillion"), ("failed", "purple"), ("pending", "grey"))
_MOST_BARS = 20


def counts(part: Part) -> dict[str, int]:
    """The conservation equation's right side."""
    return {
        "accepted": part.accepted,
        "rejected": sum(part.rejected.values()),
        "failed": sum(part.failed.values()),
        "pending": part.pending,
    }


def outcomes(parts: Sequence[Part], name: str) -> Picture:
    """planned = accepted + rejected + failed + pending, a bar an arm."""
    rows, cells, said = [], [], []
    for part in parts:
        each = counts(part)
        label = part.label or name
        rows.append(
            (
                label,
                f"{percent(each['accepted'] / part.planned if part.planned else None)} accepted",
                [charts.Piece(colour, each[status]) for status, colour in STATUSES],
            )
        )
        cells.append((label, number(part.planned), *(number(count) for count in each.values())))
        said.append(f"{label}: {number(part.planned)} planned = {equation(part)}")
    alternative = f"Stacked bars. {'; '.join(said)}."
    return Picture(
        name="outcomes",
        title="What became of everything planned",
        svg=charts.stacks("outcomes", alternative, rows),
        caption="Planned = accepted + rejected + failed + pending. Look for anything that is not accepted; what is "
        "pending was never settled and may still come.",
        label=alternative,
        tables=(Table(head=("", "planned", *(status for status, _ in STATUSES)), rows=tuple(cells)),),
        legend=tuple(
            (colour, status) for status, colour in STATUSES if any(counts(p)[status] for p in parts)
        ),
    )


def equation(part: Part) -> str:
    """`190 accepted + 8 rejected + 0 failed + 2 pending`."""
    return " + ".join(f"{number(count)} {status}" for status, count in counts(part).items())


def refusals(parts: Sequence[Part], name: str) -> Iterator[Picture]:
    """Why answers were rejected and calls failed."""
    found = [
        (part.label, reason.status, reason.reason, reason.count, part.planned)
        for part in parts
        for reason in part.reasons
    ]
    if not found:
        return
    found.sort(key=lambda row: -row[3])
    colours = dict(STATUSES)
    rows = [
        Bar(
            f"{named(reason)}{f' · {label}' if label else ''}",
            count,
            f"{number(count)} ({percent(count / planned if planned else None)})",
            colours[status],
        )
        for label, status, reason, count, planned in found[:_MOST_BARS]
    ]
    alternative = f"Bars of reasons. {'; '.join(f'{row.label}: {row.said}' for row in rows)}."
    yield Picture(
        name="reasons",
        title="Why it was not accepted",
        svg=charts.bars("reasons", alternative, rows),
        caption="Shares are of what was planned. Look for one reason that stands out: a model that refuses, a template that "
        "asks for too much, a token limit that cuts off."
        + (f" The {_MOST_BARS} most frequent of {len(found)}." if len(found) > _MOST_BARS else ""),
        label=alternative,
        tables=(
            Table(
                head=("reason", "status", "arm", "count"),
                rows=tuple(
                    (reason, status, label or name, number(count))
                    for label, status, reason, count, _ in found
                ),
            ),
        ),
        legend=tuple((colours[s], s) for s in dict.fromkeys(row[1] for row in found)),
    )


def tokens(parts: Sequence[Part], name: str) -> Iterator[Picture]:
    """Tokens of prompts and completions."""
    if not any(part.prompt_tokens + part.completion_tokens for part in parts):
        return
    rows, cells = [], []
    for part in parts:
        label = f" · {part.label}" if part.label else ""
        rows.append(Bar(f"prompts{label}", part.prompt_tokens, number(part.prompt_tokens), "sky"))
        rows.append(
            Bar(f"completions{label}", part.completion_tokens, number(part.completion_tokens), "blue")
        )
        each = (part.prompt_tokens + part.completion_tokens) / part.accepted if part.accepted else None
        cells.append(
            (part.label or name, number(part.prompt_tokens), number(part.completion_tokens), number(each))
        )
    alternative = f"Bars of tokens. {'; '.join(f'{row.label}: {row.said}' for row in rows)}."
    yield Picture(
        name="tokens",
        title="Tokens",
        svg=charts.bars("tokens", alternative, rows),
        caption="As the service counted them, over all sessions. Look for prompts that outweigh what they bring back.",
        label=alternative,
        tables=(Table(head=("", "prompts", "completions", "a conversation accepted"), rows=tuple(cells)),),
    )


def latencies(parts: Sequence[Part], name: str) -> Iterator[Picture]:
    """How long answers took, on a logarithmic axis."""
    rows = [
        Shape(part.label or name, part.latency, series(place))
        for place, part in enumerate(parts)
        if part.latency.n
    ]
    if not rows:
        return
    alternative = "Latency of answers. " + " ".join(
        f"{row.label}: median {_time(row.distribution.median)}, 95% within {_time(row.distribution.p95)}."
        for row in rows
    )
    axis = Axis("time of an answer", _tick, log=True)
    yield Picture(
        name="latency",
        title="How long an answer took",
        svg=charts.distributions("latency", alternative, rows, axis),
        caption="Of every stored answer, those to earlier forms of the job too: the attempt that succeeded, waits and retries "
        "left out; the axis is logarithmic. Look for a second hump: "
        "a service that stalls, or one that queues. " + charts.read(rows),
        label=alternative,
        tables=(
            Table(
                head=("", "answers", "5%", "25%", "median", "75%", "95%", "longest"),
                rows=tuple(_cells(row.label, row.distribution) for row in rows),
            ),
        ),
    )


def _cells(label: str, found: Distribution) -> tuple[str, ...]:
    values = (found.p5, found.p25, found.median, found.p75, found.p95, found.max)
    return (label, number(found.n), *(_time(value) for value in values))


def _time(logarithm: float | None) -> str:
    return seconds(None if logarithm is None else 10**logarithm)


def _tick(logarithm: float) -> str:
    value = 10**logarithm
    if abs(logarithm - round(logarithm)) < 1e-9:
        for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if value >= size * 0.999:
                return f"{value / size:,.0f} {unit}"
    return seconds(value)


def visits(part: Part) -> str:
    """How long the sessions worked, in words."""
    known = [visit.ended - visit.started for visit in part.visits if visit.ended is not None]
    open_ends = len(part.visits) - len(known)
    words = f"{seconds(sum(known))} in {counted(len(part.visits), 'session')}" if known else "unknown"
    return words + (f", {counted(open_ends, 'session')} without a noted end" if open_ends and known else "")
