"""A sheet for people to label a run's units in: CSV, or JSON Lines, with what was said before; `labels` is left empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from edgen.core.cells import disarm
from edgen.core.errors import UsageError
from edgen.core.files import explain_write_errors, write_new
from edgen.core.pair import Candidate
from edgen.protocols.base import transcript_of
from edgen.protocols.labelled_units import Asking
from edgen.store.layers import text_digest

COLUMNS = ("id", "turn", "role", "before", "text", "labels", "comment", "text_sha256")
_LONGEST = 30_000  # characters of a cell: some programs cut at 32,767


def write_sheet(conversations: Iterable[Candidate], asking: Asking, path: Path) -> int:
    """Write a sheet of the units of these conversations; returns how many there are. Raises UsageError where something is at
    `path`, which may be filled in."""
    rows = [row for one in conversations for row in _rows(one, asking)]
    if path.suffix.lower() in (".jsonl", ".json"):
        text = "".join([msgspec.json.encode({**row, "labels": []}).decode() + "\n" for row in rows])
    else:
        file = io.StringIO()
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(
            [[disarm(cell) if isinstance(cell, str) else cell for cell in row.values()] for row in rows]
        )
        text = "\ufeff" + file.getvalue()  # by which spreadsheets know UTF-8
    with explain_write_errors(path):
        try:
            write_new(path, text)
        except FileExistsError:
            raise UsageError(f"--sheet {path}: this file is there already; name another.") from None
    return len(rows)


def _rows(one: Candidate, asking: Asking) -> Iterator[dict[str, str | int | None]]:
    """A row a unit; `before` has what was said since the unit before it."""
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
