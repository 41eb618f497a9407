"""Values as a notebook shows them. Every text is escaped: what a model wrote is a stranger's.

>>> escape("<script>")
'&lt;script&gt;'
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from edgen.api.status import Status
from edgen.api.supervision.snapshot import Snapshot, describe_progress
from edgen.core.figures import describe_counts
from edgen.core.values import Scenario, Turn

if TYPE_CHECKING:
    from edgen.evaluation.comparison.result import Comparison, Metric
    from edgen.stats.ratios import RatioEstimate

_CELL = 'style="text-align:left"'


def escape(value: object) -> str:
    """A value's text as HTML that shows it, and does nothing."""
    return html.escape(str(value), quote=True)


def table_html(head: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """A table; its cells are texts, not HTML."""
    heading = f"<caption {_CELL}><b>{escape(title)}</b></caption>" if title else ""
    cells = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in head)
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    lines = ("<tr>" + "".join(f"<td {_CELL}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{heading}{top}<tbody>{''.join(lines)}</tbody></table>"


def status_html(status: Status) -> str:
    """How a run stands, and its arms."""
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
            "unknown" if one.cost_usd is None else f"${one.cost_usd:.4f}",
        )
        for one, name in facts
    ]
    head = ("run", "state", "planned", "accepted", "rejected", "failed", "pending", "calls", "cost")
    return table_html(head, rows)


def conversation_html(name: str, scenario: Scenario, turns: Sequence[Turn], probability: float | None) -> str:
    """A conversation below its scenario."""
    values = [(key, value) for key, value in scenario.as_row().items() if value is not None]
    likely = [] if probability is None else [("probability", f"{probability:g}")]
    spoken = "".join(
        f'<p style="margin:0.3em 0;white-space:pre-wrap"><b>{escape(turn.role)}</b> {escape(turn.text)}</p>'
        for turn in turns
    )
    return table_html((), [*values, *likely], name) + f"<div>{spoken}</div>"


def comparison_html(comparison: Comparison) -> str:
    """Every metric in a row: each arm with its 95% interval, and * where it differs from the baseline."""
    labels = [arm.label for arm in comparison.arms]
    rows = [
        (metric.title, *(_describe_arm(metric, label) for label in labels)) for metric in comparison.metrics
    ]
    caveats = "".join(f"<li>{escape(caveat)}</li>" for caveat in comparison.caveats)
    return table_html(("metric", *labels), rows, comparison.name) + (f"<ul>{caveats}</ul>" if caveats else "")


def progress_html(snapshot: Snapshot, notes: Sequence[str]) -> str:
    """A bar with its figures, and what was remarked."""
    bar = f'<progress value="{snapshot.ended}" max="{max(snapshot.planned, 1)}"></progress>'
    count = f"{snapshot.ended}/{snapshot.planned}"
    remarks = "".join(f"<br>{escape(note)}" for note in notes)
    figures = escape(describe_progress(snapshot))
    return f"<div><b>{escape(snapshot.name)}</b> {bar} {count} <small>{figures}</small>{remarks}</div>"


def _describe_arm(metric: Metric, label: str) -> str:
    estimate = metric.arms.get(label)
    if estimate is None:
        return ""
    proven = any(
        one.arm == label and one.p_holm is not None and one.p_holm < 0.05 for one in metric.differences
    )
    return _describe_estimate(estimate, metric.kind) + (" *" if proven else "")


def _describe_estimate(estimate: RatioEstimate, kind: str) -> str:
    def show(value: Any) -> str:
        return f"{value:.1%}" if kind == "share" else f"{value:.4g}"

    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return show(estimate.value)
    return f"{show(estimate.value)} ({show(estimate.low)} to {show(estimate.high)})"
