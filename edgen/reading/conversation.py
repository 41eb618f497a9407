"""A raw reply to a conversation, or to the reason why it is none.

`read` tries the strict forms first, then takes away what stands around the answer (thinking, fences, chatter), and
reads JSON or lines. It never raises, and its work is linear in the length.
"""

from __future__ import annotations

from edgen.core.values import Conversation, Rejection, RejectionReason
from edgen.reading.assembly import Found, assemble, make_entry, noted
from edgen.reading.assistant_words import find_service_refusal, is_refusal
from edgen.reading.foreign_words import translate, translate_own, translate_probability
from edgen.reading.lines.conversation import find_in_lines
from edgen.reading.lines.role_lines import find_role_lines
from edgen.reading.loose_json.conversation import JsonConversation, find_in_json
from edgen.reading.loose_json.parser import Parsed, parse
from edgen.reading.repairs import Repair
from edgen.reading.roles import TEACHER_STUDENT, OwnWords, RoleWords
from edgen.reading.strict import read_strict
from edgen.reading.text import surroundings
from edgen.reading.text.characters import excerpt, replace_surrogates
from edgen.reading.text.marker import find_marker
from edgen.reading.text.quotes import trim
from edgen.reading.text.thinking import drop_thinking


def read(
    text: str,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    roles: RoleWords = TEACHER_STUDENT,
    words: OwnWords = (),
) -> Conversation | Rejection:
    """The conversation in a reply, or why there is none. Never raises.

    `finish_reason` is the service's ("length": cut off, "content_filter": blocked), `refusal` its words when it refused
    outside the text; `roles` are those who may speak, `words` a job's own words for them.
    """
    if (refused := find_service_refusal(refusal, finish_reason)) is not None:
        return refused
    roles = roles.with_own(words) if words else roles
    if roles.own and (named := translate_own(text, roles)) is not text:
        result = read_strict(named, roles) or read_any(named, roles)
        return result if isinstance(result, Rejection) else noted(result, last=[Repair.ROLE_ALIAS])
    return read_strict(text, roles) or read_any(text, roles)


def read_any(text: str, roles: RoleWords = TEACHER_STUDENT) -> Conversation | Rejection:
    """What the general reader alone makes of a text; where a strict form reads it, both say the same."""
    result = _as_it_stands(text, roles)
    if isinstance(result, Rejection):
        translation = translate(text, roles)
        if translation is None:
            return result
        result = _as_it_stands(translation.text, roles)
        if isinstance(result, Rejection):
            return result
        return noted(result, last=[Repair.ROLE_ALIAS, *([Repair.MARKER_FORM] if translation.ended else [])])
    if result.probability is None and (translated := translate_probability(text, roles)) is not None:
        again = _as_it_stands(translated, roles)
        # The same turns, but for what stands behind the last one.
        *turns, last = result.turns
        if (
            isinstance(again, Conversation)
            and list(again.turns[:-1]) == turns
            and last.text.startswith(again.turns[-1].text)
        ):
            return again
    return result


def _as_it_stands(text: str, roles: RoleWords) -> Conversation | Rejection:
    """What a text says in the reader's own words."""
    repairs: list[str] = []
    text = replace_surrogates(text, repairs)
    if not trim(text):
        return Rejection(RejectionReason.EMPTY, "the answer is blank")
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    text = drop_thinking(text.removeprefix("\ufeff"), repairs, roles)
    if not trim(text):
        return Rejection(RejectionReason.NO_TURNS, "the answer is nothing but thinking")
    parsed = parse(text, roles)
    in_json = None if parsed is None else _read_json(parsed, list(repairs), roles)
    if parsed is not None and isinstance(in_json, Conversation):
        around = _around(text, parsed, in_json, repairs, roles)
        if around is None and parsed.cut:
            return Rejection(RejectionReason.TRUNCATED, "the JSON breaks off inside a string")
        return around or in_json
    in_lines = _read_lines(text, repairs, roles)
    # A list of one turn in JSON says more about what is wrong than lines that are none.
    none = isinstance(in_lines, Rejection) and in_lines.reason is RejectionReason.NO_TURNS
    return in_json if none and in_json is not None else in_lines


def _around(
    text: str, parsed: Parsed, inner: Conversation, repairs: list[str], roles: RoleWords
) -> Conversation | None:
    """The conversation in lines that has the JSON in one of its turns; None if there is none."""
    if not find_role_lines(parsed.before, roles):
        return None
    outer = _read_lines(text, list(repairs), roles)
    return outer if isinstance(outer, Conversation) and len(outer.turns) > len(inner.turns) else None


def _read_json(parsed: Parsed, repairs: list[str], roles: RoleWords) -> Conversation | Rejection | None:
    """What JSON in the text holds; None if there is no turn in it."""
    spoken = find_in_json(parsed.values, roles)
    if not spoken.entries:
        return _read_text_in(spoken, repairs, roles)
    given, before = surroundings.split_probabilities(parsed.before)
    late, after = surroundings.split_probabilities(parsed.after)
    behind = find_marker(after)
    if behind is not None:
        after = behind.said + after[behind.end :]
    noted = {
        Repair.CODE_FENCE: surroundings.FENCE.search(parsed.before) is not None,
        Repair.PREAMBLE: surroundings.has_words(before),
        Repair.JSON_REPAIRED: parsed.mended,
        Repair.JSON_ESCAPES: parsed.escaped,
        Repair.STRAY_TEXT: spoken.strangers,
        Repair.ROLE_NAME: spoken.named,
        Repair.ROLE_ALIAS: spoken.aliased,
    }
    repairs += [name for name, there in noted.items() if there]
    entries = [make_entry(role, said, repairs) for role, said in spoken.entries]
    probabilities = spoken.probabilities or late or given
    found = Found(entries, probabilities, repairs, spoken.unspoken or behind is not None, spoken.ended_by)
    return assemble(found, [Repair.POSTAMBLE] if surroundings.has_words(after) else [])


def _read_text_in(spoken: JsonConversation, repairs: list[str], roles: RoleWords) -> Conversation | None:
    """The conversation that stands as one text in lines inside JSON; None if there is none."""
    for text in spoken.texts[:4]:
        block = find_in_lines(text, roles)
        if block is not None and block.speakers > 1:
            block.probabilities = spoken.probabilities or block.probabilities
            block.repairs[:0] = repairs
            block.ended_by = spoken.ended_by
            result = assemble(block)
            return result if isinstance(result, Conversation) else None
    return None


def _read_lines(text: str, repairs: list[str], roles: RoleWords) -> Conversation | Rejection:
    block = find_in_lines(text, roles)
    if block is None:
        if is_refusal(text):
            return Rejection(RejectionReason.REFUSED, f"the model declined: {excerpt(text)}")
        return Rejection(RejectionReason.NO_TURNS, f"no line that a role speaks: {excerpt(text)}")
    block.repairs[:0] = repairs
    result = assemble(block)
    if isinstance(result, Rejection) and is_refusal(block.head):
        return Rejection(RejectionReason.REFUSED, f"the model declined: {excerpt(text)}")
    return result
