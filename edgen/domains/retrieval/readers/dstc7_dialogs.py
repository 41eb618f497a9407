"""A reader of whole conversations with paraphrases of their messages, from sub-task 3 of DSTC7's track 1."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from edgen.domains.retrieval.readers.dstc7 import read_identifier, read_turn
from edgen.plugin import RecordContents, ReportWords, Scenario, Turn
from edgen.plugin.families import FiledRecord, LayoutChecks
from edgen.plugin.readers import DataSetReader, make_verbatim_record


class Dstc7Dialogs(LayoutChecks, RecordContents, ReportWords, DataSetReader):
    """The reader of sub-task 3's conversations."""

    name = "dstc7-dialogs"
    title = "DSTC7 track 1 (dialogs with paraphrases)"
    schema = "dstc7_dialog"
    unit = "dialog"
    tags = ("response-selection",)
    precedence = 32
    marks_ends = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value has a dialog's id and messages."""
        return isinstance(record, dict) and "dialog-id" in record and isinstance(record.get("messages"), list)

    def identifier(self, record: Any) -> str | None:
        """Return the dialog's id as a text."""
        return read_identifier(record, "dialog-id")

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation, with the paraphrases of a message as alternatives of its turn."""
        listed = record.get("messages") if isinstance(record, dict) else None
        if not isinstance(listed, list) or not listed:
            raise ValueError("no list of messages")
        turns = tuple(_read_turn(one) for one in listed)
        return make_verbatim_record(self.identifier(record), Scenario(-1, {}), turns)


def _read_turn(one: Any) -> Turn:
    said, others = read_turn(one), one.get("paraphrases")
    listed = [text for text in others if isinstance(text, str)] if isinstance(others, list) else []
    return replace(said, alternatives=tuple(Turn(said.role, text) for text in listed))


READER = Dstc7Dialogs()
