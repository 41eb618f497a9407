"""Pictures of arms side by side: forest plots of paired differences, and the table of all metrics."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.comparison.model import ArmValue, Comparison, Difference, Metric
from edgen.report import charts
from edgen.report.charts import Axis, Span
from edgen.report.model import Picture, Table
from edgen.report.text import dollars, number, percent, points, signed

_SIGNIFICANT = 0.05
_MOST = 24  # rows of a forest


def forests(comparison: Comparison) -> Iterator[Picture]:
    """Two pictures an arm: shares in percentage points, everything else in per cent of the baseline."""
    others = [arm.label for arm in comparison.arms if arm.label != comparison.baseline]
    for place, arm in enumerate(others):
        shares, numbers = [], []
        for metric in comparison.metrics:
            found = next((d for d in metric.differences if d.arm == arm), None)
            if found is None or found.value is None:
                continue
            if metric.kind == "share":
                shares.append((metric, found, 100.0))
            elif base := (
                metric.arms[comparison.baseline].value if comparison.baseline in metric.arms else None
            ):
                numbers.append((metric, found, 100.0 / abs(base)))
        for kind, rows, unit in (
            ("shares", shares, "percentage points"),
            ("numbers", numbers, "% of the baseline"),
        ):
            if rows:
                yield _forest(f"forest-{place}-{kind}", arm, comparison.baseline, rows, unit)


def _forest(
    name: str, arm: str, baseline: str, found: list[tuple[Metric, Difference, float]], unit: str
) -> Picture:
    ordered = sorted(found, key=lambda row: row[1].p_holm if row[1].p_holm is not None else 1.0)[:_MOST]
    kept = [row for row in found if row in ordered]
    rows = []
    for metric, difference, factor in kept:
        sure = _sure(difference)
        value, low, high = (
            None if v is None else v * factor for v in (difference.value, difference.low, difference.high)
        )
        said = signed(value, 1)
        if low is not None and high is not None:
            said += f" ({signed(low, 1)} to {signed(high, 1)})"
        rows.append(
            Span(metric.title, value, low, high, said, "vermillion" if sure else "blue", hollow=not sure)
        )
    sure_ones = [row.label for row in rows if not row.hollow]
    alternative = f"Forest plot of {arm} minus {baseline}, in {unit}. {'; '.join(f'{r.label}: {r.said}' for r in rows)}."
    return Picture(
        name=name,
        title=f"{arm} minus {baseline}, {unit}",
        svg=charts.spans(name, alternative, rows, Axis(unit, signed), 0.0),
        caption="Dots: paired differences with 95% intervals; the dashed line is no difference. Filled: still there when all "
        "metrics are tested together (Holm, 5%). "
        + (f"Look at {', '.join(sure_ones[:6])}." if sure_ones else "None is, here.")
        + (f" The {len(rows)} clearest of {len(found)}." if len(found) > len(rows) else ""),
        label=alternative,
        tables=(
            Table(
                head=("metric", f"difference, {unit} (95%)", "p", "p (Holm)", "scenarios", "changed"),
                rows=tuple(
                    (metric.title, row.said, number(d.p), number(d.p_holm), number(d.n), number(d.changed))
                    for (metric, d, _), row in zip(kept, rows, strict=True)
                ),
            ),
        ),
    )


def _sure(difference: Difference) -> bool:
    return difference.p_holm is not None and difference.p_holm < _SIGNIFICANT


def side_by_side(comparison: Comparison) -> Table:
    """Every metric: its value in each arm, and the differences, those that hold marked with a star."""
    others = [arm.label for arm in comparison.arms if arm.label != comparison.baseline]
    head = [
        "metric",
        *(arm.label for arm in comparison.arms),
        *(f"{arm} − {comparison.baseline}" for arm in others),
    ]
    rows = []
    for metric in comparison.metrics:
        row = [metric.title]
        row += [_value(metric.kind, metric.arms.get(arm.label)) for arm in comparison.arms]
        by_arm = {found.arm: found for found in metric.differences}
        row += [_difference(metric.kind, by_arm.get(arm)) for arm in others]
        rows.append(tuple(row))
    return Table(head=tuple(head), rows=tuple(rows))


def _value(kind: str, found: ArmValue | None) -> str:
    value = None if found is None else found.value
    if kind == "share":
        return percent(value)
    return dollars(value) if kind == "usd" else number(value)


def _difference(kind: str, found: Difference | None) -> str:
    if found is None or found.value is None:
        return "–"
    star = " *" if _sure(found) else ""
    if kind == "share":
        ends = "" if found.low is None else f" ({points(found.low)} to {points(found.high)})"
        return f"{points(found.value)}{ends}{star}"
    worded = dollars if kind == "usd" else signed
    ends = "" if found.low is None else f" ({worded(found.low)} to {worded(found.high)})"
    return f"{worded(found.value)}{ends}{star}"
