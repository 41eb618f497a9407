"""Comparison of arms: forest plots of differences, and the table of all metrics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from edgen.core.text import (
    NONE,
    format_dollars,
    format_interval,
    format_points,
    format_signed,
    join_list,
    number,
    percent,
    quantity,
)
from edgen.evaluation.comparison.result import ArmFacts, ComparisonResult, Difference, Metric
from edgen.evaluation.drawings import (
    Axis,
    Block,
    Interval,
    Intervals,
    Picture,
    Table,
    describe_rows,
    label_with_arm,
)
from edgen.stats.significance import SIGNIFICANT

_MOST = 20  # most rows of a forest
_DRAWN = 4  # most arms whose pictures are not collapsed
_NAMED = 6  # most metrics without difference that are listed
_ACROSS = 4  # most arms next to each other in a table
_Row = tuple[Metric, Difference, Interval]


def render_comparison(comparison: ComparisonResult) -> Iterator[Block]:
    """Yield the pictures of a comparison, sentences on arms without one, and the tables of differences."""
    yield from draw_forests(comparison)
    yield from describe_identical_arms(comparison)
    yield from tabulate_differences(comparison)


def draw_forests(comparison: ComparisonResult) -> Iterator[Picture]:
    """Yield two pictures per arm: shares in percentage points, everything else in per cent of the
    baseline."""
    for place, arm in enumerate(_list_other_arms(comparison)):
        shares, numbers, unchanged = [], [], []
        for metric in comparison.metrics:
            found = next((d for d in metric.differences if d.arm == arm.label), None)
            if found is None or found.value is None:
                continue
            base = metric.arms[comparison.baseline].value if comparison.baseline in metric.arms else None
            if not found.changed:
                unchanged.append(metric.title)
            elif metric.kind == "share":
                shares.append((metric, found, _make_interval(metric, found, 100.0)))
            elif base:
                numbers.append((metric, found, _make_interval(metric, found, 100.0 / abs(base))))
        kinds = [("shares", shares, "percentage points"), ("numbers", numbers, "% of the baseline")]
        drawn = [kind for kind in kinds if kind[1]]
        folded = "Pictures of the other arms" if place >= _DRAWN else ""
        for kind, rows, unit in drawn:
            last = kind == drawn[-1][0]
            yield _draw_forest(
                f"forest-{place}-{kind}",
                arm,
                comparison.baseline,
                rows,
                unit,
                unchanged if last else [],
                folded,
            )


def describe_identical_arms(comparison: ComparisonResult) -> Iterator[str]:
    """Yield a sentence for each arm in which no metric differs from the baseline: it has no picture."""
    for arm in _list_other_arms(comparison):
        found = [d for metric in comparison.metrics for d in metric.differences if d.arm == arm.label]
        known = [d for d in found if d.value is not None]
        if known and not any(d.changed for d in known):
            yield (
                f"{arm.label} and {comparison.baseline}: none of {len(known)} metrics differs in any "
                "scenario."
            )


def _make_interval(metric: Metric, difference: Difference, factor: float) -> Interval:
    sure = _is_significant(difference)
    value, low, high = (
        None if v is None else v * factor for v in (difference.value, difference.low, difference.high)
    )
    said = format_signed(value, 1) + format_interval(low, high, partial(format_signed, digits=1))
    return Interval(metric.title, value, low, high, said, "vermillion" if sure else "blue", hollow=not sure)


def _draw_forest(
    name: str, arm: ArmFacts, baseline: str, found: list[_Row], unit: str, unchanged: list[str], folded: str
) -> Picture:
    clearest = sorted(found, key=lambda row: row[1].p_holm if row[1].p_holm is not None else 1.0)[:_MOST]
    rows = [row for row in found if row in clearest]
    intervals = [interval for _, _, interval in rows]
    sure = [interval.label for interval in intervals if not interval.hollow]
    title = f"{arm.label} minus {baseline}, {unit}"
    return Picture(
        name=name,
        title=title,
        chart=Intervals(intervals, Axis(unit, format_signed), 0.0),
        caption=f"{'Paired differences' if arm.paired else 'Differences of two samples, not paired,'} with "
        "95% intervals; "
        "dashed: no difference. Filled: remains when all metrics are tested together (Holm, 5%). "
        + (f"Look at {', '.join(sure[:6])}." if sure else "None is filled here.")
        + (f" The {len(rows)} clearest of {len(found)}." if len(found) > len(rows) else "")
        + _describe_unchanged(unchanged),
        alternative=describe_rows("Forest plot", title, intervals),
        tables=(_tabulate_numbers(rows, unit, paired=arm.paired),),
        folded=folded,
    )


def _describe_unchanged(titles: list[str]) -> str:
    """List the metrics in which no scenario differs, or count them if there are many."""
    if len(titles) > _NAMED:
        return f" {len(titles)} other metrics do not differ in any scenario."
    return f" No difference in any scenario: {', '.join(titles)}." if titles else ""


def _tabulate_numbers(rows: list[_Row], unit: str, *, paired: bool) -> Table:
    """Return the figures of a forest. Only paired ones have a number of changed scenarios."""
    head = ("metric", f"difference, {unit} (95%)", "p", "p (Holm)", "scenarios", *["changed"] * paired)
    cells = (
        (
            metric.title, interval.said, number(d.p), number(d.p_holm), number(d.n),
                *[number(d.changed)] * paired
        )
        for metric, d, interval in rows
    )  # fmt: skip
    return Table(head, tuple(cells))


def describe_arms(comparison: ComparisonResult | None) -> str:
    """Return a sentence or two on whether the arms share scenarios."""
    if comparison is None:
        return "Each arm is the same job with another setting."
    others = [arm.label for arm in _list_other_arms(comparison) if not arm.paired]
    if not others:
        return (
            "All arms answer the same scenarios, so each scenario is compared with itself under another "
            "setting."
        )
    own = "a space of its own weights" if len(others) == 1 else "spaces of their own weights"
    rest = len(others) < len(comparison.arms) - 1
    return (
        f"{join_list(others)} {'draws' if len(others) == 1 else 'draw'} other scenarios from {own}: "
        "compared as "
        f"samples, not scenario by scenario.{' The other arms answer the same scenarios.' if rest else ''}"
    )


def describe_comparison(comparison: ComparisonResult) -> str:
    """Describe the comparison."""
    baseline, others = comparison.baseline, _list_other_arms(comparison)
    said = []
    if any(arm.paired for arm in others):
        said.append(f"{quantity(comparison.shared, 'scenario')} compared one by one with those of {baseline}")
    sizes = {arm.label: arm.scenarios for arm in comparison.arms}
    said += [
        f"{quantity(arm.scenarios, 'scenario')} of {arm.label} against {number(sizes[baseline])} others of "
        f"{baseline}"
        for arm in others
        if not arm.paired
    ]
    return "; ".join(said)


def _list_other_arms(comparison: ComparisonResult) -> list[ArmFacts]:
    return [arm for arm in comparison.arms if arm.label != comparison.baseline]


def _is_significant(difference: Difference) -> bool:
    return difference.p_holm is not None and difference.p_holm < SIGNIFICANT


def tabulate_values(comparison: ComparisonResult) -> Iterator[Table]:
    """Yield every metric's value in each arm with its 95% interval; a star marks a difference from the
    baseline. Arms that do not fit side by side are in further, collapsed tables, each with the baseline."""
    for place, others in enumerate(_split_arms(comparison)):
        names = (comparison.baseline, *others)
        rows = tuple(
            (metric.title, *(_format_value(metric, name) for name in names)) for metric in comparison.metrics
        )
        title = label_with_arm("Values of the other arms", join_list(others)) if place else ""
        yield Table(("metric", *names), rows, title, style="wide")


def tabulate_differences(comparison: ComparisonResult) -> Iterator[Table]:
    """Yield every difference from the baseline in the metric's own unit, in collapsed tables of a few
    arms."""
    groups = [*_split_arms(comparison)]
    for names in groups:
        rows = tuple(
            (metric.title, *(_format_difference(metric, name) for name in names))
            for metric in comparison.metrics
        )
        head = ("metric", *(f"{name} − {comparison.baseline}" for name in names))
        several = join_list(names) if len(groups) > 1 else ""
        title = label_with_arm("All differences in the metrics' own units", several)
        yield Table(head, rows, title, style="wide")


def _split_arms(comparison: ComparisonResult) -> Iterator[list[str]]:
    """Yield the names of the arms other than the baseline, as many at once as fit into a table with it."""
    others = [arm.label for arm in _list_other_arms(comparison)]
    for start in range(0, len(others), _ACROSS - 1):
        yield others[start : start + _ACROSS - 1]


def _format_value(metric: Metric, arm: str) -> str:
    found = metric.arms.get(arm)
    if found is None:
        return NONE
    form = {"share": percent, "usd": format_dollars}.get(metric.kind, number)
    interval = format_interval(found.low, found.high, lambda end: form(end).removesuffix("%"))
    starred = any(_is_significant(one) for one in metric.differences if one.arm == arm)
    return f"{form(found.value)}{interval}{' *' if starred else ''}"


def _format_difference(metric: Metric, arm: str) -> str:
    found = next((one for one in metric.differences if one.arm == arm), None)
    if found is None or found.value is None:
        return NONE
    if not found.changed:
        return "none differs"
    form = {"share": format_points, "usd": format_dollars}.get(metric.kind, format_signed)
    text = form(found.value) + format_interval(found.low, found.high, form)
    return f"{text} *" if _is_significant(found) else text
