"""Breaking of lines that are longer than a terminal is wide, which otherwise breaks them anywhere.

Results are laid out for `WIDE` columns. On a narrower terminal, a paragraph that was wrapped for that width
is joined and wrapped anew, the text after a label stays in its column, and the cells of a table stay whole.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from edgen.core.text import columns

WIDE = 80  # columns for which results are laid out
_LEAST_WRAPPED = 76  # columns of the narrowest wrapped paragraphs
_WIDEST_ROW = 110  # columns of a table's row; longer lines are prose
_CELL_INDENT = 4  # columns before the cells of a row that follow on the next line
_PLAIN = re.compile(r"[a-z'’-]+[,.;:]?")  # a word in lower case, not a path or a name
_GAP = re.compile(r"(?<=[^\s.?!]) {2,}(?=\S)")  # between a label and a text, or two cells


class _Paragraph(NamedTuple):
    """A line, or the lines of a wrapped paragraph, joined."""

    text: str
    last: str  # the last line as it was laid out
    hang: int | None = None  # columns before its second line; None for a single line


def fold(text: str, width: int) -> str:
    """Break the lines of a text that are longer than `width` between words. 0: no change."""
    return "\n".join(_fold_line(line, width) for line in text.split("\n")) if width else text


def fold_lines(lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield the lines of a result with at most `width` columns, where words allow it. On a terminal that is
    narrower than `WIDE`, wrapped paragraphs are wrapped anew."""
    held: _Paragraph | None = None
    for line in itertools.chain.from_iterable(one.split("\n") for one in lines):
        if held is not None and width < WIDE and _is_continued_by(held, line):
            text = f"{held.text.rstrip()} {line.strip()}"
            held = _Paragraph(text, line, _measure_indent(line) if held.hang is None else held.hang)
            continue
        if held is not None:
            yield _fold_line(held.text, width, held.hang)
        held = _Paragraph(line, line)
    if held is not None:
        yield _fold_line(held.text, width, held.hang)


def _is_continued_by(held: _Paragraph, line: str) -> bool:
    """Return whether a line is the next one of a wrapped paragraph: its first word had no room in the line
    before, it is indented further, or as far and begins with a plain word, and it begins no sentence unless
    one has ended."""
    first = line.split(maxsplit=1)[:1]
    if not first or _GAP.search(line) or not held.last.strip():
        return False
    if columns(held.last) + 1 + columns(first[0]) <= _LEAST_WRAPPED or columns(held.last) > WIDE:
        return False
    if first[0][0].isupper() and not held.last.endswith((".", ",", ":", ";")):
        return False
    indent, start = _measure_indent(line), _measure_indent(held.text)
    if held.hang is not None:
        return indent == held.hang
    return indent > start or (indent == start and _PLAIN.fullmatch(first[0]) is not None)


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _fold_line(line: str, width: int, hang: int | None = None) -> str:
    """Break a line between words, or a table's row between cells. `hang`: columns before the second line, if
    they are known."""
    if columns(line) <= width or columns(line := line.rstrip()) <= width:
        return line
    indent = _measure_indent(line)
    if indent > width // 2:
        indent, line = _CELL_INDENT, f"{' ' * _CELL_INDENT}{line.lstrip(' ')}"
    gaps = [*_GAP.finditer(line)]
    label = gaps[0].end() if gaps else 0
    if hang is None and columns(line) > _WIDEST_ROW and (len(gaps) > 1 or label > width // 2):
        gaps, label = [], 0  # blanks in prose
    if hang is None and len(gaps) > 1 and gaps[0].start() <= width:
        return _fold_row(line, max(gap.start() for gap in gaps if gap.start() <= width), width)
    if label > width // 2:  # a label that leaves too little room has its own line
        return f"{line[: gaps[0].start()]}\n{_wrap(line[label:], width, ' ' * (indent + _CELL_INDENT))}"
    if hang is None or hang > width // 2:
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
