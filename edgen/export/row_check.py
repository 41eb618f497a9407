"""Checks of the rows of a plugin's format, before they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from edgen.core.text import describe_type, replace_surrogates, shorten
from edgen.export.files import JsonLines
from edgen.export.format import Format
from edgen.export.rows import SPLITS, DataTable, Row

_DEEPEST = 100  # levels of lists and mappings in a column


def find_row_flaw(format_: Format, row: Row, tables: Mapping[str, DataTable]) -> str | None:
    """Return a clause about a value of the row that the format's file cannot hold, or that its card does not
    explain; None if all is well. `tables`: the format's tables, by name."""
    if row.table not in tables or row.split not in SPLITS:
        shown = shorten(f"{row.table!r}, {row.split!r}", 80)
        return f"gave a row of a table and split that it does not have: {shown}"
    if format_.layout.files is not JsonLines:  # in its own files, entries need not be the rows' values
        return None
    if not isinstance(row.value, dict):
        return f"gave a row whose value is {describe_type(row.value)}, not a dict of columns"
    known = tables[row.table].columns
    if unknown := [name for name in row.value if name not in known]:
        return f"gave a row with the column {unknown[0]!r}, which its `tables` does not explain"
    for name, value in row.value.items():
        if (odd := _find_odd(value)) is not None:
            return f"gave {odd} in the column {name!r}, which JSON cannot hold"
    return None


def _find_odd(value: Any, depth: int = 0) -> str | None:
    """Return the first part of a value that JSON cannot hold unchanged, in words; None if there is none."""
    if depth > _DEEPEST:
        return f"a value with more than {_DEEPEST} levels, or that contains itself,"
    if value is None or isinstance(value, bool | int):
        return None
    if isinstance(value, str):
        return (
            None if value.isascii() or replace_surrogates(value) == value else "a text with a lone surrogate"
        )
    if isinstance(value, float):
        return None if math.isfinite(value) else f"the number {value}"
    if isinstance(value, dict):
        if wrong := [key for key in value if not isinstance(key, str)]:
            return f"the key {shorten(repr(wrong[0]), 80)}"
        value = value.values()
    elif not isinstance(value, list | tuple):
        return f"a value of the type {type(value).__name__}"
    return next((odd for one in value if (odd := _find_odd(one, depth + 1)) is not None), None)
