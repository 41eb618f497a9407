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
from edgen.transcript.dumping import Verbatim
from edgen.transcript.lines import spoken_lines
from edgen.transcript.loosejson import parse
from edgen.transcript.marker import find_marker
from edgen.transcript.probability import probability_of
from edgen.transcript.published import read_published
from edgen.transcript.quotes import silent, trim
from edgen.transcript.refusals import declines
from edgen.transcript.repairs import Repair
from edgen.transcript.shapes import spoken_in
from edgen.transcript.thinking import without_thinking

Entry = tuple[Role, str, bool]

_VERBATIM = msgspec.json.Decoder(Verbatim)
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
    exact = read_published(text) or _read_verbatim(text)
    return exact if exact is not None else _read_any(text)


def _read_verbatim(text: str) -> Conversation | None:
    if not text.startswith('{\n  "verbatim"'):
        return None
    try:
        value = _VERBATIM.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    good = (
        value.verbatim
        and len({turn.role for turn in value.conversation}) == 2
        and all(turn.text and turn.text == turn.text.strip() for turn in value.conversation)
        and not any(SQUARE.search(turn.text) for turn in value.conversation)
        and (value.probability is None or 0 <= value.probability <= 1)
    )
    return Conversation(value.conversation, value.probability, value.ended_by) if good else None


SQUARE = re.compile(r"\[\s*end\s+of\s+(?:the\s+)?conversation\s*\]", re.IGNORECASE)


def _read_any(text: str) -> Conversation | Rejection:
    repairs: list[str] = []
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
        repairs.append(Repair.BAD_CHARACTERS)
    if not trim(text):
        return Rejection(RejectionReason.EMPTY, "the answer is blank")
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    text = without_thinking(text.removeprefix("\ufeff"), repairs)
    if not trim(text):
        return Rejection(RejectionReason.NO_TURNS, "the answer is nothing but thinking")
    return _read_json(text, list(repairs)) or _read_lines(text, repairs)


def _read_json(text: str, repairs: list[str]) -> Conversation | Rejection | None:
    """What JSON in the text holds; None if there is none that two turns can be taken from."""
    parsed = parse(text)
    if parsed is None:
        return None
    spoken = spoken_in(parsed.values)
    if len(spoken.entries) < 2:
        return None
    before, after = parsed.before, parsed.after
    if frame.FENCE.search(before):
        repairs.append(Repair.CODE_FENCE)
    given, rest = frame.probabilities(before)
    if frame.chatter(rest):
        repairs.append(Repair.PREAMBLE)
    if parsed.mended:
        repairs.append(Repair.JSON_REPAIRED)
    if parsed.escaped:
        repairs.append(Repair.JSON_ESCAPES)
    if spoken.named:
        repairs.append(Repair.ROLE_NAME)
    if spoken.aliased:
        repairs.append(Repair.ROLE_ALIAS)
    entries: list[Entry] = []
    for role, said in spoken.entries:
        marked = find_marker(said)
        if marked is None:
            entries.append((role, _SURROGATE.sub("\ufffd", said), False))
            continue
        if not marked.standard:
            repairs.append(Repair.MARKER_FORM)
        if said[marked.end :].strip(" \t\r\n.,;!\"'“”*_)]"):
            repairs.append(Repair.AFTER_END_MARKER)
        entries.append((role, _SURROGATE.sub("\ufffd", marked.said), True))
    late, rest = frame.probabilities(after)
    behind = find_marker(rest)
    if behind is not None:
        rest = behind.said + rest[behind.end :]
    tail: list[str] = [Repair.POSTAMBLE] if frame.chatter(rest) else []
    return _assembled(
        entries,
        spoken.probabilities or late or given,
        repairs,
        tail,
        unspoken=behind is not None,
        ended_by=spoken.ended_by,
    )


def _read_lines(text: str, repairs: list[str]) -> Conversation | Rejection:
    block = spoken_lines(text)
    if block is None:
        if declines(text):
            return Rejection(RejectionReason.REFUSED, f"the model declined: {_shown(text)}")
        return Rejection(RejectionReason.NO_TURNS, f"no line that a role speaks: {_shown(text)}")
    result = _assembled(block.entries, block.probabilities, [*repairs, *block.repairs], [], unspoken=block.unspoken)
    if isinstance(result, Rejection) and declines(text):
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
            if position + 1 < len(entries) and any(not e or not silent(s) for _, s, e in entries[position + 1 :]):
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
    read_values = [probability_of(value) for value in values]
    first = read_values[0]
    if first is None or any(other is None or abs(other - first) > 0.006 for other in read_values):
        return None, True
    return first, False


def _shown(text: str) -> str:
    """The beginning of a text on one line."""
    words = " ".join(_SURROGATE.sub("\ufffd", text[:400]).split())
    return words if len(words) <= 60 else words[:57] + "..."
