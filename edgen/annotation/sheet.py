"""A sheet, as CSV or JSON Lines, in which people label a run's units. It shows the text before each unit and
leaves `labels` empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from edgen.core.pair import Candidate
from edgen.core.people.sheets import cut_cell, render_sheet_head, render_sheet_line, write_sheet
from edgen.protocols.base import transcript_of
from edgen.protocols.labelled_units import LabellingTask
from edgen.store.layers import digest_text

COLUMNS = ("id", "turn", "role", "before", "text", "labels", "comment", "text_sha256")
Row = dict[str, str | int | None]


def write_label_sheet(
    conversations: Iterable[Candidate], asking: LabellingTask, path: Path
) -> tuple[int, int]:
    """Write a sheet of the units of these conversations. Return the number of units and of conversations.
    Raises UsageError if `path` exists, since it may be filled in, and if no unit can be labelled."""
    as_line, head = (
        (_render_json, b"")
        if path.suffix.lower() in (".jsonl", ".json")
        else (_render_csv, render_sheet_head(COLUMNS))
    )
    called: set[str] = set()

    def iterate_lines() -> Iterator[bytes]:
        for one in conversations:
            called.add(one.id)
            yield from map(as_line, _list_rows(one, asking))

    nothing = f"no unit of this run can carry the labels {asking.labels.name}: there is no sheet to fill in."
    units = write_sheet(path, head, iterate_lines(), nothing)
    return units, len(called)


def _render_json(row: Row) -> bytes:
    return msgspec.json.encode({**row, "labels": []}) + b"\n"


def _render_csv(row: Row) -> bytes:
    return render_sheet_line([*row.values()])


def _list_rows(one: Candidate, asking: LabellingTask) -> Iterator[Row]:
    """Yield a row for each unit; `before` holds the turns since the previous unit."""
    since = 0
    for place in asking.list_units(one.turns):
        turn = None if place is None else one.turns[place]
        before = "" if place is None else transcript_of(one.turns[since:place])
        since = 0 if place is None else place + 1
        values = (
            one.id, place, None if turn is None else turn.role, cut_cell(before),
            cut_cell(transcript_of(one.turns) if turn is None else turn.text), None, None,
                digest_text(one.turns, place),
        )  # fmt: skip
        yield dict(zip(COLUMNS, values, strict=True))
