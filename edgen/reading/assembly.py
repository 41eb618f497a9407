"""The last step of reading: what both sides say, as entries, to a conversation or the reason why it is none."""

from __future__ import annotations

from typing import Any

from edgen.core.values import Conversation, Rejection, RejectionReason, Turn
from edgen.reading.answers.probability import parse_probability
from edgen.reading.repairs import Repair
from edgen.reading.text.characters import replace_surrogates
from edgen.reading.text.marker import find_marker
from edgen.reading.text.quotes import is_silent, note_words_behind, trim

# Who speaks, what, and whether an end marker closes it.
Entry = tuple[str, str, bool]


def make_entry(role: str, said: str, repairs: list[str]) -> Entry:
    """A text out of JSON, its end marker taken off."""
    said = replace_surrogates(said, repairs)
    marked = find_marker(said)
    if marked is None:
        return role, said, False
    repairs += marked.repairs
    note_words_behind(said[marked.end :], repairs)
    return role, marked.said, True


def assemble(
    entries: list[Entry],
    probabilities: list[Any],
    repairs: list[str],
    tail: list[str],
    *,
    unspoken: bool = False,
    ended_by: str | None = None,
) -> Conversation | Rejection:
    """The conversation of some entries, empty ones and what follows the end marker left out."""
    turns: list[Turn] = []
    for position, (role, said, ended) in enumerate(entries):
        said = trim(said)
        if not is_silent(said):
            turns.append(Turn(role, said))
        elif not ended:
            repairs.append(Repair.EMPTY_TURN)
        if ended:
            ended_by = role
            if position + 1 < len(entries):
                repairs.append(Repair.AFTER_END_MARKER)
            break
    rejection = _rejected(turns)
    if rejection is not None:
        return rejection
    if ended_by is None and unspoken:
        ended_by = turns[-1].role
        repairs.append(Repair.UNSPOKEN_MARKER)
    probability, unclear = _probability(probabilities)
    if unclear:
        tail = [*tail, Repair.PROBABILITY_UNCLEAR]
    names = tuple(dict.fromkeys(str(name) for name in (*repairs, *tail)))
    return Conversation(tuple(turns), probability, ended_by, names)


def _rejected(turns: list[Turn]) -> Rejection | None:
    sides = {turn.role for turn in turns}
    if not turns:
        return Rejection(RejectionReason.NO_TURNS, "every turn is empty")
    if len(turns) < 2:
        return Rejection(RejectionReason.TOO_SHORT, f"one turn only, by the {turns[0].role.lower()}")
    if len(sides) < 2:
        return Rejection(RejectionReason.ONE_SPEAKER, f"only the {turns[0].role.lower()} speaks")
    return None


def _probability(values: list[Any]) -> tuple[float | None, bool]:
    """The one probability that all values agree on, and whether there was one but no such number."""
    if not values or all(value is None for value in values):
        return None, False
    # Words are no second answer beside a number.
    numbered = [v for v in values if not isinstance(v, str) or any(c.isdigit() for c in v)]
    read_values = [parse_probability(value) for value in numbered or values]
    first = read_values[0]
    if first is None or any(other is None or abs(other - first) > 0.006 for other in read_values):
        return None, True
    return first, False
