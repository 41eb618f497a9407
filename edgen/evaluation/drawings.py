"""Pictures and tables of a measure or a run, as values. The report draws them.

A colour is the name of one of the page's colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

import edgen.stats.required  # noqa: F401 - first: where numpy is missing, it says which extra has it
from edgen.core.text import NONE, format_interval, number, percent
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate

# colours of arms; sky and purple also stand for match and mismatch
SERIES = ("blue", "orange", "green", "vermillion", "grey", "sky", "purple")
LEVELS = 9  # shades of a heat map; 0 stands for nothing


def shade_of(count: int, most: int) -> int:
    """Return the shade for a count: 0 for nothing, LEVELS - 1 for `most`."""
    return 0 if count <= 0 or most <= 0 else max(1, math.ceil(count / most * (LEVELS - 1)))


def series_colour(place: int) -> str:
    """Return the colour of the series at `place`, from 0."""
    return SERIES[place % len(SERIES)]


class Axis(NamedTuple):
    """An x axis."""

    title: str = ""  # with the unit
    tick: Callable[[float], str] = number  # formats a value
    low: float | None = None  # left end; None: from the data
    high: float | None = None  # right end; None: from the data
    whole: bool = False  # ticks at whole numbers only
    log: bool = False  # the values are logarithms to base 10


WHOLE_NUMBERS = Axis(low=0, whole=True)
SHARES = Axis(tick=lambda value: percent(value, 0), low=0, high=1)
PROBABILITIES = Axis(tick=lambda value: f"{value:g}", low=0, high=1)


class Bar(NamedTuple):
    """A bar from 0 to a value, with words next to it."""

    label: str
    value: float
    said: str
    colour: str = "blue"


class Stack(NamedTuple):
    """A bar of the picture's whole length, divided into pieces of (colour, count)."""

    label: str
    said: str
    pieces: Sequence[tuple[str, int]]


class Interval(NamedTuple):
    """A value with its interval, whose ends may be unknown."""

    label: str  # label of its row
    value: float | None  # None if unknown
    low: float | None  # None if unknown
    high: float | None  # None if unknown
    said: str  # value and interval as text
    colour: str = "blue"  # a name of the palette
    hollow: bool = False  # drawn as an open mark


class HistogramBars(NamedTuple):
    """A distribution with a name."""

    label: str
    distribution: Distribution
    colour: str = "blue"


class Curve(NamedTuple):
    """Points joined by a line; `dashed` if fitted, not measured."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str = "blue"
    dashed: bool = False


class Bars(NamedTuple):
    """Horizontal bars from 0 to `top` (None: the largest)."""

    rows: Sequence[Bar]
    top: float | None = 1


class Stacks(NamedTuple):
    """Stacked bars."""

    rows: Sequence[Stack]


class Intervals(NamedTuple):
    """Dots on their intervals; `reference` is the value of a line to compare them with."""

    rows: Sequence[Interval]
    axis: Axis
    reference: float | None = None


class Histograms(NamedTuple):
    """Up to three distributions as histograms; more as strips of their quantiles."""

    rows: Sequence[HistogramBars]
    axis: Axis


class Curves(NamedTuple):
    """Lines in one picture, with logarithmic axes or within the unit square; `x` and `y` name the axes."""

    rows: Sequence[Curve]
    x: str
    y: str
    log: bool = True


class Cells(NamedTuple):
    """Counts over two dimensions; `rows` names the rows. A planned cell without accepted ones is crossed."""

    rows: Sequence[str]
    columns: int
    planned: Sequence[Sequence[int]]
    accepted: Sequence[Sequence[int]]


Chart = Bars | Stacks | Intervals | Histograms | Curves | Cells


class Table(msgspec.Struct, frozen=True):
    """Text in rows; the first column names the row. A table with a `title` is folded away under it. `style`:
    "plain" for words, "wide" for many columns, "" for numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    style: str = ""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with title, caption, tables and legend."""

    name: str  # unique in the report
    title: str  # above the chart
    chart: Chart  # the drawing
    caption: str  # the point to look for
    alternative: str  # the text alternative
    tables: tuple[Table, ...]  # the chart's data
    legend: tuple[tuple[str, str], ...] = ()  # pairs of a colour and its words
    key: tuple[tuple[str, tuple[str, ...]], ...] = ()  # for numbered rows or columns: heading, names
    folded: str = ""  # pictures with the same words here are folded away under these words


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """A ready-made SVG, shown at its own size and scrolled if wider than the page. All text in `svg` must be
    escaped."""

    name: str
    title: str
    svg: str
    caption: str


Block = str | Table | Picture | Drawing  # part of a section; a str is a paragraph


def draw_bars(
    name: str, title: str, rows: Sequence[Bar], caption: str, most: int | None = None
) -> Iterator[Picture]:
    """Yield a picture of the first `most` rows (None: all) as bars of shares, with all rows in its table;
    nothing without rows."""
    drawn = rows[:most]
    if len(rows) > len(drawn):
        caption += f" The first {len(drawn)} of {len(rows)} bars; the table has all."
    if rows:
        yield Picture(
            name=name,
            title=title,
            chart=Bars(drawn),
            caption=caption,
            alternative=describe_rows("Bars", title, drawn),
            tables=(Table(("", "value"), tuple((row.label, row.said) for row in rows)),),
        )


def draw_intervals(
    name: str,
    title: str,
    rows: Sequence[Interval],
    caption: str,
    axis: Axis = SHARES,
    reference: float | None = None,
) -> Iterator[Picture]:
    """Yield a picture of values with their 95% intervals and a reference; nothing without rows."""
    if rows:
        yield Picture(
            name=name,
            title=title,
            chart=Intervals(rows, axis, reference),
            caption=caption.strip(),
            alternative=describe_rows("Dots with 95% intervals", title, rows),
            tables=(Table(("", "value (95% interval)"), tuple((row.label, row.said) for row in rows)),),
        )


def draw_histograms(
    name: str, title: str, rows: Sequence[HistogramBars], axis: Axis, caption: str
) -> Iterator[Picture]:
    """Yield a picture of the distributions that have data; nothing without any."""
    rows = [row for row in rows if row.distribution.n]
    if not rows:
        return
    said = "; ".join(
        f"{row.label}: median {axis.tick(row.distribution.median or 0.0)}, "
        f"5% to 95%: {axis.tick(row.distribution.p5 or 0.0)} to {axis.tick(row.distribution.p95 or 0.0)}"
        for row in rows
    )
    yield Picture(
        name=name,
        title=title,
        chart=Histograms(rows, axis),
        caption=f"{caption} {explain_histograms(rows)}",
        alternative=f"Distribution of: {title}. {said}.",
        tables=tuple(_make_distribution_tables(rows, axis)),
    )


def explain_histograms(rows: Sequence[HistogramBars]) -> str:
    """Return a sentence on how to read a drawing of these distributions, all with data."""
    if len(rows) <= 3:
        return "The dashed line is the median."
    return "Dot: median; thick line: the middle half; thin line: from 5% to 95%."


def _make_distribution_tables(rows: Sequence[HistogramBars], axis: Axis) -> Iterator[Table]:
    keys = ("mean", "sd", "min", "p5", "p25", "median", "p75", "p95", "max")
    yield Table(
        ("", "n", "mean", "sd", "least", "5%", "25%", "median", "75%", "95%", "most"),
        tuple(
            (row.label, number(row.distribution.n), *(number(getattr(row.distribution, key)) for key in keys))
            for row in rows
        ),
    )
    for row in rows if len(rows) <= 3 else ():
        counts = ((_name_bin(b.low, b.high, axis), number(b.count)) for b in row.distribution.bins)
        yield Table((row.label, "count"), tuple(counts))


def _name_bin(low: float, high: float, axis: Axis) -> str:
    if axis.whole and high - low == 1:
        return number(low)
    return f"{axis.tick(low)} to {axis.tick(high - 1) if axis.whole else axis.tick(high)}"


def describe_rows(kind: str, title: str, rows: Sequence[Bar] | Sequence[Interval] | Sequence[Stack]) -> str:
    """Return a picture's text alternative: every row with its words."""
    return f"{kind}: {title}. {'; '.join(f'{row.label}: {row.said}' for row in rows)}."


def interval_of(label: str, estimate: Estimate, said: str, colour: str = "blue") -> Interval:
    """Return the interval of an estimate; `said`: the words next to it."""
    return Interval(label, estimate.value, estimate.low, estimate.high, said, colour)


def share_of(estimate: Estimate | None) -> str:
    """Format a share, as in `96.2% (95.1 to 97.3)`."""
    if estimate is None:
        return NONE
    return percent(estimate.value) + format_interval(
        estimate.low, estimate.high, lambda end: f"{end * 100:.1f}"
    )


def format_mean(estimate: Estimate, form: Callable[[float, int], str] = number) -> str:
    """Format a mean, as in `0.61 (0.58 to 0.64)`."""
    return form(estimate.value, 2) + format_interval(estimate.low, estimate.high, lambda end: form(end, 2))


ARM_SEPARATOR = " · "  # between words and the name of their arm


def label_with_arm(words: str, arm: str) -> str:
    """Return the words, followed by the name of their arm if there are several arms."""
    return f"{words}{ARM_SEPARATOR}{arm}" if arm else words


def sentence_of_arm(sentence: str, arm: str) -> str:
    """Return the sentence, preceded by the name of its arm if there are several arms."""
    return f"{arm}: {sentence}" if arm else sentence
