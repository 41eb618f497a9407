"""Tables that people read and fill in with a spreadsheet: safe cells, new sheets, and sheets read back.

A spreadsheet runs a cell that begins with =, +, - or @. Some also look after leading white space and
quotation marks, drop a leading tab or carriage return, or read full-width signs as ordinary ones:
https://owasp.org/www-community/attacks/CSV_Injection. Text of a model or of a foreign file may be such a
cell.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from edgen.core.errors import DataError, UsageError
from edgen.core.files import explain_write_errors, replace_file

_FORMULA = re.compile(r"""[\t\r]|[\s"'`“”„‘’‚«»＂＇\u200b\u2060\ufeff\x00-\x1f]*[=+\-@＝＋－＠]""")
APOSTROPHE = "'"
_LONGEST = 30_000  # characters of a cell: some programs cut at 32,767
_DELIMITERS = ",;\t"


def disarm(text: str) -> str:
    """Return the text, with an apostrophe before it if a spreadsheet could read it as a formula."""
    return APOSTROPHE + text if _FORMULA.match(text) else text


def cut_cell(text: str) -> str:
    """Return the text in a length that every spreadsheet takes."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def render_sheet_line(cells: Sequence[str | int | None]) -> bytes:
    """Return a row as a line of CSV, its texts disarmed."""
    line = io.StringIO()
    csv.writer(line).writerow([disarm(cell) if isinstance(cell, str) else cell for cell in cells])
    return line.getvalue().encode()


def render_sheet_head(columns: Sequence[str]) -> bytes:
    """Return the first line, with the mark by which spreadsheets know UTF-8."""
    return codecs.BOM_UTF8 + render_sheet_line(columns)


def write_sheet(path: Path, head: bytes, lines: Iterable[bytes], nothing: str) -> int:
    """Write a new file and return the number of its lines below the head. Raises UsageError if `path` exists,
    since it may be filled in, and with the message `nothing` if there are no lines."""
    if not path.name or path.is_dir():
        raise UsageError(f"--sheet {path}: this is a folder; name a file in it.")
    count = 0
    with explain_write_errors(path):
        try:
            with replace_file(path, new=True) as file:
                file.write(head)
                for line in lines:
                    file.write(line)
                    count += 1
                if not count:
                    raise UsageError(nothing)
        except FileExistsError:
            raise UsageError(f"--sheet {path}: this file already exists; name another.") from None
    return count


def is_sheet(beginning: str) -> bool:
    """Return whether a file with this beginning is a sheet rather than JSON Lines."""
    return beginning.lstrip("\ufeff \t\r\n")[:1] not in ("", "{")


def read_sheet(
    text: str, source: str, needed: Sequence[str], expected: str
) -> Iterator[tuple[int, dict[str, str] | str]]:
    """Yield each non-empty row, as a dict by column or a clause about an invalid row, with the line where it
    begins. Cells are separated by commas, semicolons or tabs. Upper and lower case in names of columns are
    the same. Raises DataError if a column is named twice, and with the sentence `expected` if a needed column
    is missing."""
    text = text.removeprefix("\ufeff")
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 1
    try:
        heading = [title.strip().lower() for title in next(rows, [])]
        if missing := [name for name in needed if name not in heading]:
            raise DataError(source, f"its first line names no column {', '.join(missing)}. {expected}")
        if twice := [name for name in dict.fromkeys(heading) if name and heading.count(name) > 1]:
            raise DataError(
                source, f"its first line names the column {twice[0]} more than once. Keep one of them."
            )
        number = rows.line_num + 1
        for row in rows:
            if any(cell.strip() for cell in row):
                if len(row) != len(heading):
                    yield number, f"there are {len(row)} cells, and the heading has {len(heading)}"
                else:
                    yield number, dict(zip(heading, row, strict=True))
            number = rows.line_num + 1
    except csv.Error as problem:
        yield number, f"this is not valid CSV: {problem}"
