"""A conversation as a reply text that reads back as exactly itself."""

from __future__ import annotations

import msgspec

from edgen.model import Conversation, Role, Turn


class Verbatim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layout of `dump`. `verbatim` says that the texts are to be taken as they stand."""

    verbatim: bool
    conversation: tuple[Turn, ...]
    probability: float | None
    ended_by: Role | None


def dump(conversation: Conversation) -> str:
    """A reply text with `read(dump(x)) == x`, for every x without repairs whose texts are stripped
    and hold no end marker. Raises UnicodeEncodeError if a text holds a lone surrogate."""
    value = Verbatim(True, conversation.turns, conversation.probability, conversation.ended_by)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
