"""A raw reply to a conversation, or to the reason why it is none.

`read` tries the strict readers first, then takes away what stands around the answer (thinking,
fences, chatter), and reads JSON or lines. It never raises, and its work is linear in the length.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from edgen.model import Conversation, Rejection, RejectionReason, Role, Turn
from edgen.transcript import frame
from edgen.transcript.dumping import Exact
from edgen.transcript.lines import spoken_lines
from edgen.transcript.loosejson import Parsed, misescaped, parse
from edgen.transcript.marker import SQUARE, find_marker
from edgen.transcript.probability import probability_of
from edgen.transcript.published import read_published
from edgen.transcript.quotes import name_behind, silent, trim
from edgen.transcript.refusals import declines
from edgen.transcript.repairs import Repair
from edgen.transcript.rolelines import role_lines
from edgen.transcript.shapes import Spoken, spoken_in
from edgen.transcript.thinking import without_thinking

Entry = tuple[Role, str, bool]

_EXACT = msgspec.json.Decoder(Exact)
_SURROGATE = re.compile("[\ud800-\udfff]")


def read(text: str, *, finish_reason: str = "stop", refusal: str | None = None) -> Conversation | Rejection:
    """The conversation in a reply, or why there is none.

    `finish_reason` is the service's ("length": cut off, "content_filter": blocked), `refusal` its
    words when it refused outside the text. Never raises.
    """
    if refusal is not None and refusal.strip():
        return Rejection(RejectionReason.REFUSED, f"the service refused: {_shown(refusal)}")
    if finish_reason == "content_filter":
        return Rejection(RejectionReason.REFUSED, "the service blocked the answer")
    if finish_reason == "length":
        return Rejection(RejectionReason.TRUNCATED, "the answer was cut off by the token limit")
    return read_published(text) or _read_exact(text) or read_any(text)


def _read_exact(text: str) -> Conversation | Rejection | None:
    """JSON in the layout of `dump` or of the JSON prompt to the letter; None for any other text."""
    if not text[:40].lstrip().startswith("{"):
        return None
    try:
        value = _EXACT.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if value.verbatim:
        return _verbatim(value)
    if not value.conversation or value.ended_by is not None or misescaped(text):
        return None
    repairs: list[str] = []
    entries = [_entry(turn.role, turn.text, repairs) for turn in value.conversation]
    return _assembled(entries, [value.probability], repairs, [])


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
    return Conversation(value.conversation, probability, value.ended_by)


def read_any(text: str) -> Conversation | Rejection:
    """What the general reader alone makes of a text: the same as the strict ones wherever these read it."""
    repairs: list[str] = []
    if not text.isascii() and _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
        repairs.append(Repair.BAD_CHARACTERS)
    if not trim(text):
        return Rejection(RejectionReason.EMPTY, "the answer is blank")
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    text = without_thinking(text.removeprefix("\ufeff"), repairs)
    if not trim(text):
        return Rejection(RejectionReason.NO_TURNS, "the answer is nothing but thinking")
    parsed = parse(text)
    in_json = None if parsed is None else _read_json(parsed, list(repairs))
    if parsed is not None and isinstance(in_json, Conversation):
        around = _around(text, parsed, in_json, repairs)
        if around is None and parsed.cut:
            return Rejection(RejectionReason.TRUNCATED, "the JSON breaks off inside a string")
        return around or in_json
    in_lines = _read_lines(text, repairs)
    # A list of one turn in JSON says more about what is wrong than lines that are none.
    none = isinstance(in_lines, Rejection) and in_lines.reason is RejectionReason.NO_TURNS
    return in_json if none and in_json is not None else in_lines


def _around(text: str, parsed: Parsed, inner: Conversation, repairs: list[str]) -> Conversation | None:
    """The conversation in lines that JSON in one of its turns is only a part of; None if there is none."""
    if not role_lines(parsed.before):
        return None
    outer = _read_lines(text, list(repairs))
    return outer if isinstance(outer, Conversation) and len(outer.turns) > len(inner.turns) else None


def _read_json(parsed: Parsed, repairs: list[str]) -> Conversation | Rejection | None:
    """What JSON in the text holds; None if there is no turn in it."""
    spoken = spoken_in(parsed.values)
    if not spoken.entries:
        return _read_text_in(spoken, repairs)
    given, before = frame.probabilities(parsed.before)
    late, after = frame.probabilities(parsed.after)
    behind = find_marker(after)
    if behind is not None:
        after = behind.said + after[behind.end :]
    noted = {
        Repair.CODE_FENCE: frame.FENCE.search(parsed.before) is not None,
        Repair.PREAMBLE: frame.chatter(before),
        Repair.JSON_REPAIRED: parsed.mended,
        Repair.JSON_ESCAPES: parsed.escaped,
        Repair.STRAY_TEXT: spoken.strangers,
        Repair.ROLE_NAME: spoken.named,
        Repair.ROLE_ALIAS: spoken.aliased,
    }
    repairs += [name for name, found in noted.items() if found]
    tail: list[str] = [Repair.POSTAMBLE] if frame.chatter(after) else []
    entries = [_entry(role, said, repairs) for role, said in spoken.entries]
    return _assembled(
        entries,
        spoken.probabilities or late or given,
        repairs,
        tail,
        unspoken=spoken.unspoken or behind is not None,
        ended_by=spoken.ended_by,
    )


def _read_text_in(spoken: Spoken, repairs: list[str]) -> Conversation | None:
    """The conversation that stands as one text in lines inside JSON; None if there is none."""
    for text in spoken.texts[:4]:
        block = spoken_lines(text)
        if block is not None and block.sides == 2:
            values = spoken.probabilities or block.probabilities
            names = [*repairs, *block.repairs]
            result = _assembled(
                block.entries, values, names, [], unspoken=block.unspoken, ended_by=spoken.ended_by
            )
            return result if isinstance(result, Conversation) else None
    return None


def _entry(role: Role, said: str, repairs: list[str]) -> Entry:
    """A text out of JSON, its end marker taken off."""
    if not said.isascii() and _SURROGATE.search(said):
        said = _SURROGATE.sub("\ufffd", said)
        repairs.append(Repair.BAD_CHARACTERS)
    marked = find_marker(said)
    if marked is None:
        return role, said, False
    if not marked.standard:
        repairs.append(Repair.MARKER_FORM)
    name_behind(said[marked.end :], repairs)
    return role, marked.said, True


def _read_lines(text: str, repairs: list[str]) -> Conversation | Rejection:
    block = spoken_lines(text)
    if block is None:
        if declines(text):
            return Rejection(RejectionReason.REFUSED, f"the model declined: {_shown(text)}")
        return Rejection(RejectionReason.NO_TURNS, f"no line that a role speaks: {_shown(text)}")
    result = _assembled(
        block.entries, block.probabilities, [*repairs, *block.repairs], [], unspoken=block.unspoken
    )
    if isinstance(result, Rejection) and declines(block.head):
        return Rejection(RejectionReason.REFUSED, f"the model declined: {_shown(text)}")
    return result


def _assembled(
    entries: list[Entry],
    probabilities: list[Any],
    repairs: list[str],
    tail: list[str],
    *,
    unspoken: bool = False,
    ended_by: Role | None = None,
) -> Conversation | Rejection:
    """The conversation of some entries, empty ones and what follows the end marker left out."""
    turns: list[Turn] = []
    for position, (role, said, ended) in enumerate(entries):
        said = trim(said)
        if not silent(said):
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
    read_values = [probability_of(value) for value in numbered or values]
    first = read_values[0]
    if first is None or any(other is None or abs(other - first) > 0.006 for other in read_values):
        return None, True
    return first, False


def _shown(text: str) -> str:
    """The beginning of a text on one line."""
    words = " ".join(_SURROGATE.sub("\ufffd", text[:400]).split())
    return words if len(words) <= 60 else words[:57] + "..."
