"""Marks that every turn of a reply has, around its text: they belong to the layout, and nobody says them.

    Teacher              ; Teacher         | Teacher || …       [turn1]            Teacher — *…*
    > Good morning!      : Good morning!   |-                   speaker = …        Student — *…*

A mark counts only if all turns have it (the last one may lack the marks behind a turn), so that a
quotation, a list or an emphasis in some turns stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgen.reading.lines.line import Lines, RoleLine
from edgen.reading.lines.role_lines import decode_text

_LEAST = 4  # turns: fewer may well agree by chance
_LEADING = "|>:=~»→-–—"  # what no speech begins with
_DASHES = (
    "|>»—–"  # nor one behind a bare name and a colon, where the other marks may be a list's or a text's own
)
_QUOTES = (">", "|", ":")  # what begins each line of a text
_EMPHASIS = ("**", "__", "*", "_")
_DIGITS = re.compile(r"\d+")
# Lines in front of the next turn that hold no speech: no word, or one with a number or in brackets.
_BETWEEN = re.compile(
    r"(?:\n[^\S\n]*(?:[^\w\n]{1,20}(?:\w{1,20}[^\w\n]{0,3})?|\w{0,20}[ ]?0[^\w\n]{0,3})?(?=\n|\Z)){1,3}\Z"
)


def drop_shared_marks(found: Lines) -> None:
    """Take the marks that all turns have out of their bodies."""
    lines = found.lines
    if len(lines) < _LEAST:
        return
    first = lines[0].body.strip()
    bare = found.plain and not lines[0].prefix.strip() and lines[0].body[:1] != "\n"
    leading = _DASHES if bare else _LEADING
    if first[:1] in leading:
        _drop_leading(lines, leading)
    if "\n" in first:
        _drop_between(lines)
    if lines[0].label.endswith("|") and "|" in first.strip("|"):
        _drop_columns(lines)
    if (mark := next((mark for mark in _EMPHASIS if first.startswith(mark)), None)) is not None:
        _drop_emphasis(lines, mark)


def _drop_leading(lines: Sequence[RoleLine], leading: str) -> None:
    """The marks with which all texts begin."""
    texts = [line.body.lstrip() for line in lines]
    marks = texts[0][: len(texts[0]) - len(texts[0].lstrip(f"{leading} "))]
    while not all(text.startswith(marks) for text in texts):
        marks = marks[:-1]
    if any(text == marks for text in texts):
        return
    for line, text in zip(lines, texts, strict=True):
        line.body = text[len(marks) :]
        if marks.strip() in _QUOTES:
            line.body = line.body.replace(f"\n{marks}", "\n")
        if line.body.startswith('"'):
            decode_text(line)


def _drop_between(lines: Sequence[RoleLine]) -> None:
    """The lines with which all bodies end in front of the next turn, numbers apart."""
    bodies = [_DIGITS.sub("0", line.body.rstrip()) for line in lines[:-1]]
    found = _BETWEEN.search(bodies[0])
    if found is None or not found[0].strip() or not all(body.endswith(found[0]) for body in bodies):
        return
    for line in lines[:-1]:
        for _ in filter(str.strip, found[0].split("\n")):
            line.body = line.body.rstrip().rpartition("\n")[0]
    # Behind the last turn such a line says something else, as in `[result]`.
    first = re.escape(found[0].lstrip()[0])
    lines[-1].body = re.sub(rf"\n[^\S\n]*{first}[^\n]{{0,40}}(?=\n|\Z)", "\n", lines[-1].body, count=1)


def _drop_columns(lines: Sequence[RoleLine]) -> None:
    """The columns of a table behind the longest, which has what is said."""
    rows = [line.body.partition("\n")[0].strip(" |").split("|") for line in lines]
    if len({len(row) for row in rows}) > 1:
        return
    lengths = [sum(map(len, column)) for column in zip(*rows, strict=True)]
    said = lengths.index(max(lengths))
    for line, row in zip(lines, rows, strict=True):
        line.body = "\n".join((row[said].strip(), line.body.partition("\n")[2]))


def _drop_emphasis(lines: Sequence[RoleLine], mark: str) -> None:
    """The marks between which all texts stand."""
    texts = [line.body.strip() for line in lines]
    # Lines below the last turn are no part of it.
    texts[-1] = texts[-1].partition("\n")[0].rstrip()
    if not all(_is_wrapped(text, mark) for text in texts):
        return
    for line, text in zip(lines, texts, strict=True):
        line.body = line.body.replace(text, text[len(mark) : -len(mark)], 1)


def _is_wrapped(text: str, mark: str) -> bool:
    """Return whether a text stands between two such marks, and holds no other."""
    inside = text[len(mark) : -len(mark)]
    return (
        len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark[0] not in inside
    )
