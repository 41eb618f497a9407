"""Tables without a row for each turn's label alone: columns of speakers, cells next to a turn's text.

Bars, commas, semicolons and tabulators separate columns. `gather_lines` makes lines of a text that was cut.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable, Sequence
from itertools import takewhile

from edgen.core.text import compile_later
from edgen.reading.lines.line import Lines, RoleLine, decode_text
from edgen.reading.lines.speakers import Speakers

_BAR = compile_later(r"(?<!\\)\|")
_CELL = compile_later(r'"([^\n]*)"(?=[^\S\n]*(?:\n|\Z))')
_CELLS = compile_later(r'\s*(?:"[^"\n]*"[,;\t][ ]?)+(?=")')
_CHANCE = compile_later(r"(?i)\W*(?:(?:the|final|estimated)\s)?probability[^.?!]*\Z")
_CELL_MARKS = ("|", "\t", ";", ",")  # between the cells of a table
_MOST_HEAD = 120  # characters of the names of columns
_OPENED = compile_later(r"(?<=\()[\"'](?=[^\W_]+\Z)")
_RULED = compile_later(r"[|: +=-]{5,}")


def cut_at_cells(text: str, known: Speakers) -> Lines | None:
    """Return the text cut at the cells of a table with a column for each speaker, without other columns."""
    lines = text.split("\n")
    for place, line in enumerate(lines):
        mark = next((mark for mark in _CELL_MARKS if mark in line), None)
        if mark is None or len(line) > _MOST_HEAD:
            continue
        speakers = [known.words.get(cell.strip(" *_").lower()) for cell in _split_cells(line, mark)]
        if len({*speakers} - {None}) != 2 or len(speakers) - speakers.count(None) != 2:
            continue
        rows = lines[place + 1 :]
        rows = rows[1:] if rows and _RULED.fullmatch(rows[0]) else rows
        cells = [
            *takewhile(
                lambda row: row[1:] and not _CHANCE.match(row[0]), (_split_cells(row, mark) for row in rows)
            )
        ]
        if any(len(row) != len(speakers) for row in cells):
            return None
        parts = [
            (role, cell) for row in cells for role, cell in zip(speakers, row, strict=True) if role and cell
        ]
        rest = "\n".join(["", *rows[len(cells) :]])
        return gather_lines([(None, "\n".join(lines[:place])), *parts, (None, rest)]) if parts else None
    return None


def _split_cells(row: str, mark: str) -> list[str]:
    """Return the cells of a table's row, without quotation marks around them."""
    if mark == "|":
        return [cell.strip() for cell in _BAR.split(row.strip().removeprefix("|").removesuffix("|"))]
    with contextlib.suppress(csv.Error):  # a carriage return, or too long a cell
        return [cell.strip() for cell in next(csv.reader([row], delimiter=mark, skipinitialspace=True), [])]
    return []


def gather_lines(parts: Iterable[tuple[str | None, str]], gap: str = "\n") -> Lines:
    """Return a text that was cut into these parts, each with a role or None, as lines.

    A part with a role starts a turn; a part without one continues the part before. `gap` stood between parts.
    """
    bodies: list[list[str]] = [[]]
    spoken: list[str] = []
    for role, said in parts:
        if role is None:
            bodies[-1].append(said)
        else:
            spoken.append(role)
            bodies.append([f" {said}"])
    lead, *texts = [gap.join(body) + gap[1:] for body in bodies]
    return Lines(f"\n{lead}", [*map(_make_line, spoken, texts)], plain=True)


def _make_line(role: str, body: str) -> RoleLine:
    return RoleLine(role, f"\n{role}:", body, "")


def find_opening_mark(text: str, start: int, end: int) -> str:
    """Return the quotation mark before a name in text[start:end] that closes only after the text; or ""."""
    mark = _OPENED.search(text, start, end)
    return mark[0] if mark is not None and text[end : end + 1] != mark[0] else ""


def decode(said: str, label: str = "") -> str:
    """Return a turn's text after a label, quoted letters decoded."""
    if not said.startswith(('"', "'")):
        return said
    line = RoleLine("", label, said, "")
    decode_text(line)
    return line.body


def drop_columns(lines: Sequence[RoleLine]) -> None:
    """Remove the columns of a table except the longest, which has the speech."""
    rows = [line.body.partition("\n")[0].strip(" |").split("|") for line in lines]
    if len({len(row) for row in rows}) > 1:
        return
    lengths = [sum(map(len, column)) for column in zip(*rows, strict=True)]
    said = lengths.index(max(lengths))
    for line, row in zip(lines, rows, strict=True):
        line.body = "\n".join((row[said].strip(), line.body.partition("\n")[2]))


def drop_quoted_cells(lines: Sequence[RoleLine]) -> None:
    """Remove quoted cells before the last one, which has the speech, and quotation marks of single cells."""
    heads = [_CELLS.match(line.body) for line in lines]
    for line, head in zip(lines, heads, strict=True) if all(heads) else ():
        line.body = line.body[head.end() :] if head else line.body
    if all(line.body[:1] == '"' for line in lines):
        return
    for line in lines:  # marks stand around cells that need them only
        if (cell := _CELL.match(line.body)) is not None:
            line.body = cell[1] + line.body[cell.end() :]
