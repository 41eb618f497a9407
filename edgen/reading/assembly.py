"""Make a conversation, or a Rejection, of the entries that a reader found: the last step of reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from edgen.core.values import Conversation, Rejection, RejectionReason, Turn
from edgen.reading.probability import find_common_value, parse_probability
from edgen.reading.repairs import Repair
from edgen.reading.text.characters import fold, is_encodable, replace_surrogates
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.quotes import BLANK, SILENCE, is_silent, note_words_after, trim

ALL_EMPTY = Rejection(RejectionReason.NO_TURNS, "every turn is empty")
# A role, its text, and whether an end marker closes the text.
Entry = tuple[str, str, bool]


@dataclass(slots=True)
class FoundParts:
    """The parts found of a conversation. `unspoken`: an end marker stood under no role."""

    entries: list[Entry] = field(default_factory=list)
    probabilities: list[Any] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    unspoken: bool = False
    ended_by: str | None = None


def make_entries(spoken: Sequence[tuple[str, str]], repairs: list[str]) -> list[Entry]:
    """Return the entries of texts from JSON, without their end markers."""
    inner = "\x1f".join([said for _, said in spoken[:-1]])
    if not is_encodable(inner) or may_mark(fold(inner)):
        return [_make_entry(role, said, repairs) for role, said in spoken]
    return [(role, said, False) for role, said in spoken[:-1]] + [_make_entry(*spoken[-1], repairs)]


def _make_entry(role: str, said: str, repairs: list[str]) -> Entry:
    said = replace_surrogates(said, repairs)
    marked = find_marker(said)
    if marked is None:
        return role, said, False
    repairs += marked.repairs
    note_words_after(said[marked.end :], repairs)
    return role, marked.said, True


def assemble(found: FoundParts, tail: Iterable[str] = ()) -> Conversation | Rejection:
    """Return the conversation without empty entries and entries after the end marker, or a Rejection.

    `tail`: the last repairs.
    """
    repairs, ended_by = list(found.repairs), found.ended_by
    entries = found.entries
    # Most turns begin and end with words. If one does not, all turns are checked for silence.
    turns = [
        Turn(role, said)
        for role, said, ended in entries[:-1]
        if not ended and said[:1] not in SILENCE and said[-1] not in BLANK
    ]
    settled = len(entries) - 1
    if len(turns) != settled:
        turns, settled = [], 0
    for number in range(max(settled, 0), len(entries)):
        role, said, ended = entries[number]
        said = trim(said)
        if not is_silent(said):
            turns.append(Turn(role, said))
        elif not ended:
            repairs.append(Repair.EMPTY_TURN)
        if ended:
            ended_by = role
            if number + 1 < len(entries):
                repairs.append(Repair.AFTER_END_MARKER)
            break
    rejection = _find_rejection(turns)
    if rejection is not None:
        return rejection
    if ended_by is None and found.unspoken:
        ended_by = turns[-1].role
        repairs.append(Repair.UNSPOKEN_MARKER)
    probability, unclear = _agree_on_probability(found.probabilities)
    repairs += [*tail, *([Repair.PROBABILITY_UNCLEAR] if unclear else [])]
    names = tuple(dict.fromkeys(map(str, repairs)))
    return Conversation(tuple(turns), probability, ended_by, names)


def _find_rejection(turns: list[Turn]) -> Rejection | None:
    if not turns:
        return ALL_EMPTY
    if len(turns) < 2:
        return Rejection(RejectionReason.TOO_SHORT, f"one turn only, by the {turns[0].role.lower()}")
    if turns[0].role == turns[1].role and len({turn.role for turn in turns}) < 2:
        return Rejection(RejectionReason.ONE_SPEAKER, f"only the {turns[0].role.lower()} speaks")
    return None


def _agree_on_probability(values: list[Any]) -> tuple[float | None, bool]:
    """Return the one probability that all values agree on, and whether there was one but no such number."""
    if not values or values.count(None) == len(values):
        return None, False
    if len(values) == 1:
        value = parse_probability(values[0])
        return value, value is None
    # Next to a number, words do not count as a second answer.
    numbered = [v for v in values if not isinstance(v, str) or any(c.isdigit() for c in v)]
    value = find_common_value([parse_probability(value) for value in numbered or values])
    return value, value is None


def add_repairs(result: Conversation, *, first: Sequence[str] = (), last: Sequence[str] = ()) -> Conversation:
    """Return the conversation with repairs added before and after its own, without duplicates."""
    repairs = tuple(dict.fromkeys(map(str, (*first, *result.repairs, *last))))
    return msgspec.structs.replace(result, repairs=repairs)
