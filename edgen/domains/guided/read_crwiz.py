"""A reader of room logs by CRWIZ's server, as conversations. Guided conversations that edgen makes are of the
family `dialogue`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgen.domains.guided import crwiz_files
from edgen.plugin import RecordContents, ReportWords
from edgen.plugin.families import FiledRecord, LayoutChecks
from edgen.plugin.readers import DataSetReader


class CrwizLogs(LayoutChecks, RecordContents, ReportWords, DataSetReader):
    """The reader of CRWIZ's room logs."""

    name = "crwiz-log"
    title = "CRWIZ (logs of rooms)"
    schema = crwiz_files.SCHEMA
    tags = ("wizard-of-oz", "dialogue")
    precedence = 40
    marks_ends = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded record has the layout of a log."""
        return crwiz_files.is_log(record)

    def identifier(self, record: Any) -> str | None:
        """Return the room's name."""
        found = record.get("name") if isinstance(record, dict) else None
        return found if isinstance(found, str) else None

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """Yield inconsistencies within a log."""
        return crwiz_files.find_inconsistencies(record) if crwiz_files.is_log(record) else iter(())

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation of a log."""
        if not crwiz_files.is_log(record):
            raise ValueError("no log of a room")
        return crwiz_files.read(record)


READER = CrwizLogs()
