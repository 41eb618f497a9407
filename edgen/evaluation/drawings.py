"""Pictures and tables as values: of a measure or a run. The report draws them.

A colour is the name of one of the page's colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

import edgen.stats.required  # noqa: F401 - first: where numpy is missing, it says which extra has it
from edgen.core.text import NONE, number, percent
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate

# of arms; the last ones stand for something else too: sky and purple for match and mismatch
SERIES = ("blue", "orange", "green", "vermillion", "grey", "sky", "purple")
LEVELS = 9  # shades of a heat map, 0 for nothing


def shade_of(count: int, most: int) -> int:
    """Return the shade for a count: 0 for none, the last one for `most`."""
    return 0 if count <= 0 or most <= 0 else max(1, math.ceil(count / most * (LEVELS - 1)))


def series_colour(place: int) -> str:
    """Return the colour of the series at `place`, from 0 on."""
    return SERIES[place % len(SERIES)]


class Axis(NamedTuple):
    """An x axis."""

    title: str = ""  # with the unit
    tick: Callable[[float], str] = number  # formats a value
    low: float | None = None  # its left end; None: as the data have it
    high: float | None = None  # its right end; None: as the data have it
    whole: bool = False  # ticks at whole numbers only
    log: bool = False  # the values are logarithms to base 10


WHOLE_NUMBERS = Axis(low=0, whole=True)
SHARES = Axis(tick=lambda value: percent(value, 0), low=0, high=1)
PROBABILITIES = Axis(tick=lambda value: f"{value:g}", low=0, high=1)


class Bar(NamedTuple):
    """One value from 0 on, with the words next to it."""

    label: str
    value: float
    said: str
    colour: str = "blue"


class Stack(NamedTuple):
    """A bar as long as the picture, cut into pieces: (colour, count)."""

    label: str
    said: str
    pieces: Sequence[tuple[str, int]]


class Interval(NamedTuple):
    """A value with its interval, either end of which may be unknown."""

    label: str  # of its row
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
    """Points joined by a line; `dashed` for what is fitted, not measured."""

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
    """Dots on their intervals; `reference` is a line to compare them with."""

    rows: Sequence[Interval]
    axis: Axis
    reference: float | None = None


class Histograms(NamedTuple):
    """Up to three distributions as histograms, more as strips of their quantiles."""

    rows: Sequence[HistogramBars]
    axis: Axis


class Curves(NamedTuple):
    """Lines over one another, on logarithmic axes or within the unit square; `x` and `y` name the axes."""

    rows: Sequence[Curve]
    x: str
    y: str
    log: bool = True


class Cells(NamedTuple):
    """Counts over two dimensions: `rows` names the rows; a cell that was planned and has nothing is
    crossed."""

    rows: Sequence[str]
    columns: int
    planned: Sequence[Sequence[int]]
    accepted: Sequence[Sequence[int]]


Chart = Bars | Stacks | Intervals | Histograms | Curves | Cells


class Table(msgspec.Struct, frozen=True):
    """Text in rows. The first column names the row. A table with a `title` is folded away under it. `style`
    is how it is set: "plain" for words, "wide" for many columns, "" for numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    style: str = ""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A chart and all that goes with it."""

    name: str  # unique in the report
    title: str  # above the chart
    chart: Chart  # the drawing
    caption: str  # the point to look for
    alternative: str  # the text alternative
    tables: tuple[Table, ...]  # the chart's data
    legend: tuple[tuple[str, str], ...] = ()  # pairs of a colour and its words
    key: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of numbered rows and columns: which, and their names
    folded: str = ""  # pictures with the same words are folded away together under them


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """An SVG that is made elsewhere, shown at its own size: wider than a page it can be scrolled. All text in
    `svg` has to be escaped."""

    name: str
    title: str
    svg: str
    caption: str


Block = str | Table | Picture | Drawing  # a piece of a section; a str is a paragraph


def draw_bars(
    name: str, title: str, rows: Sequence[Bar], caption: str, most: int | None = None
) -> Iterator[Picture]:
    """Yield the first `most` of the rows (None: all) as bars of shares; the table has all. No picture without
    rows."""
    drawn = rows[:most]
    if len(rows) > len(drawn):
        caption += f" The first {len(drawn)} of {len(rows)} bars; the numbers have all."
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
    """Yield values with their 95% intervals, and a reference; no picture without rows."""
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
    """Yield the distributions with data; no picture without one."""
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
    """Return how to read the drawing of these."""
    if sum(1 for row in rows if row.distribution.n) <= 3:
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
    """Return a text alternative: every row with its words."""
    return f"{kind}: {title}. {'; '.join(f'{row.label}: {row.said}' for row in rows)}."


def interval_of(label: str, estimate: Estimate, said: str, colour: str = "blue") -> Interval:
    """Return the interval of an estimate, with these words next to it."""
    return Interval(label, estimate.value, estimate.low, estimate.high, said, colour)


def share_of(estimate: Estimate | None) -> str:
    """`96.2% (95.1 to 97.3)`."""
    if estimate is None:
        return NONE
    if estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({estimate.low * 100:.1f} to {estimate.high * 100:.1f})"


def format_mean(estimate: Estimate, form: Callable[[float, int], str] = number) -> str:
    """`0.61 (0.58 to 0.64)`."""
    value = form(estimate.value, 2)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({form(estimate.low, 2)} to {form(estimate.high, 2)})"


ARM_SEPARATOR = " · "  # between words and the arm that they are about


def label_with_arm(words: str, arm: str) -> str:
    """Return the words, with the arm that they are about where there are several."""
    return f"{words}{ARM_SEPARATOR}{arm}" if arm else words


def sentence_of_arm(sentence: str, arm: str) -> str:
    """Return the sentence, after the name of its arm if there are several."""
    return f"{arm}: {sentence}" if arm else sentence
