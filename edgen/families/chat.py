"""A reader of plain chat data.

Records have `messages` of roles and contents, as chat services and most trainers do, or ShareGPT's
`conversations` of speakers and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from edgen.plugin import RecordContents, ReportWords, Scenario, Turn
from edgen.plugin.families import FiledRecord, LayoutChecks
from edgen.plugin.readers import DataSetReader, make_verbatim_record

_LAYOUTS = (("messages", "role", "content"), ("conversations", "from", "value"))
_ROLES = {"user": "User", "human": "User", "assistant": "Assistant", "gpt": "Assistant"}
_SYSTEM = "system"
_LONGEST_VALUE = 10_000  # characters kept of a scenario's value


class ChatReader(LayoutChecks, RecordContents, ReportWords, DataSetReader):
    """A reader of chat messages. The other fields of a record become values of its scenario. So does a system
    message at the beginning, which holds what the assistant knows."""

    name = "chat"
    title = "chat messages"
    schema = "chat"
    tags: ClassVar[tuple[str, ...]] = ("conversational",)
    precedence = 200
    marks_ends = False
    holds_events = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value is an object with a list of messages."""
        return _find_layout(record) is not None

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation of a record. Raises ValueError if it has no text."""
        layout = _find_layout(record)
        if layout is None:
            raise ValueError("no messages with roles")
        key, role, content = layout
        said = record[key]
        if not all(isinstance(one, dict) and isinstance(one.get(role), str) for one in said):
            raise ValueError("a message without a role")
        values = dict(_list_values(record, key))
        if said[0][role].lower() == _SYSTEM:
            values[_SYSTEM] = _read_text(said[0], content)
            said = said[1:]
        turns = tuple(Turn(_read_role(one[role]), _read_text(one, content)) for one in said)
        identifier = next(
            (record[name] for name in ("id", "conversation_id", "prompt_id") if name in record), None
        )
        named = str(identifier) if isinstance(identifier, str | int) else None
        return make_verbatim_record(named, Scenario(-1, values), turns)

    def identifier(self, record: Any) -> str | None:
        """Return the id of a record; None if it has none."""
        found = record.get("id") if isinstance(record, dict) else None
        return str(found) if isinstance(found, str | int) else None


def _find_layout(record: Any) -> tuple[str, str, str] | None:
    """Return the keys of a record's messages, of their roles and of their contents; None if it is no chat."""
    if not isinstance(record, dict):
        return None
    for key, role, content in _LAYOUTS:
        said = record.get(key)
        if (
            isinstance(said, list)
            and said
            and isinstance(said[0], dict)
            and isinstance(said[0].get(role), str)
        ):
            return key, role, content
    return None


def _read_role(name: str) -> str:
    return _ROLES.get(name.lower()) or name[:1].upper() + name[1:] or "Unknown"


def _read_text(message: Mapping[str, Any], content: str) -> str:
    """Return the text of a message. Tool calls and parts without text are written as JSON."""
    given = message.get(content)
    parts = given if isinstance(given, list) else [given]
    texts = [_read_text_of_part(part) for part in parts if part is not None]
    if calls := message.get("tool_calls") or message.get("function_call"):
        texts.append(msgspec.json.encode(calls).decode())
    return "\n".join(texts)


def _read_text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return msgspec.json.encode(part).decode()


def _list_values(record: Mapping[str, Any], messages: str) -> Iterator[tuple[str, str]]:
    """Yield the plain values of a record besides its messages."""
    for name, value in record.items():
        if name in (messages, "id"):
            continue
        if isinstance(value, str | int | float) and str(value):
            yield name, str(value)[:_LONGEST_VALUE]


CHAT = ChatReader()
