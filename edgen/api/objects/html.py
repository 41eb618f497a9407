"""Values as a notebook shows them. Every text is escaped, since a model may have written it.

>>> escape("<script>")
'&lt;script&gt;'
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from edgen.core.text import describe_counts, format_dollars, format_interval
from edgen.core.values import Scenario, Turn
from edgen.runtime.status import StatusReport

if TYPE_CHECKING:
    from edgen.evaluation.comparison.result import ComparisonResult, Metric

_CELL = 'style="text-align:left"'


def escape(value: object) -> str:
    """Return a value's text as inert HTML."""
    return html.escape(str(value), quote=True)


def render_table(head: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """Return a table; its cells are texts, not HTML."""
    heading = f"<caption {_CELL}><b>{escape(title)}</b></caption>" if title else ""
    cells = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in head)
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    lines = ("<tr>" + "".join(f"<td {_CELL}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{heading}{top}<tbody>{''.join(lines)}</tbody></table>"


def render_status(status: StatusReport) -> str:
    """Return the status of a run, and of its arms."""
    facts = [(status, status.run), *((arm, name) for name, arm in status.begun_arms().items())]
    rows = [
        (
            name,
            one.state,
            one.planned,
            one.accepted,
            describe_counts(one.rejected),
            describe_counts(one.failed),
            one.pending,
            one.calls.made,
            "unknown" if one.cost_usd is None else format_dollars(one.cost_usd),
        )
        for one, name in facts
    ]
    head = ("run", "state", "planned", "accepted", "rejected", "failed", "pending", "calls", "cost")
    return render_table(head, rows)


def render_conversation(
    name: str, scenario: Scenario, turns: Sequence[Turn], probability: float | None
) -> str:
    """Return a conversation below its scenario."""
    values = [(key, value) for key, value in scenario.as_row().items() if value is not None]
    likely = [] if probability is None else [("probability", f"{probability:g}")]
    spoken = "".join(
        f'<p style="margin:0.3em 0;white-space:pre-wrap"><b>{escape(turn.role)}</b> {escape(turn.text)}</p>'
        for turn in turns
    )
    return render_table((), [*values, *likely], name) + f"<div>{spoken}</div>"


def render_comparison(comparison: ComparisonResult) -> str:
    """Return every metric in a row: each arm with its 95% interval, and * if it differs from the baseline."""
    labels = [arm.label for arm in comparison.arms]
    rows = [
        (metric.title, *(_describe_arm(metric, label) for label in labels)) for metric in comparison.metrics
    ]
    caveats = "".join(f"<li>{escape(caveat)}</li>" for caveat in comparison.caveats)
    return render_table(("metric", *labels), rows, comparison.name) + (
        f"<ul>{caveats}</ul>" if caveats else ""
    )


def _describe_arm(metric: Metric, label: str) -> str:
    """Describe an arm's estimate with its interval, and * if a difference is proven."""

    def show(value: float) -> str:
        return f"{value:.1%}" if metric.kind == "share" else f"{value:.4g}"

    estimate = metric.arms.get(label)
    if estimate is None:
        return ""
    text = "-"
    if estimate.value is not None:
        text = show(estimate.value) + format_interval(estimate.low, estimate.high, show)
    own = (one.p_holm for one in metric.differences if one.arm == label)
    return text + (" *" if any(p is not None and p < 0.05 for p in own) else "")
