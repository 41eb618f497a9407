"""Arms side by side: forest plots of differences, and the table of all metrics."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.core.text import NONE, dollars, join_list, number, percent, points, quantity, signed_number
from edgen.evaluation.comparison.result import ArmFacts, Comparison, Difference, Metric
from edgen.evaluation.figures import Axis, Interval, Intervals, Picture, Table, describe_rows
from edgen.stats.ratios import RatioEstimate
from edgen.stats.significance import SIGNIFICANT

_MOST = 24  # rows of a forest
_Row = tuple[Metric, Difference, Interval]


def forests(comparison: Comparison) -> Iterator[Picture]:
    """Two pictures an arm: shares in percentage points, everything else in per cent of the baseline."""
    for place, arm in enumerate(_others(comparison)):
        shares, numbers = [], []
        for metric in comparison.metrics:
            found = next((d for d in metric.differences if d.arm == arm.label), None)
            if found is None or found.value is None:
                continue
            base = metric.arms[comparison.baseline].value if comparison.baseline in metric.arms else None
            if metric.kind == "share":
                shares.append((metric, found, _interval(metric, found, 100.0)))
            elif base:
                numbers.append((metric, found, _interval(metric, found, 100.0 / abs(base))))
        for kind, rows, unit in (
            ("shares", shares, "percentage points"), ("numbers", numbers, "% of the baseline"),
        ):  # fmt: skip
            if rows:
                yield _forest(f"forest-{place}-{kind}", arm, comparison.baseline, rows, unit)


def _interval(metric: Metric, difference: Difference, factor: float) -> Interval:
    sure = _sure(difference)
    value, low, high = (
        None if v is None else v * factor for v in (difference.value, difference.low, difference.high)
    )
    said = signed_number(value, 1)
    if low is not None and high is not None:
        said += f" ({signed_number(low, 1)} to {signed_number(high, 1)})"
    return Interval(metric.title, value, low, high, said, "vermillion" if sure else "blue", hollow=not sure)


def _forest(name: str, arm: ArmFacts, baseline: str, found: list[_Row], unit: str) -> Picture:
    clearest = sorted(found, key=lambda row: row[1].p_holm if row[1].p_holm is not None else 1.0)[:_MOST]
    rows = [row for row in found if row in clearest]
    intervals = [interval for _, _, interval in rows]
    sure = [interval.label for interval in intervals if not interval.hollow]
    title = f"{arm.label} minus {baseline}, {unit}"
    return Picture(
        name=name,
        title=title,
        chart=Intervals(intervals, Axis(unit, signed_number), 0.0),
        caption=f"Dots: {'paired differences' if arm.paired else 'differences of two samples, not paired,'} with 95% "
        "intervals; the dashed line is no difference. Filled: still there when all metrics are tested together (Holm, 5%). "
        + (f"Look at {', '.join(sure[:6])}." if sure else "None is, here.")
        + (f" The {len(rows)} clearest of {len(found)}." if len(found) > len(rows) else ""),
        alternative=describe_rows("Forest plot", title, intervals),
        tables=(_numbers(rows, unit, paired=arm.paired),),
    )


def _numbers(rows: list[_Row], unit: str, *, paired: bool) -> Table:
    """What a forest shows, in figures; how many scenarios changed is known of paired ones only."""
    head = ("metric", f"difference, {unit} (95%)", "p", "p (Holm)", "scenarios", *["changed"] * paired)
    cells = (
        (
            metric.title, interval.said, number(d.p), number(d.p_holm), number(d.n), *[number(d.changed)] * paired
        )
        for metric, d, interval in rows
    )  # fmt: skip
    return Table(head, tuple(cells))


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
        f"{join_list(others)} {'draws' if len(others) == 1 else 'draw'} other scenarios from {own}: compared as "
        f"samples, not scenario by scenario.{' The other arms answer the same scenarios.' if rest else ''}"
    )


def describe_comparison(comparison: Comparison) -> str:
    """What is compared with what."""
    baseline, others = comparison.baseline, _others(comparison)
    said = []
    if any(arm.paired for arm in others):
        said.append(f"{quantity(comparison.shared, 'scenario')} compared one by one with {baseline}'s")
    sizes = {arm.label: arm.scenarios for arm in comparison.arms}
    said += [
        f"{quantity(arm.scenarios, 'scenario')} of {arm.label} against {number(sizes[baseline])} others of {baseline}"
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
    labels = [arm.label for arm in comparison.arms]
    head = ("metric", *labels, *(f"{arm} − {comparison.baseline}" for arm in others))
    rows = []
    for metric in comparison.metrics:
        by_arm = {found.arm: found for found in metric.differences}
        values = (_value(metric.kind, metric.arms.get(label)) for label in labels)
        rows.append((metric.title, *values, *(_difference(metric.kind, by_arm.get(arm)) for arm in others)))
    return Table(head, tuple(rows), style="wide")


def _value(kind: str, found: RatioEstimate | None) -> str:
    if found is None:
        return NONE
    form = {"share": percent, "usd": dollars}.get(kind, number)
    if found.low is None or found.high is None:
        return form(found.value)
    ends = [form(end).removesuffix("%") for end in (found.low, found.high)]
    return f"{form(found.value)} ({' to '.join(ends)})"


def _difference(kind: str, found: Difference | None) -> str:
    if found is None or found.value is None:
        return "–"
    form = {"share": points, "usd": dollars}.get(kind, signed_number)
    ends = "" if found.low is None else f" ({form(found.low)} to {form(found.high)})"
    return f"{form(found.value)}{ends}{' *' if _sure(found) else ''}"
