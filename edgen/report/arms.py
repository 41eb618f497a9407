"""Pictures of arms side by side: forest plots of differences, and the table of all metrics."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.comparison.model import ArmFacts, ArmValue, Comparison, Difference, Metric
from edgen.quality.significance import SIGNIFICANT
from edgen.report import charts
from edgen.report.charts import Axis, Span
from edgen.report.model import Picture, Table
from edgen.report.text import NONE, counted, dollars, listed, number, percent, points, signed

_MOST = 24  # rows of a forest


def forests(comparison: Comparison) -> Iterator[Picture]:
    """Two pictures an arm: shares in percentage points, everything else in per cent of the baseline."""
    for place, facts in enumerate(_others(comparison)):
        arm = facts.label
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
                yield _forest(f"forest-{place}-{kind}", facts, comparison.baseline, rows, unit)


def _forest(
    name: str, facts: ArmFacts, baseline: str, found: list[tuple[Metric, Difference, float]], unit: str
) -> Picture:
    arm = facts.label
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
        caption=f"Dots: {'paired differences' if facts.paired else 'differences of two samples, not paired,'} with 95% "
        "intervals; the dashed line is no difference. Filled: still there when all metrics are tested together (Holm, 5%). "
        + (f"Look at {', '.join(sure_ones[:6])}." if sure_ones else "None is, here.")
        + (f" The {len(rows)} clearest of {len(found)}." if len(found) > len(rows) else ""),
        label=alternative,
        tables=(_numbers(kept, rows, unit, paired=facts.paired),),
    )


def _numbers(
    kept: list[tuple[Metric, Difference, float]], rows: list[Span], unit: str, *, paired: bool
) -> Table:
    """What a forest shows, in figures; how many scenarios changed can be said of paired ones only."""
    head = ("metric", f"difference, {unit} (95%)", "p", "p (Holm)", "scenarios")
    cells = [
        (metric.title, row.said, number(d.p), number(d.p_holm), number(d.n))
        for (metric, d, _), row in zip(kept, rows, strict=True)
    ]
    if not paired:
        return Table(head=head, rows=tuple(cells))
    changed = [number(d.changed) for _, d, _ in kept]
    return Table(
        head=(*head, "changed"), rows=tuple((*row, n) for row, n in zip(cells, changed, strict=True))
    )


def lead(comparison: Comparison | None) -> str:
    """Whether the arms answer the same scenarios, in a sentence or two."""
    if comparison is None:
        return "Every arm is the same job under another setting."
    others = [arm.label for arm in _others(comparison) if not arm.paired]
    if not others:
        return "Every arm answers the same scenarios, so each is compared with itself under another setting."
    own = "a space of its own weights" if len(others) == 1 else "spaces of their own weights"
    rest = len(others) < len(comparison.arms) - 1
    return (
        f"{listed(others)} {'draws' if len(others) == 1 else 'draw'} other scenarios from {own}: compared as "
        f"samples, not scenario by scenario.{' The other arms answer the same scenarios.' if rest else ''}"
    )


def compared(comparison: Comparison) -> str:
    """What is compared with what."""
    baseline, others = comparison.baseline, _others(comparison)
    said = []
    if any(arm.paired for arm in others):
        said.append(f"{counted(comparison.shared, 'scenario')} compared one by one with {baseline}'s")
    sizes = {arm.label: arm.scenarios for arm in comparison.arms}
    said += [
        f"{counted(arm.scenarios, 'scenario')} of {arm.label} against {number(sizes[baseline])} others of {baseline}"
        for arm in others
        if not arm.paired
    ]
    return "; ".join(said)


def _others(comparison: Comparison) -> list[ArmFacts]:
    return [arm for arm in comparison.arms if arm.label != comparison.baseline]


def _sure(difference: Difference) -> bool:
    return difference.p_holm is not None and difference.p_holm < SIGNIFICANT


def side_by_side(comparison: Comparison) -> Table:
    """Every metric: its value in each arm and the differences, with 95% intervals, those that hold marked with a star."""
    others = [arm.label for arm in _others(comparison)]
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
    if found is None:
        return NONE
    worded = {"share": percent, "usd": dollars}.get(kind, number)
    if found.low is None or found.high is None:
        return worded(found.value)
    ends = [worded(end).removesuffix("%") for end in (found.low, found.high)]
    return f"{worded(found.value)} ({' to '.join(ends)})"


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
