"""A sheet for people to label a run's units in: CSV, or JSON Lines, with what was said before; `labels` is
left empty."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from edgen.core.errors import UsageError
from edgen.core.files import explain_write_errors, replacing
from edgen.core.pair import Candidate
from edgen.core.spreadsheet_cells import disarm
from edgen.protocols.base import transcript_of
from edgen.protocols.labelled_units import Asking
from edgen.store.layers import text_digest

COLUMNS = ("id", "turn", "role", "before", "text", "labels", "comment", "text_sha256")
Row = dict[str, str | int | None]
_LONGEST = 30_000  # characters of a cell: some programs cut at 32,767


def write_sheet(conversations: Iterable[Candidate], asking: Asking, path: Path) -> tuple[int, int]:
    """Write a sheet of the units of these conversations; returns how many there are of both. Raises
    UsageError where something is at `path`, which may be filled in, and where no unit can be labelled."""
    as_line, head = (_json, b"") if path.suffix.lower() in (".jsonl", ".json") else (_csv, _HEAD)
    units = called = 0
    with explain_write_errors(path):
        try:
            with replacing(path, new=True) as file:
                file.write(head)
                for one in conversations:
                    called += 1
                    for row in _rows(one, asking):
                        units += 1
                        file.write(as_line(row))
                if not units:
                    raise UsageError(
                        f"no unit of this run can carry the labels {asking.labels.name}: there is no sheet to fill in."
                    )
        except FileExistsError:
            raise UsageError(f"--sheet {path}: this file is there already; name another.") from None
    return units, called


def _json(row: Row) -> bytes:
    return msgspec.json.encode({**row, "labels": []}) + b"\n"


def _csv(row: Row) -> bytes:
    return _cells([disarm(cell) if isinstance(cell, str) else cell for cell in row.values()])


def _cells(cells: Sequence[str | int | None]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


_HEAD = codecs.BOM_UTF8 + _cells(COLUMNS)  # by the mark spreadsheets know UTF-8


def _rows(one: Candidate, asking: Asking) -> Iterator[Row]:
    """Yield a row per unit; `before` holds the turns since the previous unit."""
    since = 0
    for place in asking.units(one.turns):
        turn = None if place is None else one.turns[place]
        before = "" if place is None else transcript_of(one.turns[since:place])
        since = 0 if place is None else place + 1
        values = (
            one.id, place, None if turn is None else turn.role, _cut(before),
            _cut(transcript_of(one.turns) if turn is None else turn.text), None, None, text_digest(one.turns, place),
        )  # fmt: skip
        yield dict(zip(COLUMNS, values, strict=True))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
