"""Breaking of lines that are longer than a terminal is wide, which otherwise breaks them anywhere.

The text after a label stays in its column, and the cells of a table stay whole.
"""

from __future__ import annotations

import re
import textwrap

from edgen.core.text import columns

_WIDEST_ROW = 110  # columns of a table's row; longer lines are prose
_CELL_INDENT = 4  # columns before the cells of a row that follow on the next line
_GAP = re.compile(r"(?<=[^\s.?!]) {2,}(?=\S)")  # between a label and a text, or two cells


def fold(text: str, width: int) -> str:
    """Break the lines of a text that are longer than `width` between words."""
    return "\n".join(_fold_line(line, width) for line in text.split("\n"))


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _fold_line(line: str, width: int) -> str:
    """Break a line between words, or a table's row between cells."""
    if columns(line) <= width or columns(line := line.rstrip()) <= width:
        return line
    indent = _measure_indent(line)
    if indent > width // 2:
        indent, line = _CELL_INDENT, f"{' ' * _CELL_INDENT}{line.lstrip(' ')}"
    gaps = [*_GAP.finditer(line)]
    label = gaps[0].end() if gaps else 0
    if columns(line) > _WIDEST_ROW and (len(gaps) > 1 or label > width // 2):
        gaps, label = [], 0  # blanks in prose
    if len(gaps) > 1 and gaps[0].start() <= width:
        return _fold_row(line, max(gap.start() for gap in gaps if gap.start() <= width), width)
    if label > width // 2:  # a label that leaves too little room has its own line
        return f"{line[: gaps[0].start()]}\n{_wrap(line[label:], width, ' ' * (indent + _CELL_INDENT))}"
    hang = label or indent
    widest = max(map(columns, line.split()))
    fits = [one for one in (hang, indent + _CELL_INDENT, indent) if one + widest <= width]
    return _wrap(line.lstrip(" "), width, " " * (fits or [hang])[0], " " * indent)


def _fold_row(line: str, cut: int, width: int) -> str:
    """Return a row in two lines or more: the cells up to the column `cut`, and the others, aligned as they
    were."""
    rest = " " * (_measure_indent(line) + _CELL_INDENT - 2) + line[cut:]
    if columns(rest) >= columns(line):
        rest = " " * (_measure_indent(line) + _CELL_INDENT) + line[cut:].lstrip(" ")
    return f"{line[:cut]}\n{_fold_line(rest, width)}"


def _wrap(text: str, width: int, indent: str, first: str | None = None) -> str:
    """Return a text in lines between words. `first`: the indent of the first line, if it is another."""
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)
