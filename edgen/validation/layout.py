"""Checks of records beyond their schema: a part of readers of data sets, and so of families."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar


class LayoutChecks:
    """Checks of records of the layout beyond its schema, and their ids."""

    values_key: ClassVar[str | None] = None
    """The key of a record with the scenario's values, by the keys of `RecordContents.vocabulary`; None for
    the key of edgen's own layouts."""

    def schema_of(self, record: Any) -> str | None:  # noqa: ARG002
        """Return the file of the JSON Schema for a decoded record, if the layout has several; None for the
        reader's `schema`."""
        return None

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Yield problems of a decoded record that its schema cannot express: (path, problem), each an
        error."""
        yield from ()

    def begins_anew(self, turn: Any) -> bool:  # noqa: ARG002
        """Return whether a turn of a decoded record begins a new part, and so may follow a turn of the same
        role."""
        return False

    def identifier(self, record: Any) -> str | None:
        """Return the id in a decoded record, None if it has none."""
        return read_own_id(record)


def read_own_id(record: Any) -> str | None:
    """Return the `id` of a decoded record, None if it has none."""
    identifier = record.get("id") if isinstance(record, dict) else None
    return identifier if isinstance(identifier, str) else None
