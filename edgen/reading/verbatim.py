"""Write and read JSON in the plain layout: the texts that `dump` writes, and most answers under a schema."""

from __future__ import annotations

from functools import cache

import msgspec

from edgen.core.values import Conversation, Turn
from edgen.reading.assembly import add_repairs
from edgen.reading.other_speaker import holds_other_speaker
from edgen.reading.probability import parse_probability
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords
from edgen.reading.text.characters import find_marks, fold
from edgen.reading.text.marker import SQUARE, find_marker, may_mark
from edgen.reading.text.quotes import SILENCE, is_silent, trim


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


class SchemaAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer in JSON under a schema."""

    conversation: tuple[Turn, ...]
    probability: float


_PLAIN = msgspec.json.Decoder(PlainJson)
_ANSWER = msgspec.json.Decoder(SchemaAnswer)
_MARKER = "[end of conversation]"
_EMPHASIS = "*_`"
_RULED = frozenset("[<>&")  # marks in turns for which the general reader has further rules


def read_verbatim(text: str, roles: RoleWords) -> Conversation | None:
    """Return the conversation that `dump` wrote, or that of a plain answer under a schema; None for any other
    text or one that `read` cannot return."""
    if '"conversation"' not in text:  # cheaper than an exception
        return None
    try:
        answer = _ANSWER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _read_dumped(text, roles)
    return _read_answer(answer, text, roles)


def _read_answer(answer: SchemaAnswer, text: str, roles: RoleWords) -> Conversation | None:
    """Return the conversation of an answer with no other keys than those of the plain layout. None if the
    general reader would read more than words in a text, except for one end marker after the last turn."""
    turns = answer.conversation
    said, speakers, ended_by = [turn.text for turn in turns], {turn.role for turn in turns}, None
    if (
        len(speakers) < 2
        or not _find_clear_names(roles).issuperset(speakers)
        or roles.own
        or not all(said)
        or "\\" in text
        or text.count('"') != 8 * len(turns) + 4  # around keys and texts
    ):
        return None
    if said[-1].endswith(_MARKER):
        before, ended_by = said[-1].removesuffix(_MARKER), turns[-1].role
        said[-1] = before.rstrip()
        if not said[-1] or before[-1] in _EMPHASIS:  # which is part of the marker
            return None
        turns = (*turns[:-1], Turn(ended_by, said[-1]))
    whole = " ".join(said)
    marks = find_marks(whole)
    probability = parse_probability(answer.probability)
    if (
        probability is None
        or not _RULED.isdisjoint(marks)
        or (may_mark(fold(whole)) and any(map(find_marker, said)))
        or said != [*map(str.strip if whole.isascii() else trim, said)]
        or any(is_silent(one) for one in said if one[0] in SILENCE)
    ):
        return None
    result = Conversation(turns, probability, ended_by)
    if holds_other_speaker(turns, roles, marks):
        return add_repairs(result, last=[Repair.OTHER_SPEAKER])
    return result


@cache
def _find_clear_names(roles: RoleWords) -> frozenset[str]:
    """Return the names of roles in which the general reader finds this role alone."""
    return frozenset(name for name in roles.names if roles.find_role_in(name) == name and roles.is_bare(name))


def _read_dumped(text: str, roles: RoleWords) -> Conversation | None:
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
