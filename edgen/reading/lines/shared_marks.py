"""Marks that every turn of a reply has, around its text: they belong to the layout, and nobody says them.

    Teacher              ; Teacher         | Teacher || …       [turn1]            Teacher — *…*
    > Good morning!      : Good morning!   |-                   speaker = …        Student — *…*

A mark counts only if all turns have it (but for what stands behind them, which the last need not have), so that a
quotation, a list or an emphasis in some turns stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgen.reading.lines.line import RoleLine

_LEAST = 4  # turns: fewer may well agree by chance
_LEADING = "|>:=~»→-–—"  # what no speech begins with
_QUOTES = (">", "|", ":")  # what begins each line of a text
_EMPHASIS = ("**", "__", "*", "_")
_DIGITS = re.compile(r"\d+")
# Lines in front of the next turn that hold no speech: no word, or one with a number or in brackets.
_BETWEEN = re.compile(
    r"(?:\n[^\S\n]*(?:[^\w\n]{1,20}(?:\w{1,20}[^\w\n]{0,3})?|\w{0,20}[ ]?0[^\w\n]{0,3})?(?=\n|\Z)){1,3}\Z"
)


def drop_shared_marks(lines: Sequence[RoleLine]) -> bool:
    """Take the marks that all turns have out of their bodies; return whether there were any."""
    if len(lines) < _LEAST:
        return False
    dropped = _drop_leading(lines)
    dropped = _drop_between(lines) or dropped
    return _drop_emphasis(lines) or dropped


def _drop_leading(lines: Sequence[RoleLine]) -> bool:
    texts = [line.body.lstrip() for line in lines]
    if {text[:1] for text in texts} - {*_LEADING}:
        return False
    marks = texts[0][: len(texts[0]) - len(texts[0].lstrip(f"{_LEADING} "))]
    while not all(text.startswith(marks) for text in texts):
        marks = marks[:-1]
    for line, text in zip(lines, texts, strict=True):
        line.body = (
            text[len(marks) :].replace(f"\n{marks}", "\n") if marks.strip() in _QUOTES else text[len(marks) :]
        )
    return bool(marks)


def _drop_between(lines: Sequence[RoleLine]) -> bool:
    """The lines with which all bodies end in front of the next turn, numbers apart."""
    bodies = [_DIGITS.sub("0", line.body.rstrip()) for line in lines[:-1]]
    if "\n" not in bodies[0] or not (found := _BETWEEN.search(bodies[0])) or not found[0].strip():
        return False
    if not all(body.endswith(found[0]) for body in bodies):
        return False
    for line in lines[:-1]:
        for _ in filter(str.strip, found[0].split("\n")):
            line.body = line.body.rstrip().rpartition("\n")[0]
    # Behind the last turn such a line says something else, as in `[result]`.
    first = re.escape(found[0].lstrip()[0])
    lines[-1].body = re.sub(rf"\n[^\S\n]*{first}[^\n]{{0,40}}(?=\n|\Z)", "\n", lines[-1].body, count=1)
    return True


def _drop_emphasis(lines: Sequence[RoleLine]) -> bool:
    texts = [line.body.strip() for line in lines]
    mark = next((mark for mark in _EMPHASIS if texts[0].startswith(mark)), None)
    # What stands behind the last turn may follow it on lines of its own.
    texts[-1] = texts[-1].partition("\n")[0].rstrip()
    if mark is None or not all(_is_wrapped(text, mark) for text in texts):
        return False
    for line, text in zip(lines, texts, strict=True):
        line.body = line.body.replace(text, text[len(mark) : -len(mark)], 1)
    return True


def _is_wrapped(text: str, mark: str) -> bool:
    """Return whether a text stands between two such marks, and holds no other."""
    inside = text[len(mark) : -len(mark)]
    return (
        len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark[0] not in inside
    )
