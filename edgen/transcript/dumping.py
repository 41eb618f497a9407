"""A conversation as a reply text that reads back as exactly itself."""

from __future__ import annotations

import msgspec

from edgen.model import Conversation, Role


class ExactTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A turn in the plain layout."""

    role: Role
    text: str


class Exact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """JSON in the plain layout. `verbatim` says that the texts are to be taken as they stand, dots and
    odd quotation marks included, and that `ended_by` holds what an end marker would say."""

    conversation: tuple[ExactTurn, ...]
    probability: float | str | None = None
    ended_by: Role | None = None
    verbatim: bool = False


def dump(conversation: Conversation) -> str:
    """A reply text with `read(dump(x)) == x`, for every x without repairs whose texts are stripped
    and hold no end marker. Raises UnicodeEncodeError if a text holds a lone surrogate."""
    turns = tuple(ExactTurn(turn.role, turn.text) for turn in conversation.turns)
    value = Exact(turns, conversation.probability, conversation.ended_by, verbatim=True)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
