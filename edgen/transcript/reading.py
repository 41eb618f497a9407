"""A raw reply to a conversation, or to the reason why it is none.

`read` tries the strict forms first, then takes away what stands around the answer (thinking,
fences, chatter), and reads JSON or lines. It never raises, and its work is linear in the length.
"""

from __future__ import annotations

import msgspec

from edgen.model import Conversation, Rejection, RejectionReason
from edgen.transcript import frame
from edgen.transcript.abroad import NO_WORDS, OwnWords, in_our_words, in_own_words, with_foot
from edgen.transcript.assembling import assembled, entry
from edgen.transcript.characters import encoded, shown
from edgen.transcript.lines import spoken_lines
from edgen.transcript.loosejson import Parsed, parse
from edgen.transcript.marker import find_marker
from edgen.transcript.quotes import trim
from edgen.transcript.refusals import declines
from edgen.transcript.repairs import Repair
from edgen.transcript.rolelines import role_lines
from edgen.transcript.shapes import Spoken, spoken_in
from edgen.transcript.strict import read_strict
from edgen.transcript.thinking import without_thinking


def read(
    text: str, *, finish_reason: str = "stop", refusal: str | None = None, words: OwnWords = NO_WORDS
) -> Conversation | Rejection:
    """The conversation in a reply, or why there is none.

    `finish_reason` is the service's ("length": cut off, "content_filter": blocked), `refusal` its
    words when it refused outside the text; `words` are a job's own for the two sides. Never raises.
    """
    if refusal is not None and refusal.strip():
        return Rejection(RejectionReason.REFUSED, f"the service refused: {shown(refusal)}")
    if finish_reason == "content_filter":
        return Rejection(RejectionReason.REFUSED, "the service blocked the answer")
    if finish_reason == "length":
        return Rejection(RejectionReason.TRUNCATED, "the answer was cut off by the token limit")
    if words and (named := in_own_words(text, words)) is not text:
        return _noted(read_strict(named) or read_any(named, words), Repair.ROLE_ALIAS)
    return read_strict(text) or read_any(text, words)


def read_any(text: str, words: OwnWords = NO_WORDS) -> Conversation | Rejection:
    """What the general reader alone makes of a text: the same as the strict ones wherever these read it."""
    result = _as_it_stands(text)
    if isinstance(result, Rejection):
        told = in_our_words(text, words)
        if told is None:
            return result
        result = _noted(_as_it_stands(told.text), Repair.ROLE_ALIAS)
        return _noted(result, Repair.MARKER_FORM) if told.ended else result
    if result.probability is None and (footed := with_foot(text)) is not None:
        again = _as_it_stands(footed)
        if isinstance(again, Conversation) and _says_the_same(again, result):
            return again
    return result


def _says_the_same(again: Conversation, result: Conversation) -> bool:
    """Whether two readings differ in nothing that is said but in what stands behind it."""
    *turns, last = result.turns
    return list(again.turns[:-1]) == turns and last.text.startswith(again.turns[-1].text)


def _noted(result: Conversation | Rejection, repair: Repair) -> Conversation | Rejection:
    """The conversation with this repair among its own."""
    if isinstance(result, Rejection) or repair in result.repairs:
        return result
    return msgspec.structs.replace(result, repairs=(*result.repairs, str(repair)))


def _as_it_stands(text: str) -> Conversation | Rejection:
    """What a text says in the reader's own words."""
    repairs: list[str] = []
    text = encoded(text, repairs)
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
    entries = [entry(role, said, repairs) for role, said in spoken.entries]
    return assembled(
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
            result = assembled(
                block.entries, values, names, [], unspoken=block.unspoken, ended_by=spoken.ended_by
            )
            return result if isinstance(result, Conversation) else None
    return None


def _read_lines(text: str, repairs: list[str]) -> Conversation | Rejection:
    block = spoken_lines(text)
    if block is None:
        if declines(text):
            return Rejection(RejectionReason.REFUSED, f"the model declined: {shown(text)}")
        return Rejection(RejectionReason.NO_TURNS, f"no line that a role speaks: {shown(text)}")
    result = assembled(
        block.entries, block.probabilities, [*repairs, *block.repairs], [], unspoken=block.unspoken
    )
    if isinstance(result, Rejection) and declines(block.head):
        return Rejection(RejectionReason.REFUSED, f"the model declined: {shown(text)}")
    return result
