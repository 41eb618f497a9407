"""Logs of rooms as CRWIZ's server writes them, read as conversations. Guided conversations that edgen makes
are of the family `dialogue`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgen.domains.guided import crwiz_files
from edgen.plugin import FiledRecord, Space
from edgen.plugin.families import Dialogue


class CrwizLogs(Dialogue):
    """CRWIZ's log of a room."""

    name = "crwiz-log"
    schema = crwiz_files.SCHEMA
    precedence = 40

    def fits(self, space: Space) -> bool:
        """Logs are read and never written."""
        return False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded record is laid out as a log."""
        return crwiz_files.is_log(record)

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """Yield what contradicts itself in a log."""
        return crwiz_files.findings(record)

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation of a log."""
        if not isinstance(record, dict):
            raise ValueError("no object")
        return crwiz_files.read(record)


CRWIZ_LOGS = CrwizLogs()
