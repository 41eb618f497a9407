"""Strict form: JSON in the layout of the JSON prompt to the letter, and in that of `dump`."""

from __future__ import annotations

import re

import msgspec

from edgen.model import Conversation, Rejection, Turn
from edgen.transcript.assembling import assembled, entry
from edgen.transcript.dumping import Exact
from edgen.transcript.loosejson import misescaped
from edgen.transcript.marker import SQUARE, unmarked

_EXACT = msgspec.json.Decoder(Exact)
# An escape that can hide an ASCII letter of a key.
_HIDDEN = re.compile(r"\\u00[0-7]")


def read_exact(text: str, *, alone: bool = True) -> Conversation | Rejection | None:
    """The conversation of a reply in exact JSON; None if it departs from it anywhere.

    What `dump` wrote is taken as it stands where it is `alone`; anything else reads as the general reader
    reads it.
    """
    try:
        value = _EXACT.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if value.verbatim:
        return _verbatim(value) if alone else None
    if not value.conversation or value.ended_by is not None or not _unambiguous(text, value):
        return None
    if misescaped(text):
        return None
    repairs: list[str] = []
    *turns, last = value.conversation
    if unmarked([turn.text for turn in turns]):
        entries = [(turn.role, turn.text, False) for turn in turns]
    else:
        entries = [entry(turn.role, turn.text, repairs) for turn in turns]
    entries.append(entry(last.role, last.text, repairs))
    return assembled(entries, [value.probability], repairs, [])


def _unambiguous(text: str, value: Exact) -> bool:
    """Whether no key is given twice.

    Of two equal keys the decoder takes the last, the general reader may take the first. A quotation mark inside
    a string has a backslash before it, so `"text"` is a key, or a string of its own.
    """
    turns = len(value.conversation)
    raw = text.encode()  # bytes are searched faster
    return (
        raw.count(b'"text"') == turns
        and raw.count(b'"role"') == turns
        and raw.count(b'"conversation"') == 1
        and raw.count(b'"probability"') <= 1
        and not ("\\" in text and _HIDDEN.search(text))
    )


def _verbatim(value: Exact) -> Conversation | None:
    """The conversation as `dump` wrote it; None if it is none that `read` could have returned."""
    probability = value.probability
    good = (
        len({turn.role for turn in value.conversation}) == 2
        and all(turn.text and turn.text == turn.text.strip() for turn in value.conversation)
        and not any(SQUARE.search(turn.text) for turn in value.conversation)
        and (probability is None or (isinstance(probability, float) and 0 <= probability <= 1))
    )
    if not good or isinstance(probability, str):
        return None
    turns = tuple(Turn(turn.role, turn.text) for turn in value.conversation)
    return Conversation(turns, probability, value.ended_by)
