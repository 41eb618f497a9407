"""A comparison as lines of text: the arms, each metric's value in each arm, then the differences from the
first arm."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence

from msgspec import UNSET

from edgen.core.text import BRACKETS, columns, format_dollars, format_interval, quantity
from edgen.evaluation.comparison.caveats import has_too_little_data
from edgen.evaluation.comparison.result import ArmFacts, ComparisonResult, Difference, Metric
from edgen.evaluation.terminal import wrap
from edgen.preferences.policies import describe_policies
from edgen.preferences.render import wrap_line
from edgen.stats.ratios import RatioEstimate
from edgen.stats.significance import SIGNIFICANT

_WIDTH = 80
_TITLE = 24
_VALUE = 26  # columns of a value with its interval
_LABEL = 20  # columns of the longest arm's name in a table's head
_PER = 1_000  # a cost is given for this many conversations
_MOST_DIGITS = 5
_UNPAIRED = "not paired: p by a permutation test of the studentised difference, intervals by the bootstrap"


def render_comparison(comparison: ComparisonResult, width: int = _WIDTH) -> Iterator[str]:
    """Yield the lines of a comparison for the terminal. `width`: columns, at least 40."""
    paired = any(arm.paired for arm in comparison.arms[1:])
    shared = "no scenario shared: independent samples"
    if paired:
        shared = f"{quantity(comparison.shared, 'scenario')} shared"
    yield from textwrap.wrap(f"compared   {comparison.name}, {shared}", width, subsequent_indent=" " * 11)
    yield ""
    tags = _make_tags([arm.label for arm in comparison.arms])
    for label, tag in tags.items():
        if label != tag:
            yield f"{tag} is {label}"
    yield from _render_arms(comparison, tags, width)
    yield ""
    yield from _render_values(comparison, tags, width)
    for arm in comparison.arms[1:]:
        yield ""
        yield from _render_differences(comparison, arm, width)
    for line in () if comparison.policies is UNSET else describe_policies(comparison.policies):
        yield from wrap_line(line, width)
    yield ""
    for left_out in comparison.not_compared:
        every = len(left_out.arms) == len(comparison.arms)
        what = f"{left_out.what} ({'every arm' if every else ', '.join(left_out.arms)})"
        yield from wrap(f"not compared: {what}: {left_out.why}.", width, bullet="- ")
    for caveat in comparison.caveats:
        yield from wrap(caveat, width, bullet="- ")
    for prompt in comparison.prompts:
        yield ""
        use = "" if prompt.use == "default" else f" ({prompt.use})"
        yield f"prompt of scenario {prompt.scenario}{use}"
        yield from prompt.diff.split("\n")
    yield ""


def _make_tags(labels: Sequence[str]) -> dict[str, str]:
    """Return the heading of each arm's numbers: its label, or a letter for a label that is too wide."""
    if all(columns(label) <= _LABEL for label in labels):
        return {label: label for label in labels}
    return {label: _make_letters(number) for number, label in enumerate(labels)}


def _make_letters(number: int) -> str:
    return (_make_letters(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _render_arms(comparison: ComparisonResult, tags: dict[str, str], width: int) -> Iterator[str]:
    head = ["arm", "planned", "accepted", "rejected", "failed", "pending", "tokens", "cost"]
    rows = [head]
    for arm in comparison.arms:
        lost = (sum(arm.rejected.values()), sum(arm.failed.values()), arm.pending)
        cost = "no price" if arm.cost_usd is None else format_dollars(arm.cost_usd)
        numbers = [*(f"{number:,}" for number in (arm.planned, arm.accepted, *lost, arm.tokens)), cost]
        if arm.data is not UNSET:  # a data set has no plan, losses or calls
            numbers = ["-", f"{arm.accepted:,}", *"-----"]
        rows.append([tags[arm.label], *numbers])
    if not any(arm.pending for arm in comparison.arms):
        rows = [[*row[:5], *row[6:]] for row in rows]
    wide = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = [_pad_left(text, room) for text, room in zip(row, wide, strict=True)]
        yield "  ".join([_pad_right(row[0], wide[0]), *cells[1:]])
    for arm in comparison.arms:
        if arm.data is not UNSET:
            facts = arm.data
            clusters = f" in {quantity(facts.clusters, 'cluster')}" if facts.clusters < facts.records else ""
            told = f"{quantity(facts.records, facts.unit)}{clusters}, read as {facts.layout}"
            yield from wrap(f"{tags[arm.label]}: {told}", width, bullet="- ")
    for arm in comparison.arms[1:]:
        for key, value in arm.changes.items():
            yield from wrap(f"{arm.label}: {key} is {value}", width, bullet="- ")


def _render_values(comparison: ComparisonResult, tags: dict[str, str], width: int) -> Iterator[str]:
    """Yield each metric of each arm with its interval; as many arms side by side as fit."""
    labels = [arm.label for arm in comparison.arms]
    at_once = max(1, (width - _TITLE - 2) // _VALUE)
    for start in range(0, len(labels), at_once):
        now = labels[start : start + at_once]
        if start:
            yield ""
        yield f"{'each arm, 95% interval':{_TITLE + 2}}{''.join(_pad_left(tags[label], _VALUE) for label in now)}"
        for group, metrics in _group_metrics(comparison):
            yield group
            for metric in metrics:
                cells = [_pad_left(_with_interval(metric, metric.arms[label]), _VALUE) for label in now]
                yield from _render_metric(metric, "".join(cells))


def _with_interval(metric: Metric, value: RatioEstimate) -> str:
    """Format as in `12.3% [10.1, 14.5]`: the ends with enough decimals to distinguish them."""
    if value.value is None:
        return "-"
    factor, unit = _choose_unit(metric)
    sign = "%" if metric.kind == "share" else ""
    ends = [factor * end for end in (value.low, value.high) if end is not None]
    digits = _choose_digits(factor * value.value, ends, unit)
    shown = [_format_fixed(end, digits) for end in (factor * value.value, *ends)]
    interval = f" [{shown[1]}, {shown[2]}]" if len(ends) == 2 else ""
    return f"{'$' if metric.kind == 'usd' else ''}{shown[0]}{sign}{interval}"


def _render_differences(comparison: ComparisonResult, arm: ArmFacts, width: int) -> Iterator[str]:
    kind = "paired by scenario" if arm.paired else _UNPAIRED
    yield from textwrap.wrap(f"{arm.label} against {comparison.baseline} ({kind})", width)
    yield f"{'':{_TITLE + 2}}{'difference':>11}   {'95% interval':<22}{'p':>7}{'p (Holm)':>10}"
    for group, metrics in _group_metrics(comparison):
        yield group
        for metric in metrics:
            difference = next(d for d in metric.differences if d.arm == arm.label)
            mark = "*" if difference.p_holm is not None and difference.p_holm < SIGNIFICANT else ""
            found = f"{_format_difference(metric, difference):>11} {mark:<1} {_format_interval(metric, difference):<22}"
            tested = (
                f"{_format_p(difference.p):>7}{_format_p(difference.p_holm):>10}"
                if difference.changed
                else ""
            )
            yield from _render_metric(metric, found + tested)
            if _disagree(difference):
                yield f"{'':6}{_explain_too_few(metric, difference)}: the interval is too short, rely on p"


def _explain_too_few(metric: Metric, difference: Difference) -> str:
    if difference.evidence < difference.changed:
        times = "once" if difference.evidence == 1 else f"{difference.evidence} times"
        return f"it occurred only {times} in both arms"
    what = quantity(difference.changed, "block" if metric.over == "blocks" else "scenario")
    return f"only {what} differ{'s' if difference.changed == 1 else ''}"


def _disagree(difference: Difference) -> bool:
    """Return whether interval and test disagree on zero, with few scenarios that differ."""
    if difference.p is None or difference.low is None or difference.high is None:
        return False
    excludes = difference.low > 0 or difference.high < 0
    return has_too_little_data(difference) and excludes != (difference.p < SIGNIFICANT)


def _group_metrics(comparison: ComparisonResult) -> Iterator[tuple[str, list[Metric]]]:
    for group, metrics in itertools.groupby(comparison.metrics, key=lambda metric: metric.group):
        yield group, list(metrics)


def _render_metric(metric: Metric, numbers: str) -> Iterator[str]:
    """Yield a metric's title and its numbers; on two lines if the title is too long for one."""
    title = f"cost of {_PER:,} accepted" if metric.kind == "usd" else metric.title
    if columns(title) > _TITLE:
        yield f"  {title}"
        title = ""
    yield f"  {_pad_right(title, _TITLE)}{numbers}".rstrip()


def _choose_unit(metric: Metric) -> tuple[float, int]:
    """Return the factor for showing a metric's numbers, and their minimum of decimals."""
    if metric.kind == "share":
        return 100.0, 1
    return (float(_PER), 2) if metric.kind == "usd" else (1.0, 0)


def _choose_digits(value: float, ends: Sequence[float], least: int) -> int:
    """Return the number of decimals: four digits of a value, two of its interval's width; so a rare share
    does not look like 0."""
    apart = max(ends) - min(ends) if ends else 0.0
    wanted = 1 - _find_magnitude(apart) if apart else 3 - _find_magnitude(value)
    return min(_MOST_DIGITS, max(least, wanted))


def _find_magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 3


def _format_fixed(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _format_p(value: float | None) -> str:
    if value is None:
        return ""
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _format_difference(metric: Metric, difference: Difference) -> str:
    if difference.value is None:
        return "-"
    unit = " pp" if metric.kind == "share" else ""
    return (
        f"{_make_formatter(metric, difference)(difference.value)}{unit}" if difference.value else f"0{unit}"
    )


def _format_interval(metric: Metric, difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return ""
    if not difference.changed:
        return "none differs"
    form = _make_formatter(metric, difference)
    return format_interval(difference.low, difference.high, form, BRACKETS).lstrip()


def _make_formatter(metric: Metric, difference: Difference) -> Callable[[float], str]:
    """Return a formatter of a difference and its interval; the number farthest from 0 gets two digits."""
    factor, least = _choose_unit(metric)
    ends = (difference.value, difference.low, difference.high)
    widest = factor * max(abs(end) for end in ends if end is not None)
    digits = max(least, 1 - _find_magnitude(widest) if widest else 0)
    if digits > _MOST_DIGITS and metric.kind != "usd":
        return lambda value: f"{factor * value:+.1e}"
    return lambda value: f"{round(factor * value, digits) + 0.0:+.{digits}f}"


def _pad_right(text: str, wide: int) -> str:
    return text + " " * (wide - columns(text))


def _pad_left(text: str, wide: int) -> str:
    return " " * (wide - columns(text)) + text
