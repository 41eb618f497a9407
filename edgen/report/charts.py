"""The kinds of picture: rows of marks (`rows`), stacked bars, histograms, curves, cells.

Call them within `canvas.configure_drawing()`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgen.core.text import number
from edgen.evaluation.drawings import (
    LEVELS,
    Axis,
    Bars,
    Cells,
    Curves,
    HistogramBars,
    Histograms,
    Intervals,
    Picture,
    Stack,
    Stacks,
    shade_of,
)
from edgen.report.canvas import WIDTH, Canvas, compute_foot, make_placeholder, set_scale
from edgen.report.rows import EDGE, draw_bars, draw_intervals, draw_strips
from edgen.report.text_width import measure_width, truncate_ends
from edgen.stats.distributions import Bin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS = 20  # most rows of a picture that is not collapsed
_STACK = 46  # units of a line of words and its stacked bar
_BOLD = 1.15  # relative width of bold text
_MARGIN = 14  # units next to an axis: half of a tick's text
_SINGLE, _PANEL = 120, 60  # units of a single histogram, and of one among several
_CURVES = 190
_TOP = 20  # units above cells, for the numbers of the columns
_NAMES = 160  # minimum units next to cells, for the names of the rows


def draw(picture: Picture) -> str:
    """Return the `<svg>` of a picture."""
    chart = picture.chart
    match chart:
        case Bars():
            canvas = draw_bars(chart)
        case Stacks():
            canvas = _draw_stacks(chart.rows)
        case Intervals():
            canvas = draw_intervals(chart)
        case Histograms():
            small = len(chart.rows) <= 3 and all(row.distribution.bins for row in chart.rows)
            canvas = _draw_histograms(chart.rows, chart.axis) if small else draw_strips(chart)
        case Curves():
            canvas = _draw_curves(chart)
        case Cells():
            canvas = _draw_cells(chart)
    return canvas.render_svg(picture.name, picture.alternative)


def make_key(picture: Picture) -> list[tuple[str, tuple[str, ...]]]:
    """Return the meanings of the numbers of rows and columns, except rows whose full names are in the
    picture."""
    chart = picture.chart
    if not isinstance(chart, Cells):
        return list(picture.key)
    side, _, size = _choose_cell_sizes(chart)
    whole = all(
        measure_width(name, size) <= _compute_room_for_name(chart, side, i, size)
        for i, name in enumerate(chart.rows)
    )
    return [entry for entry in picture.key if not (whole and entry[1] == tuple(chart.rows))]


def count_folded_rows(picture: Picture) -> int:
    """Return the number of rows of a picture that is collapsed because it is long; else 0."""
    chart = picture.chart
    count = len(chart.rows) if isinstance(chart, Bars | Intervals | Histograms | Stacks) else 0
    return count if count > _MOST_ROWS else 0


def _draw_stacks(rows: Sequence[Stack]) -> Canvas:
    """Write counts in their pieces if they fit."""
    canvas = Canvas(len(rows) * _STACK + 4)
    axes = canvas.make_axes(EDGE, 0, EDGE, 4)
    axes.set_ylim(len(rows) * _STACK, 0)
    axes.set_xlim(0, 1)
    axes.set_axis_off()
    room = WIDTH - 2 * EDGE
    for place, (words, said, pieces) in enumerate(rows):
        top = place * _STACK
        name = truncate_ends(words, (room - measure_width(said) - 12) / _BOLD)
        canvas.write_text(EDGE, top + 14, name, weight="bold")
        canvas.write_text(WIDTH - EDGE, top + 14, said, ha="right", color=make_placeholder("muted"))
        total = sum(count for _, count in pieces) or 1
        left = 0.0
        for shade, count in pieces:
            if not count:
                continue
            width = count / total
            # a sliver is at least three units wide, so that it is visible
            axes.barh(
                top + 31, max(width, 3 / room), left=min(left, 1 - 3 / room), height=22,
                color=make_placeholder(shade), edgecolor=make_placeholder("card"), linewidth=0.8,
            )  # fmt: skip
            text = number(count)
            if width * room > measure_width(text) + 12:
                axes.text(
                    left + width / 2, top + 31, text, ha="center", va="center_baseline",
                    color=make_placeholder("card"), weight="bold",
                )  # fmt: skip
            left += width
    return canvas


def _draw_histograms(rows: Sequence[HistogramBars], axis: Axis) -> Canvas:
    single = len(rows) == 1
    tall = _SINGLE if single else _PANEL
    canvas = Canvas(tall * len(rows) + compute_foot(axis.title))
    # a bar from 3 up to 5 covers the whole numbers 3 and 4, so it is drawn around them
    shift = 0.5 if axis.whole else 0.0
    edges = [edge - shift for row in rows for b in row.distribution.bins for edge in (b.low, b.high)]
    for place, row in enumerate(rows):
        last = place == len(rows) - 1
        top = place * tall
        axes = canvas.make_axes(_MARGIN, top + 21, _MARGIN, canvas.height - top - tall)
        _draw_bins(axes, row, shift)
        set_scale(axes, axis, edges)
        if not last:
            axes.set_xticklabels([])
            axes.set_xlabel("")
        median = row.distribution.median
        if median is not None:
            axes.axvline(median, color=make_placeholder("ink"), linewidth=1.4, dashes=(2, 2))
        said = f"median {axis.tick(median)}" if median is not None else ""
        canvas.write_text(WIDTH - EDGE, top + 14, said, ha="right", color=make_placeholder("muted"))
        if not single:
            canvas.draw_swatch(EDGE, top + 14, row.colour)
            canvas.write_text(EDGE + 15, top + 14, truncate_ends(row.label, WIDTH - measure_width(said) - 35))
    return canvas


def _draw_bins(axes: Axes, row: HistogramBars, shift: float) -> None:
    axes.set_yticks([])
    bins: Sequence[Bin] = row.distribution.bins
    axes.set_ylim(0, max((b.count for b in bins), default=0) * 1.04 or 1)
    axes.bar(
        [b.low - shift for b in bins], [b.count for b in bins],
        width=[max(b.high - b.low, 1e-9) for b in bins],
        align="edge", color=make_placeholder(row.colour), edgecolor=make_placeholder("card"), linewidth=0.8,
    )  # fmt: skip


def _draw_curves(chart: Curves) -> Canvas:
    rows, x, y, log = chart
    canvas = Canvas(_CURVES)
    axes = canvas.make_axes(52, 18, 16, compute_foot(x))
    axes.spines["left"].set_visible(True)
    axes.spines["left"].set_color(make_placeholder("rule"))
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for row in rows:
        axes.plot(
            row.x, row.y, color=make_placeholder(row.colour), linewidth=1.4 if row.dashed else 2.2,
            linestyle=(0, (3, 2.5)) if row.dashed else "solid", marker="" if log or row.dashed else "o",
        )  # fmt: skip
    axes.minorticks_off()
    for get, put in ((axes.get_xlim, axes.set_xticks), (axes.get_ylim, axes.set_yticks)):
        places = _list_decades(*get()) if log else [0, 0.25, 0.5, 0.75, 1]
        put(places, [_format_short(place) for place in places])
    axes.grid(visible=True, color=make_placeholder("rule"), linewidth=0.7)
    axes.set_xlabel(x, color=make_placeholder("muted"))
    canvas.write_text(EDGE, 11, y, color=make_placeholder("muted"))
    return canvas


def _list_decades(low: float, high: float) -> list[float]:
    """Return powers of ten within the range; with twos and fives if there are few powers."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1,), (1, 3), (1, 2, 5)):
        found = [s * 10.0**e for e in range(first, last + 1) for s in steps if low <= s * 10.0**e <= high]
        if len(found) >= 3:
            return found
    return found


def _format_short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _draw_cells(chart: Cells) -> Canvas:
    """Draw cells; larger counts have stronger colours. Rows and columns are numbered from 1."""
    from matplotlib.collections import PolyCollection

    rows, columns, planned, accepted = chart
    side, tall, size = _choose_cell_sizes(chart)
    left = WIDTH - side * columns - EDGE  # the rest is for the rows' names
    canvas = Canvas(_TOP + tall * len(rows) + 4)
    axes = canvas.make_axes(left, _TOP, EDGE, 4)
    axes.set_xlim(0, columns)
    axes.set_ylim(len(rows), 0)
    axes.set_axis_off()
    most = max((count for row in accepted for count in row), default=0)
    squares: dict[int, list[list[tuple[float, float]]]] = {}
    for i, row in enumerate(accepted):
        baseline = _TOP + tall * (i + 0.5) + 4
        canvas.write_text(
            left - 7, baseline, str(i + 1), ha="right", size=size, color=make_placeholder("muted")
        )
        room = _compute_room_for_name(chart, side, i, size)
        canvas.write_text(EDGE + room, baseline, rows[i], room=room, ha="right", size=size)
        for j, count in enumerate(row):
            level = shade_of(count, most)
            squares.setdefault(level, []).append([(j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1)])
            _mark(axes, i, j, count, planned[i][j], level, side, tall)
    for level, shapes in sorted(squares.items()):
        axes.add_collection(
            PolyCollection(
                shapes,
                facecolor=make_placeholder(f"level-{level}"),
                edgecolor=make_placeholder("card"),
                linewidth=1.2 if side > 12 else 0.6,
            ),
            autolim=False,
        )
    every = 1 if side >= 15 else 5
    for j in range(columns):
        if (j + 1) % every == 0 or j == 0:
            canvas.write_text(
                left + side * (j + 0.5), 14, str(j + 1), ha="center", color=make_placeholder("muted"), size=11
            )
    return canvas


def _choose_cell_sizes(chart: Cells) -> tuple[float, float, float]:
    """Return width and height of a cell, and the size of the rows' names."""
    side = min((WIDTH - _NAMES - EDGE) / max(chart.columns, 1), 28)
    tall = max(min(side, 22.0), 13.0)
    return side, tall, min(11.0, tall - 2.5)


def _compute_room_for_name(chart: Cells, side: float, row: int, size: float) -> float:
    """Return the units for a row's name, left of its number and the cells."""
    return WIDTH - side * chart.columns - 2 * EDGE - 7 - measure_width(f"  {row + 1}", size)


def _mark(axes: Axes, i: int, j: int, count: int, planned: int, level: int, side: float, tall: float) -> None:
    """Mark a cell: its count if it fits, a cross if everything was lost."""
    lost = planned > 0 and count == 0
    text = "×" if lost else number(count) if count < 1000 else f"{count / 1000:.1f}k"
    if not lost and (not count or len(text) * 6.6 > side - 3 or tall < 15):
        return
    shade = (
        make_placeholder("vermillion") if lost else make_placeholder("card" if level > LEVELS // 2 else "ink")
    )
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
