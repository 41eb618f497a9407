"""A comparison as lines of text, 80 columns wide where the labels allow it."""

from __future__ import annotations

import itertools
import math
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from edgen.comparison.caveats import FEW_CHANGED
from edgen.comparison.model import ArmFacts, ArmValue, Comparison, Difference, Metric

_WIDTH = 80
_LABEL = 10  # columns of an arm's name over its numbers
_TITLE = 24
_MOST_DIGITS = 5


def rendered(comparison: Comparison) -> Iterator[str]:
    """The comparison for a person, line by line."""
    paired = any(arm.paired for arm in comparison.arms[1:])
    shared = f"{comparison.shared:,} scenarios" if paired else "no scenario"
    yield f"compared   {comparison.name}, {shared} shared"
    yield ""
    yield from _arms(comparison)
    for arm in comparison.arms[1:]:
        yield ""
        yield from _table(comparison, arm)
    yield ""
    for left_out in comparison.not_compared:
        yield from _wrapped(f"not compared: {left_out.what} ({', '.join(left_out.arms)}): {left_out.why}.")
    for caveat in comparison.caveats:
        yield from _wrapped(caveat)
    for prompt in comparison.prompts:
        yield ""
        use = "" if prompt.use == "default" else f" ({prompt.use})"
        yield f"prompt of scenario {prompt.scenario}{use}"
        yield from prompt.diff.split("\n")
    yield ""


def _arms(comparison: Comparison) -> Iterator[str]:
    wide = max(10, *(_columns(arm.label) for arm in comparison.arms))
    yield f"{_padded('arm', wide)}  planned  accepted  rejected  failed  pending     tokens      cost"
    for arm in comparison.arms:
        cost = "no price" if arm.cost_usd is None else f"${arm.cost_usd:.4g}"
        numbers = (
            f"{arm.planned:>7}  {arm.accepted:>8}  {sum(arm.rejected.values()):>8}  "
            f"{sum(arm.failed.values()):>6}  "
            f"{arm.pending:>7}  {arm.tokens:>9}  {cost:>8}"
        )
        yield f"{_padded(arm.label, wide)}  {numbers}"
    for arm in comparison.arms[1:]:
        for key, value in arm.changes.items():
            yield from _wrapped(f"{arm.label}: {key} is {value}")


def _table(comparison: Comparison, arm: ArmFacts) -> Iterator[str]:
    first = comparison.baseline
    kind = "paired by scenario" if arm.paired else "not paired: other scenarios"
    yield f"{arm.label} against {first} ({kind})"
    head = [_right(_short(label), _LABEL) for label in (first, arm.label)]
    yield f"{'':{_TITLE + 2}}{head[0]}{head[1]} difference   95% interval"
    for group, metrics in itertools.groupby(comparison.metrics, key=lambda metric: metric.group):
        yield group
        for metric in metrics:
            difference = next(d for d in metric.differences if d.arm == arm.label)
            yield from _row(metric, metric.arms[first], metric.arms[arm.label], difference)


def _row(metric: Metric, one: ArmValue, other: ArmValue, difference: Difference) -> Iterator[str]:
    numbers = f"{_value(metric, one.value):>{_LABEL}}{_value(metric, other.value):>{_LABEL}}"
    mark = "*" if difference.p_holm is not None and difference.p_holm < 0.05 else ""
    found = f"{_difference(metric, difference):>11} {mark:<1} {_interval(metric, difference)}"
    yield f"  {_padded(_short(metric.title, _TITLE), _TITLE)}{numbers}{found}".rstrip()
    if _disagree(difference):
        few = f"only {difference.changed} scenarios differ: the interval is too short"
        yield f"{'':6}{few}, go by p = {difference.p:.2g}"


def _disagree(difference: Difference) -> bool:
    """Whether the interval excludes zero and the test does not, for want of scenarios that differ."""
    if difference.p is None or difference.low is None or difference.high is None:
        return False
    excludes = difference.low > 0 or difference.high < 0
    return 0 < difference.changed < FEW_CHANGED and excludes != (difference.p < 0.05)


def _value(metric: Metric, value: float | None) -> str:
    if value is None:
        return "-"
    if metric.kind == "share":
        # What is rare, or nearly everything, is neither none nor all.
        rare = 0 < min(value, 1 - value) < 0.0005
        return f"{100 * value:.{3 if rare else 1}f}%"
    return f"${value:.3g}" if metric.kind == "usd" else _number(value)


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _difference(metric: Metric, difference: Difference) -> str:
    if difference.value is None:
        return "-"
    unit = " pp" if metric.kind == "share" else ""
    return f"{_scaled(metric, difference)(difference.value)}{unit}" if difference.value else f"0{unit}"


def _interval(metric: Metric, difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return ""
    if not difference.changed:
        return "none differs"
    shown = _scaled(metric, difference)
    return f"[{shown(difference.low)}, {shown(difference.high)}]"


def _scaled(metric: Metric, difference: Difference) -> Callable[[float], str]:
    """How a difference and its interval are shown: with decimals that give the farthest of them two digits."""
    factor, least = (100.0, 1) if metric.kind == "share" else (1.0, 0)
    ends = (difference.value, difference.low, difference.high)
    widest = factor * max(abs(end) for end in ends if end is not None)
    digits = 1 - math.floor(math.log10(widest)) if widest else 0
    digits = max(least, digits)
    if digits > _MOST_DIGITS:
        return lambda value: f"{factor * value:+.1e}"
    return lambda value: f"{round(factor * value, digits) + 0.0:+.{digits}f}"


def _wrapped(text: str) -> Sequence[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


def _short(text: str, most: int = _LABEL - 1) -> str:
    """The text, its end cut off where it is too wide."""
    if _columns(text) <= most:
        return text
    while _columns(text) > most - 1:
        text = text[:-1]
    return f"{text}…"


def _columns(text: str) -> int:
    """How many columns of a terminal it takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _padded(text: str, wide: int) -> str:
    return text + " " * (wide - _columns(text))


def _right(text: str, wide: int) -> str:
    return " " * (wide - _columns(text)) + text
