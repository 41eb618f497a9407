"""The kinds of picture: bars, stacked bars, intervals, distributions, curves, cells.

Most have a line of words above each mark, with the number at its right end, so that labels of any length
can be read on a narrow screen. To be called within `canvas.drawing()`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgen.core.text import number, shorten
from edgen.evaluation.figures import (
    LEVELS,
    Axis,
    Bars,
    Cells,
    Curves,
    Histogram,
    Histograms,
    Intervals,
    Picture,
    Stack,
    Stacks,
    shade_of,
)
from edgen.report.canvas import WIDTH, Canvas, colour, set_ticks, ticks
from edgen.stats.distributions import Bin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 38  # of a line of words and its mark
_FOOT = 44  # ticks and what they count
_TICKS = 26  # ticks alone
_EDGE = 2
_MARGIN = 14  # of an axis: half of a tick's words
_PANEL = 92  # of one histogram among several
_BEYOND = 0.02  # of the axis, left free at both ends


def draw(picture: Picture) -> str:
    """The `<svg>` of a picture."""
    chart = picture.chart
    match chart:
        case Bars():
            canvas = _bars(chart)
        case Stacks():
            canvas = _stacks(chart.rows)
        case Intervals():
            canvas = _intervals(chart)
        case Histograms():
            canvas = _distributions(chart)
        case Curves():
            canvas = _curves(chart)
        case Cells():
            canvas = _cells(chart)
    return canvas.svg(picture.name, picture.alternative)


def _bars(chart: Bars) -> Canvas:
    """The number stands at the end of the words."""
    rows = chart.rows
    canvas, axes = _rows(len(rows), foot=4, margin=_EDGE)
    top = chart.top or max((row.value for row in rows), default=0) or 1
    axes.set_xlim(0, top)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    for place, row in enumerate(rows):
        _line(canvas, place, row.label, row.said)
        axes.barh(place, top, height=0.2, color=colour("rule"), alpha=0.6)
        axes.barh(place, row.value, height=0.2, color=colour(row.colour))
    return canvas


def _stacks(rows: Sequence[Stack]) -> Canvas:
    """A count stands in its piece where there is room."""
    canvas = Canvas(len(rows) * 56 + 8)
    axes = canvas.axes(_EDGE, 0, _EDGE, 8)
    axes.set_ylim(len(rows), 0)
    axes.set_xlim(0, 1)
    axes.set_axis_off()
    room = WIDTH - 2 * _EDGE
    for place, (words, said, pieces) in enumerate(rows):
        canvas.text(_EDGE, place * 56 + 15, words, limit=36, weight="bold")
        canvas.text(WIDTH - _EDGE, place * 56 + 15, said, ha="right", color=colour("muted"))
        total = sum(count for _, count in pieces) or 1
        left = 0.0
        for shade, count in pieces:
            if not count:
                continue
            width = count / total
            # a sliver is at least three units wide: what is there is seen
            axes.barh(
                place + 0.64, max(width, 3 / room), left=min(left, 1 - 3 / room), height=0.5,
                color=colour(shade), edgecolor=colour("paper"), linewidth=0.8,
            )  # fmt: skip
            text = number(count)
            if width * room > 8 * len(text) + 8:
                axes.text(
                    left + width / 2, place + 0.64, text, ha="center", va="center_baseline",
                    color=colour("paper"), weight="bold",
                )  # fmt: skip
            left += width
    return canvas


def _intervals(chart: Intervals) -> Canvas:
    rows, axis, reference = chart
    canvas, axes = _rows(len(rows), foot=_foot(axis))
    known = [v for row in rows for v in (row.value, row.low, row.high) if v is not None]
    _scale(axes, axis, [*known, *([] if reference is None else [reference])])
    if reference is not None:
        # beside the marks only: a line through all would run through the words
        marks = range(len(rows))
        axes.vlines(
            [reference] * len(rows), [place - 0.24 for place in marks], [place + 0.29 for place in marks],
            color=colour("muted"), linewidth=1.4, linestyle=(0, (2, 2)),
        )  # fmt: skip
    for place, row in enumerate(rows):
        _line(canvas, place, row.label, row.said)
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [place] * 2, color=colour(row.colour), linewidth=2.4, alpha=0.55)
        if row.value is not None:
            face = colour("paper") if row.hollow else colour(row.colour)
            axes.plot(
                [row.value], [place], "o", markersize=7.5, markerfacecolor=face, markeredgewidth=1.8,
                markeredgecolor=colour(row.colour), clip_on=False,
            )  # fmt: skip
    return canvas


def _distributions(chart: Histograms) -> Canvas:
    """Up to three as histograms above one another, more as strips of their quantiles."""
    rows, axis = chart
    if len(rows) <= 3 and all(row.distribution.bins for row in rows):
        return _histograms(rows, axis)
    canvas, axes = _rows(len(rows), foot=_foot(axis))
    found = [row.distribution for row in rows]
    _scale(axes, axis, [v for d in found for v in (d.p5, d.p95) if v is not None])
    for place, row in enumerate(rows):
        d = row.distribution
        if d.p5 is None or d.p25 is None or d.median is None or d.p75 is None or d.p95 is None:
            continue
        _line(canvas, place, row.label, axis.tick(d.median))
        shade = colour(row.colour)
        axes.plot([d.p5, d.p95], [place] * 2, color=shade, linewidth=1.6, alpha=0.6)
        axes.plot([d.p25, d.p75], [place] * 2, color=shade, linewidth=7, alpha=0.6, solid_capstyle="butt")
        axes.plot([d.median], [place], "o", markersize=8, color=shade, markeredgecolor=colour("paper"))
    return canvas


def _histograms(rows: Sequence[Histogram], axis: Axis) -> Canvas:
    single = len(rows) == 1
    tall = 190 if single else _PANEL
    canvas = Canvas(tall * len(rows) + _foot(axis))
    # a bar of whole numbers from 3 up to 5 stands for 3 and 4: it is drawn around them
    shift = 0.5 if axis.whole else 0.0
    edges = [edge - shift for row in rows for b in row.distribution.bins for edge in (b.low, b.high)]
    for place, row in enumerate(rows):
        last = place == len(rows) - 1
        top = place * tall
        axes = canvas.axes(_MARGIN, top + 26, _MARGIN, canvas.height - top - tall)
        _bins(axes, row, shift)
        _scale(axes, axis, edges)
        if not last:
            axes.set_xticklabels([])
            axes.set_xlabel("")
        median = row.distribution.median
        if median is not None:
            axes.axvline(median, color=colour("ink"), linewidth=1.4, dashes=(2, 2))
        said = f"median {axis.tick(median)}" if median is not None else ""
        words = "" if single else row.label
        canvas.text(_EDGE, top + 16, words, color=colour(row.colour), weight="bold", limit=34)
        canvas.text(WIDTH - _EDGE, top + 16, said, ha="right", color=colour("muted"))
    return canvas


def _bins(axes: Axes, row: Histogram, shift: float) -> None:
    axes.set_yticks([])
    bins: Sequence[Bin] = row.distribution.bins
    axes.set_ylim(0, max((b.count for b in bins), default=0) * 1.04 or 1)
    axes.bar(
        [b.low - shift for b in bins], [b.count for b in bins], width=[max(b.high - b.low, 1e-9) for b in bins],
        align="edge", color=colour(row.colour), edgecolor=colour("paper"), linewidth=0.8,
    )  # fmt: skip


def _curves(chart: Curves) -> Canvas:
    rows, x, y, log = chart
    canvas = Canvas(270)
    axes = canvas.axes(52, 14, 16, _FOOT)
    axes.spines["left"].set_visible(True)
    axes.spines["left"].set_color(colour("rule"))
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for row in rows:
        axes.plot(
            row.x, row.y, color=colour(row.colour), linewidth=1.4 if row.dashed else 2.2,
            linestyle=(0, (3, 2.5)) if row.dashed else "solid", marker="" if log or row.dashed else "o",
        )  # fmt: skip
    axes.minorticks_off()
    for get, put in ((axes.get_xlim, axes.set_xticks), (axes.get_ylim, axes.set_yticks)):
        places = _decades(*get()) if log else [0, 0.25, 0.5, 0.75, 1]
        put(places, [_short(place) for place in places])
    axes.grid(visible=True, color=colour("rule"), linewidth=0.7)
    axes.set_xlabel(x, color=colour("muted"))
    canvas.text(_EDGE, 10, y, color=colour("muted"))
    return canvas


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten within, with twos and fives between them where they are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1,), (1, 3), (1, 2, 5)):
        found = [s * 10.0**e for e in range(first, last + 1) for s in steps if low <= s * 10.0**e <= high]
        if len(found) >= 3:
            return found
    return found


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _cells(chart: Cells) -> Canvas:
    """The more, the stronger. Rows and columns are numbered from 1."""
    from matplotlib.collections import PolyCollection

    rows, columns, planned, accepted = chart
    side = min((WIDTH - 168 - _EDGE) / max(columns, 1), 30)
    left = WIDTH - side * columns - _EDGE  # what the cells leave is for the rows' names
    tall = max(min(side, 26.0), 13.0)
    canvas = Canvas(24 + tall * len(rows) + 6)
    axes = canvas.axes(left, 24, _EDGE, 6)
    axes.set_xlim(0, columns)
    axes.set_ylim(len(rows), 0)
    axes.set_axis_off()
    most = max((count for row in accepted for count in row), default=0)
    squares: dict[int, list[list[tuple[float, float]]]] = {}
    for i, row in enumerate(accepted):
        canvas.text(
            left - 7,
            24 + tall * (i + 0.5) + 4,
            f"{shorten(rows[i], int(left / 6.6) - 4)}  {i + 1}",
            ha="right",
            size=_fitting(tall),
        )
        for j, count in enumerate(row):
            level = shade_of(count, most)
            squares.setdefault(level, []).append([(j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1)])
            _mark(axes, i, j, count, planned[i][j], level, side, tall)
    for level, shapes in sorted(squares.items()):
        axes.add_collection(
            PolyCollection(
                shapes,
                facecolor=colour(f"level-{level}"),
                edgecolor=colour("paper"),
                linewidth=1.2 if side > 12 else 0.6,
            ),
            autolim=False,
        )
    every = 1 if side >= 15 else 5
    for j in range(columns):
        if (j + 1) % every == 0 or j == 0:
            canvas.text(left + side * (j + 0.5), 17, str(j + 1), ha="center", color=colour("muted"), size=11)
    return canvas


def _mark(axes: Axes, i: int, j: int, count: int, planned: int, level: int, side: float, tall: float) -> None:
    """What stands in a cell: its count where there is room, a cross where all was lost."""
    lost = planned > 0 and count == 0
    text = "×" if lost else number(count) if count < 1000 else f"{count / 1000:.1f}k"
    if not lost and (not count or len(text) * 6.6 > side - 3 or tall < 15):
        return
    shade = colour("vermillion") if lost else colour("paper" if level > LEVELS // 2 else "ink")
    axes.text(
        j + 0.5,
        i + 0.5,
        text,
        ha="center",
        va="center_baseline",
        color=shade,
        size=min(11, tall - 3),
        zorder=5,
    )


def _fitting(tall: float) -> float:
    return min(11.0, tall - 2.5)


def _foot(axis: Axis) -> float:
    return _FOOT if axis.title else _TICKS


def _rows(count: int, foot: float, margin: float = _MARGIN) -> tuple[Canvas, Axes]:
    """A picture with a line of words and a place for a mark in each row; row i is at y = i."""
    canvas = Canvas(count * _ROW + foot)
    axes = canvas.axes(margin, 0, margin, foot)
    # the mark is at 27 of the row's 38 units
    axes.set_ylim(count - 27 / _ROW, -27 / _ROW)
    axes.set_yticks([])
    return canvas, axes


def _line(canvas: Canvas, place: int, words: str, said: str) -> None:
    """The line above a mark: words, and the number at the right."""
    behind = {"facecolor": colour("card"), "edgecolor": "none", "pad": 1.5}  # no rule goes through words
    # of two names, what is measured and an arm's, the second has the room that the first leaves, or a third
    room = max(12, 60 - len(said))
    head, dot, arm = words.rpartition(" · ")
    tail = dot + shorten(arm, max(room // 3, room - len(head) - 3)) if dot else ""
    canvas.text(
        _EDGE,
        place * _ROW + 16,
        shorten(head if dot else words, room - len(tail)) + tail,
        limit=80,
        bbox=behind,
    )
    canvas.text(WIDTH - _EDGE, place * _ROW + 16, said, ha="right", color=colour("muted"), bbox=behind)


def _scale(axes: Axes, axis: Axis, values: Sequence[float]) -> None:
    """Limits that hold all values, round ticks, the title."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = low if axis.low is None else min(low, axis.low)
    high = high if axis.high is None else max(high, axis.high)
    if high - low < 1e-9:
        low, high = (
            (low - 0.5, high + 0.5)
            if axis.whole
            else (low - abs(low) * 0.1 - 1e-3, high + abs(high) * 0.1 + 1e-3)
        )
    slack = (high - low) * _BEYOND
    axes.set_xlim(low - slack, high + slack)
    places = [float(p) for p in range(math.ceil(low), math.floor(high) + 1)] if axis.log else []
    if len(places) < 2:
        places = ticks(low, high, 5, whole=axis.whole)
    set_ticks(axes, places, [axis.tick(place) for place in places])
    axes.set_xlabel(axis.title, color=colour("muted"))
