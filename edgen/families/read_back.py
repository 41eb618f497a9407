"""Check that a family reads back its own records: `read(record(x)) == x`.

A family that loses or changes something would spoil every record of a run, and only this check finds it: the
schema covers only the layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from edgen.core.yaml_values import shortened

if TYPE_CHECKING:
    from edgen.families.base import Family, Recorded


def find_change(family: Family, recorded: Recorded, record: bytes) -> str | None:
    """Return the difference of `recorded` after reading it back from its record, as a clause; None if there
    is none.

    Raises the errors of the family's `read`.
    """
    again = family.read(record)
    if again == recorded:
        return None
    if not isinstance(again, type(recorded)):
        return f"`read` returned a {type(again).__name__}, not a Recorded"
    # a tuple in `data` or `outcome` is a list in JSON
    before, after = msgspec.to_builtins(recorded), msgspec.to_builtins(again)
    return None if _sorted(before) == _sorted(after) else _first_change(before, after, "")


def _sorted(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _first_change(before: Any, after: Any, path: str) -> str:
    """Return the first place where two values differ, and the difference."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            place = f"{path}.{key}" if path else str(key)
            if key not in after:
                return f"{place} is lost"
            if key not in before:
                return f"{place} is added"
            if _sorted(before[key]) != _sorted(after[key]):
                return _first_change(before[key], after[key], place)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            if _sorted(one) != _sorted(other):
                return _first_change(one, other, f"{path}[{number}]")
        return f"{path} has {len(after)} entries in place of {len(before)}"
    return f"{path} is {shortened(repr(after))} in place of {shortened(repr(before))}"
