"""Make a space file from a table: a column for each dimension, and columns such as `topic.grade` for
fields."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from edgen.core.errors import DataError, Problem
from edgen.core.text import quantity
from edgen.core.yaml_values import read_text
from edgen.space import Dimension, Entry, Space
from edgen.space.entries import find_dimension_problem, find_field_problem, normalize_likeness
from edgen.space.new_file import MAX_DATA_BYTES, MAX_PROBLEMS, NewSpace, choose_name, clean, dump, write
from edgen.space.parse import make_default_roles

Weights = Literal["counts", "equal"]


class _Column(NamedTuple):
    """The dimension of a column, and its field; None for the values themselves."""

    place: int
    dimension: str
    field: str | None


def make_space_from_csv(
    file: Path,
    output: Path | None,
    name: str | None = None,
    *,
    weights: Weights = "counts",
    force: bool = False,
) -> NewSpace:
    """Write a space file from the rows of a table; without `output`, only return it.

    Values come in the order in which they first appear; `weights` are their counts, or equal. Empty cells are
    skipped. Raises DataError for an unusable table, UsageError if the file cannot be written.
    """
    name = choose_name(name, output, file.stem)
    source = str(file)
    rows = _read_rows(source, read_text(file, DataError, max_bytes=MAX_DATA_BYTES))
    columns = _read_columns(source, rows[0])
    dimensions = _read_dimensions(source, columns, rows[1:], weights)
    what = f"The columns of {clean(file.name)}, {quantity(len(rows) - 1, 'row')}"
    roles = make_default_roles([dimension.name for dimension in dimensions])
    text = dump(Space(name=name, source=what, dimensions=dimensions, roles=roles), source, "is read")
    if output is not None:
        write(output, text, force=force)
    return NewSpace(text, len(rows) - 1, {one.name: len(one.entries) for one in dimensions})


def _read_rows(source: str, text: str) -> list[list[str]]:
    """Return the rows with content, the heading first."""
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000].partition("\n")[0], ",;\t")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), dialect, strict=True) if any(row)]
    except csv.Error as problem:
        raise DataError(source, f"it is not valid CSV: {problem}.") from None
    if len(rows) < 2:
        raise DataError(
            source, "it needs a heading with a column for each dimension, and at least one row below it."
        )
    return rows


def _read_columns(source: str, heading: Sequence[str]) -> list[_Column]:
    columns, problems = [], []
    names = [clean(title) for title in heading]
    for place, title in enumerate(names):
        dimension, dot, field = title.partition(".")
        wrong = find_dimension_problem(dimension) or (find_field_problem(field) if dot else None)
        if wrong is None and names.index(title) != place:
            wrong = "this heading is there twice"
        if wrong is None and dot and dimension not in names:
            wrong = f"this is a field of {dimension}, and there is no column {dimension}"
        if wrong is not None:
            problems.append(Problem(f"column {place + 1}", f"{title[:80]!r}: {wrong}"))
        columns.append(_Column(place, dimension, field if dot else None))
    if problems:
        raise DataError(source, "its heading names no dimensions:", problems[:MAX_PROBLEMS])
    return columns


def _read_dimensions(
    source: str, columns: Sequence[_Column], rows: Sequence[Sequence[str]], weights: Weights
) -> tuple[Dimension, ...]:
    problems: list[Problem] = []
    found = []
    for column in columns:
        if column.field is not None:
            continue
        fields = {one.field: one.place for one in columns if one.dimension == column.dimension and one.field}
        counts: Counter[str] = Counter()
        said: dict[str, dict[str, str]] = {}
        first: dict[str, str] = {}
        for number, row in enumerate(rows, start=2):
            value = _read_cell(row, column.place)
            if not value:
                continue
            value = first.setdefault(normalize_likeness(value), value)
            counts[value] += 1
            told = {field: text for field, place in fields.items() if (text := _read_cell(row, place))}
            if said.setdefault(value, told) != told:
                message = f"the fields of {value[:80]!r} differ from those in an earlier row"
                problems.append(Problem(f"row {number}", message))
        # Plain whole numbers, such as grades or years; 007 is a text.
        numbers = {field for field in fields if all(_is_number(own.get(field, "0")) for own in said.values())}
        entries = [
            Entry(
                value,
                float(count) if weights == "counts" else 1.0,
                {field: int(text) if field in numbers else text for field, text in said[value].items()},
            )
            for value, count in counts.items()
        ]
        found.append(Dimension(column.dimension, tuple(entries)))
    if problems:
        raise DataError(source, f"rows do not agree ({len(problems):,}):", problems[:MAX_PROBLEMS])
    return tuple(found)


def _read_cell(row: Sequence[str], place: int) -> str:
    return " ".join(clean(row[place]).split()) if place < len(row) else ""


def _is_number(text: str) -> bool:
    return re.fullmatch(r"0|[1-9][0-9]{0,14}", text) is not None
