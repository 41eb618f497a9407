"""The reader of CIMA's released files; `cima_files` has their two layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.domains.tutoring import cima_files as cima
from edgen.domains.tutoring.family import Tutoring
from edgen.plugin import RecordContents, ReportWords
from edgen.plugin.families import FiledRecord, KindDefaults, LayoutChecks
from edgen.plugin.readers import DataSetReader

_SAME = 2  # first turns that the contexts of one conversation share


class Cima(LayoutChecks, RecordContents, ReportWords, KindDefaults, DataSetReader):
    """The reader of CIMA's contexts with the responses of several tutors."""

    name = "cima"
    title = "CIMA"
    schema = "cima_prep"
    unit = "context"
    units_depend = "share an exercise and begin alike, so they are cut from one conversation"
    tags, measures, roles = Tutoring.tags, Tutoring.measures, Tutoring.roles
    precedence = 35
    marks_ends = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value is an entry of either layout."""
        return cima.is_entry(record)

    def schema_of(self, record: Any) -> str | None:
        """Return the schema of an entry's layout."""
        return cima.find_schema(record) if cima.is_entry(record) else None

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """Yield the known errors of the released files."""
        return cima.find_errors(record) if cima.is_entry(record) else iter(())

    def read_file(self, record: Any) -> FiledRecord:
        """Return a context with its tutors' responses."""
        if not cima.is_entry(record):
            raise ValueError("no context with tutors' responses")
        found = cima.read(record)
        concepts = sorted(found.scenario.values.items())
        # the release has several contexts of a conversation, each longer than the one before
        begin = [turn.text for turn in found.speech.turns[:_SAME]]
        return msgspec.structs.replace(found, cluster=repr((concepts, begin)))


READER = Cima()
