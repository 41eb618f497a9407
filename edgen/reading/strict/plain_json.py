"""Strict form: JSON in the layout of the JSON prompt to the letter, and in that of `dump`."""

from __future__ import annotations

import re

import msgspec

from edgen.core.values import Conversation, Turn
from edgen.reading.assembly import Found, assemble, make_entry
from edgen.reading.loose_json.parser import is_misescaped
from edgen.reading.roles import RoleWords
from edgen.reading.text.marker import SQUARE, hold_no_marker


class PlainTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A turn in the plain layout."""

    role: str
    text: str


class PlainJson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """JSON in the plain layout. `verbatim`: the texts are taken as they stand, and `ended_by` holds what an end marker
    would say."""

    conversation: tuple[PlainTurn, ...]
    probability: float | str | None = None
    ended_by: str | None = None
    verbatim: bool = False


_PLAIN = msgspec.json.Decoder(PlainJson)
# An escape that can hide an ASCII letter of a key.
_HIDDEN = re.compile(r"\\u00[0-7]")


def read_plain_json(text: str, roles: RoleWords, *, alone: bool = True) -> Conversation | None:
    """The conversation of a reply in exact JSON; None if it departs from it anywhere. What `dump` wrote is taken as it
    stands where it is `alone`."""
    try:
        value = _PLAIN.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if any(turn.role not in roles.names for turn in value.conversation):
        return None
    if value.verbatim:
        return _verbatim(value) if alone else None
    if not value.conversation or value.ended_by is not None or not _unambiguous(text, value):
        return None
    if is_misescaped(text):
        return None
    repairs: list[str] = []
    *turns, last = value.conversation
    if hold_no_marker([turn.text for turn in turns]):
        entries = [(turn.role, turn.text, False) for turn in turns]
    else:
        entries = [make_entry(turn.role, turn.text, repairs) for turn in turns]
    entries.append(make_entry(last.role, last.text, repairs))
    result = assemble(Found(entries, [value.probability], repairs))
    return result if isinstance(result, Conversation) else None


def _unambiguous(text: str, value: PlainJson) -> bool:
    """Whether no key is given twice: of two equal keys the decoder takes the last, the general reader may take the
    first. A quotation mark inside a string has a backslash before it, so `"text"` is a key, or a string of its own."""
    turns = len(value.conversation)
    raw = text.encode()  # bytes are searched faster
    return (
        raw.count(b'"text"') == turns
        and raw.count(b'"role"') == turns
        and raw.count(b'"conversation"') == 1
        and raw.count(b'"probability"') <= 1
        and not ("\\" in text and _HIDDEN.search(text))
    )


def _verbatim(value: PlainJson) -> Conversation | None:
    """The conversation as `dump` wrote it; None if it is none that `read` could have returned."""
    probability = value.probability
    good = (
        len({turn.role for turn in value.conversation}) > 1
        and all(turn.text and turn.text == turn.text.strip() for turn in value.conversation)
        and not any(SQUARE.search(turn.text) for turn in value.conversation)
        and (probability is None or (isinstance(probability, float) and 0 <= probability <= 1))
    )
    if not good or isinstance(probability, str):
        return None
    turns = tuple(Turn(turn.role, turn.text) for turn in value.conversation)
    return Conversation(turns, probability, value.ended_by)


def dump(conversation: Conversation) -> str:
    """A reply text with `read(dump(x)) == x`, for every x without repairs whose texts are stripped and hold no end
    marker. Raises UnicodeEncodeError if a text holds a lone surrogate."""
    turns = tuple(PlainTurn(turn.role, turn.text) for turn in conversation.turns)
    value = PlainJson(turns, conversation.probability, conversation.ended_by, verbatim=True)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
