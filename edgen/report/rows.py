"""Pictures made of rows: bars, dots on their intervals, strips of quantiles.

A row with short words is one line: words, mark, number. Longer words are above their mark, so that labels of
any length are readable on a narrow screen. If arms share a row's words ("words · arm"), the words appear
once, with one line per arm below: name, mark and number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from edgen.evaluation.drawings import ARM_SEPARATOR, Bars, Histograms, Intervals
from edgen.report.canvas import WIDTH, Canvas, compute_foot, make_placeholder, set_scale
from edgen.report.text_width import measure_width, truncate, truncate_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGE = 2
_MARGIN = 14  # units next to an axis: half of a tick's text
_ROW, _MARK = 28, 21  # units of a line of words with its mark below, and position of the mark
_HEAD, _LINE, _GAP = 18, 16, 6  # units of a head of several lines, of a line, and after the last line
_LEAST_MARK = 105  # minimum units for marks in a line with words and a number
_LEAST_NAME = 70  # minimum units for a long arm's name
_BAR = 7  # height of a bar, in units


class Rows:
    """A canvas with words and numbers, and axes whose y is in units from the top. `marks` has the y of each
    row's mark."""

    def __init__(self, labels: Sequence[str], said: Sequence[str], foot: float, margin: float = _MARGIN):
        groups = _group(labels, said)
        lines = [(name, said[place]) for group in groups.values() for place, name in group if name]
        left = right = margin
        if lines:
            right = max(measure_width(text) for _, text in lines) + 10
            room = max(_LEAST_NAME, WIDTH - right - _LEAST_MARK - 10)
            left = min(max(measure_width(name) for name, _ in lines), room) + 10
        self.marks = [0.0] * len(labels)
        words: list[tuple[float, str, str, str]] = []  # baseline, head, name, number
        y = 0.0
        for head, group in groups.items():
            (first, name), *more = group
            if not name and not more:
                words.append((y + 12, head, "", said[first]))
                self.marks[first] = y + _MARK
                y += _ROW
                continue
            if head:
                words.append((y + 13, head, "", ""))
                y += _HEAD
            for place, name in group:
                words.append((y + 12, "", name, said[place]))
                self.marks[place] = y + 8
                y += _LINE
            y += _GAP
        self.canvas = Canvas(y + foot)
        self.axes: Axes = self.canvas.make_axes(left, 0, right, foot)
        self.axes.set_ylim(max(y, 1), 0)
        self.axes.set_yticks([])
        for baseline, head, name, text in words:
            self._write(baseline, head, name, text, left)

    def _write(self, y: float, head: str, name: str, said: str, left: float) -> None:
        # no grid lines across words
        behind = {"facecolor": make_placeholder("card"), "edgecolor": "none", "pad": 1.5}
        if head:
            room = WIDTH - 2 * EDGE - (measure_width(said) + 10 if said else 0)
            self.canvas.write_text(EDGE, y, _fit_label(head, room), bbox=behind)
        if name:
            self.canvas.write_text(EDGE, y, truncate_ends(name, left - 10))
        if said:
            self.canvas.write_text(
                WIDTH - EDGE, y, said, ha="right", color=make_placeholder("muted"), bbox=behind
            )


def _group(labels: Sequence[str], said: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
    """Group rows by their shared words: (place, name in the row's line), "" if its words are above its
    mark."""
    split = [label.rpartition(ARM_SEPARATOR) for label in labels]
    shared = Counter(head for head, _, _ in split if head)
    widest = max(map(measure_width, labels), default=0) + max(map(measure_width, said), default=0)
    if all(labels) and max(shared.values(), default=1) == 1 and widest + 20 + _LEAST_MARK <= WIDTH:
        return {"": [*enumerate(labels)]}
    groups: dict[str, list[tuple[int, str]]] = {}
    for place, (label, (head, _, arm)) in enumerate(zip(labels, split, strict=True)):
        together = shared[head] > 1
        groups.setdefault(head if together else label, []).append((place, arm if together else ""))
    return groups


def _fit_label(words: str, room: float) -> str:
    """Truncate words to the room. If there are two names, the second keeps at least a third."""
    head, separator, arm = words.rpartition(ARM_SEPARATOR)
    if not separator:
        return truncate(words, room)
    tail = separator + truncate_ends(arm, max(room / 3, room - measure_width(head + separator)))
    return truncate(head, room - measure_width(tail)) + tail


def draw_bars(chart: Bars) -> Canvas:
    """Draw bars from 0 on a track that shows the whole; no track if the longest bar sets the scale."""
    rows = chart.rows
    found = Rows([row.label for row in rows], [row.said for row in rows], 4, EDGE)
    values = [row.value if math.isfinite(row.value) else 0.0 for row in rows]
    top = chart.top or max(values, default=0) or 1
    found.axes.set_xlim(0, top)
    found.axes.spines["bottom"].set_visible(False)
    found.axes.set_xticks([])
    for row, value, y in zip(rows, values, found.marks, strict=True):
        if chart.top:
            found.axes.barh(y, top, height=_BAR, color=make_placeholder("track"))
        found.axes.barh(y, min(value, top), height=_BAR, color=make_placeholder(row.colour))
    return found.canvas


def draw_intervals(chart: Intervals) -> Canvas:
    """Draw a dot on a line for each value and its interval; the reference is a dashed line at each mark."""
    rows, axis, reference = chart
    found = Rows([row.label for row in rows], [row.said for row in rows], compute_foot(axis.title))
    axes = found.axes
    known = [v for row in rows for v in (row.value, row.low, row.high) if _is_finite(v)]
    set_scale(axes, axis, [*known, *([] if reference is None else [reference])])
    if reference is not None:
        # only next to the marks: a longer line would cross the words
        axes.vlines(
            [reference] * len(rows), [y - 6 for y in found.marks], [y + 6 for y in found.marks],
            color=make_placeholder("muted"), linewidth=1.4, linestyle=(0, (2, 2)),
        )  # fmt: skip
    for row, y in zip(rows, found.marks, strict=True):
        if _is_finite(row.low) and _is_finite(row.high):
            axes.plot(
                [row.low, row.high], [y] * 2, color=make_placeholder(row.colour), linewidth=2.4, alpha=0.55
            )
        if _is_finite(row.value):
            face = make_placeholder("card") if row.hollow else make_placeholder(row.colour)
            axes.plot(
                [row.value], [y], "o", markersize=7, markerfacecolor=face, markeredgewidth=1.8,
                markeredgecolor=make_placeholder(row.colour), clip_on=False,
            )  # fmt: skip
    return found.canvas


def draw_strips(chart: Histograms) -> Canvas:
    """Draw each distribution as a strip: the median, the middle half, 5% to 95%."""
    rows, axis = chart
    said = ["" if row.distribution.median is None else axis.tick(row.distribution.median) for row in rows]
    found = Rows([row.label for row in rows], said, compute_foot(axis.title))
    axes = found.axes
    ends = [v for row in rows for v in (row.distribution.p5, row.distribution.p95) if v is not None]
    set_scale(axes, axis, ends)
    for row, y in zip(rows, found.marks, strict=True):
        d, shade = row.distribution, make_placeholder(row.colour)
        if d.p5 is None or d.p25 is None or d.median is None or d.p75 is None or d.p95 is None:
            continue
        axes.plot([d.p5, d.p95], [y] * 2, color=shade, linewidth=1.6, alpha=0.6)
        axes.plot([d.p25, d.p75], [y] * 2, color=shade, linewidth=7, alpha=0.6, solid_capstyle="butt")
        axes.plot([d.median], [y], "o", markersize=8, color=shade, markeredgecolor=make_placeholder("card"))
    return found.canvas


def _is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
