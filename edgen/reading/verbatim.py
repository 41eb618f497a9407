"""The one text form that reads back exactly: what `dump` writes."""

from __future__ import annotations

import msgspec

from edgen.core.values import Conversation, Turn
from edgen.reading.roles import RoleWords
from edgen.reading.text.marker import SQUARE


class PlainTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A turn in the plain layout."""

    role: str
    text: str


class PlainJson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """JSON in the plain layout.

    `verbatim`: the texts are taken as they stand, and `ended_by` holds what an end marker would say.
    """

    conversation: tuple[PlainTurn, ...]
    probability: float | None = None
    ended_by: str | None = None
    verbatim: bool = False


_PLAIN = msgspec.json.Decoder(PlainJson)


def read_verbatim(text: str, roles: RoleWords) -> Conversation | None:
    """Return the conversation that `dump` wrote; None for any other text or one that `read` cannot return."""
    if '"verbatim"' not in text:
        return None
    try:
        value = _PLAIN.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not value.verbatim or any(turn.role not in roles.names for turn in value.conversation):
        return None
    probability = value.probability
    good = (
        len({turn.role for turn in value.conversation}) > 1
        and all(turn.text and turn.text == turn.text.strip() for turn in value.conversation)
        and not any(SQUARE.search(turn.text) for turn in value.conversation)
        and (probability is None or 0 <= probability <= 1)
    )
    if not good:
        return None
    turns = tuple(Turn(turn.role, turn.text) for turn in value.conversation)
    return Conversation(turns, probability, value.ended_by)


def dump(conversation: Conversation) -> str:
    """Return a reply text with `read(dump(x)) == x`, for every x without repairs whose texts are stripped and
    hold no end marker.

    Raises UnicodeEncodeError if a text holds a lone surrogate.
    """
    turns = tuple(PlainTurn(turn.role, turn.text) for turn in conversation.turns)
    value = PlainJson(turns, conversation.probability, conversation.ended_by, verbatim=True)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
