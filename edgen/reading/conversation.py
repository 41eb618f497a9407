"""Read a conversation out of a raw reply, or return the reason why the reply contains no conversation.

`read_unknown` reads every layout by the same steps. A reply in a layout that earlier replies had takes a
shorter way to the same result (`learned`). The steps:

1. `without_wrappers` removes lone surrogates and thinking. Markup (XML, HTML, BBCode, LaTeX) that names the
   speakers becomes lines with labels (`text/markup`).
2. JSON is parsed (`loose_json/parser`), and its values say who speaks (`loose_json/conversation`).
3. Any other text is cut, in one pass, at the lines that start a turn (`lines/role_lines`). Each line has
   its marks: the role, what stands before it (bullets, numbers, time stamps, bold, a table's bar, a key
   such as `speaker:`), what separates it from the text (a colon, a tag, a line break, a dash), a name or a
   note next to it. Rules over these marks decide which lines count: the manner that two roles use, forms
   that occur once, examples inside of a turn.
4. Rules over the lines select one conversation (`lines/line`): the lines under one heading, up to the end
   marker or the probability, without lines inside quotation marks.
5. A turn is the text between two labels, without the decoration of the layout (`lines/shared_marks`,
   `text/surroundings`, `lines/conversation`). The marks of all turns are listed once, and a rule about a mark
   that no turn has does not run. A line inside a turn that calls a role by another word, in any language, is
   a turn of its own, with a repair.
6. `assembly` makes the conversation and names the repairs.

If steps 2 and 3 find no two speakers, other ways to cut the text are tried in this order, and steps 4 to 6
follow: labels in other languages (`foreign_words`), then labels with a frame that no rule knows, such as
`#turn[Teacher][…]` (`lines/frames`). No function here raises an exception; the work is linear in the length.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from edgen.core.text import compile_later
from edgen.core.values import Conversation, Rejection, RejectionReason, Turn
from edgen.reading.assembly import ALL_EMPTY, FoundParts, add_repairs, assemble, make_entries
from edgen.reading.assistant_words import find_service_refusal, is_refusal
from edgen.reading.foreign_words import translate, translate_own, translate_probability
from edgen.reading.learned.layouts import find_layouts
from edgen.reading.lines.conversation import LineConversation, find_in_lines, read_cut_lines
from edgen.reading.lines.frames import cut_at_frames
from edgen.reading.lines.role_lines import split_lines
from edgen.reading.loose_json.conversation import JsonConversation, find_in_json
from edgen.reading.loose_json.parser import Parsed, parse
from edgen.reading.other_speaker import HINTS, holds_other_speaker
from edgen.reading.repairs import Repair
from edgen.reading.roles import TEACHER_STUDENT, OwnWords, RoleWords
from edgen.reading.text import surroundings
from edgen.reading.text.characters import (
    are_spoken,
    excerpt,
    find_marks,
    holds_pair,
    replace_surrogates,
)
from edgen.reading.text.marker import find_marker
from edgen.reading.text.quotes import trim
from edgen.reading.text.thinking import drop_thinking
from edgen.reading.text.wrappers import without_wrappers
from edgen.reading.verbatim import read_verbatim

_FEW_BRACKETS = 4  # brackets of a text that is not JSON
_BEFORE_JSON = "-" + "".join(char for char in map(chr, range(0x3001)) if char.isspace() and char != "\n")
_KEY = 40  # characters of a name or a key before a text
_LIST = compile_later(r"\[\s*+(?:[\[{\"'“]|\([\"'\d])")  # of JSON
_NO_LINE = Rejection(RejectionReason.NO_TURNS, "no line that a role speaks")
# After these rejections, the labels are searched for by their frame: a turn may speak like a refusal.
_UNFRAMED = (
    RejectionReason.NO_TURNS,
    RejectionReason.TOO_SHORT,
    RejectionReason.ONE_SPEAKER,
    RejectionReason.REFUSED,
)


def read(
    text: str,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    roles: RoleWords = TEACHER_STUDENT,
    words: OwnWords = (),
) -> Conversation | Rejection:
    """Return the conversation in a reply, or the reason why there is none. Never raises.

    `finish_reason` is the service's ("length": cut off, "content_filter": blocked), `refusal` its words when
    it refused outside the text; `roles` are those who may speak, `words` a job's own words for them.
    """
    failed = refusal is not None or finish_reason != "stop"
    if failed and (refused := find_service_refusal(refusal, finish_reason)) is not None:
        return refused
    roles = roles.with_own(words) if words else roles
    if text[:1] == "{" and (written := read_verbatim(text, roles)) is not None:
        return written
    result, suspects = _read_known(text, roles)
    if isinstance(result, Rejection):
        return result
    if not suspects or not holds_other_speaker(suspects, roles):  # most
        return result
    return add_repairs(result, last=[Repair.OTHER_SPEAKER])


def _read_known(text: str, roles: RoleWords) -> tuple[Conversation | Rejection, Sequence[Turn]]:
    """Return the conversation in a text, and the turns in which another speaker may be shown."""
    layouts = find_layouts(roles) if roles in _FIRST else None
    known = None if layouts is None else layouts.find(text)
    if known is not None and not _may_be_keyed(known[0]):
        return known
    repairs: list[str] = []
    answer = drop_thinking(text, repairs, roles) if "<" in text or holds_pair(text, "[/") else text
    if repairs and layouts is not None:
        known = layouts.find(answer)
        if known is not None and Repair.ROLE_ALIAS not in known[0].repairs:
            return add_repairs(known[0], first=repairs), known[1]
    result = read_unknown(text, roles)
    if isinstance(result, Conversation) and [*result.repairs[: len(repairs)]] == repairs:
        _learn_layout(answer, replace(result, repairs=result.repairs[len(repairs) :]), roles)
    if isinstance(result, Rejection) or HINTS.isdisjoint(
        find_marks("".join([turn.text for turn in result.turns]))
    ):
        return result, ()
    return result, result.turns


def _may_be_keyed(result: Conversation) -> bool:
    """Return whether each turn may begin with a name or a key that belongs to the layout."""
    for turn in result.turns:
        start = turn.text[:_KEY]
        if ":" not in start and "=" not in start:
            return False
    return True


# The first reply to some roles in this process, until another comes; then None.
_FIRST: dict[RoleWords, tuple[str, Conversation] | None] = {}


def _learn_layout(text: str, result: Conversation, roles: RoleWords) -> None:
    """Learn the layout of a text that was read as `result`.

    A layout needs two replies, so the first reply is kept until the second comes.
    """
    if roles not in _FIRST:
        _FIRST[roles] = text, result
        return
    layouts = find_layouts(roles)
    if (first := _FIRST[roles]) is not None:
        _FIRST[roles] = None
        layouts.learn(*first)
    layouts.learn(text, result)


def read_unknown(text: str, roles: RoleWords) -> Conversation | Rejection:
    """Return the conversation in a text whose layout is not known yet, or a Rejection."""
    if roles.own and (named := translate_own(text, roles)) is not text:
        result = _read_any(named, roles)
        return result if isinstance(result, Rejection) else add_repairs(result, last=[Repair.ROLE_ALIAS])
    return _read_any(text, roles)


def _read_any(text: str, roles: RoleWords) -> Conversation | Rejection:
    """Return the conversation in a text in the reader's own words, or else in another language's."""
    result = _as_it_stands(text, roles)
    if isinstance(result, Rejection):
        translation = translate(text, roles)
        if translation is None:
            return _read_in_frames(result, text, roles)
        result = _as_it_stands(translation.text, roles)
        if isinstance(result, Rejection):
            return _read_in_frames(result, translation.text, roles)
        return add_repairs(
            result, last=[Repair.ROLE_ALIAS, *([Repair.MARKER_FORM] if translation.ended else [])]
        )
    if result.probability is None and (translated := translate_probability(text, roles)) is not None:
        again = _as_it_stands(translated, roles)
        # The same turns, except for the text after the last one.
        *turns, last = result.turns
        if (
            isinstance(again, Conversation)
            and list(again.turns[:-1]) == turns
            and last.text.startswith(again.turns[-1].text)
        ):
            return again
    return result


def _as_it_stands(text: str, roles: RoleWords) -> Conversation | Rejection:
    """Return the conversation in a text in the reader's own words, or a Rejection."""
    repairs: list[str] = []
    if not trim(text):
        return Rejection(RejectionReason.EMPTY, "the answer is blank")
    text = without_wrappers(text, repairs, roles)
    if not trim(text):
        return Rejection(RejectionReason.NO_TURNS, "the answer is nothing but thinking")
    parsed = parse(text, roles, plain=True) if _may_hold_json(text) else None
    in_json = None if parsed is None else _read_json(parsed, list(repairs), roles)
    if parsed is not None and isinstance(in_json, Conversation):
        around = _read_around_json(text, parsed, in_json, repairs, roles)
        if around is None and parsed.cut:
            return Rejection(RejectionReason.TRUNCATED, "the JSON breaks off inside a string")
        return around or in_json
    alone = parsed is not None and not any(map(surroundings.has_words, (parsed.before, parsed.after)))
    if alone and in_json is ALL_EMPTY:
        return in_json
    in_lines = _read_lines(text, repairs, roles)
    # A list of one turn in JSON says more about what is wrong than lines without a turn.
    none = isinstance(in_lines, Rejection) and in_lines.reason is RejectionReason.NO_TURNS
    return in_json if none and in_json is not None and not is_refusal(text) else in_lines


def _may_hold_json(text: str) -> bool:
    """Return whether a line may begin with the bracket of JSON, after blanks or a bullet.

    The check is cheap, since it runs for every reply.
    """
    for bracket in "[{":
        at = text.find(bracket)
        for _ in range(_FEW_BRACKETS):
            if at < 0:
                break
            begins = not text[text.rfind("\n", 0, at) + 1 : at].strip(_BEFORE_JSON)
            if begins and (bracket == "{" or _LIST.match(text, at)):
                return True
            at = text.find(bracket, at + 1)
        else:
            return True
    return False


def _read_in_frames(rejection: Rejection, text: str, roles: RoleWords) -> Conversation | Rejection:
    """Return the conversation in a text whose labels have a frame that no rule knows.

    Without such a frame, return the rejection with its details.
    """
    if rejection.reason in _UNFRAMED and rejection is not ALL_EMPTY:
        repairs: list[str] = []
        cut = cut_at_frames(drop_thinking(replace_surrogates(text, repairs), repairs, roles), roles)
        if cut is None:
            return _explain_rejection(rejection, text, roles)
        last = cut.lines[-1]
        said, line_break, below = last.body.partition("\n")
        last.body = said + line_break + (translate_probability(below, roles) or below)
        found = _finish_lines(read_cut_lines(cut, roles), text, repairs)
        if isinstance(found, Conversation) and are_spoken([turn.text for turn in found.turns]):
            return found
    return _explain_rejection(rejection, text, roles)


def _explain_rejection(rejection: Rejection, text: str, roles: RoleWords) -> Rejection:
    """Return the rejection with the beginning of the text in its detail, or a rejection as a refusal."""
    if rejection is not _NO_LINE:
        return rejection
    said = without_wrappers(text, [], roles)
    if is_refusal(said):
        return _make_refusal(said)
    return Rejection(rejection.reason, f"{rejection.detail}: {excerpt(said)}")


def _make_refusal(text: str) -> Rejection:
    return Rejection(RejectionReason.REFUSED, f"the model declined: {excerpt(text)}")


def _read_around_json(
    text: str, parsed: Parsed, inner: Conversation, repairs: list[str], roles: RoleWords
) -> Conversation | None:
    """Return the conversation in lines that has the JSON in one of its turns; None if there is none."""
    if not parsed.before.strip() or not split_lines(parsed.before, roles).lines:
        return None
    outer = _read_lines(text, list(repairs), roles)
    return outer if isinstance(outer, Conversation) and len(outer.turns) > len(inner.turns) else None


def _read_json(parsed: Parsed, repairs: list[str], roles: RoleWords) -> Conversation | Rejection | None:
    """Return the conversation in JSON in the text; None if there is no turn in it."""
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
        Repair.EXTRA_CONVERSATION: spoken.others,
        Repair.STRAY_TEXT: spoken.strangers,
        Repair.ROLE_NAME: spoken.named,
        Repair.ROLE_ALIAS: spoken.aliased,
    }
    repairs += [name for name, there in noted.items() if there]
    entries = make_entries(spoken.entries, repairs)
    probabilities = spoken.probabilities or late or given
    found = FoundParts(
        entries, probabilities, repairs, spoken.unspoken or behind is not None, spoken.ended_by
    )
    return assemble(found, [Repair.POSTAMBLE] if surroundings.has_words(after) else [])


def _read_text_in(spoken: JsonConversation, repairs: list[str], roles: RoleWords) -> Conversation | None:
    """Return the conversation that stands as one text inside JSON; None if there is none."""
    for text in spoken.texts[:4]:
        if text[:1] == "{" and isinstance(inner := _as_it_stands(text, roles), Conversation):
            return add_repairs(inner, first=repairs)
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
    return _NO_LINE if block is None else _finish_lines(block, text, repairs)


def _finish_lines(block: LineConversation, text: str, repairs: list[str]) -> Conversation | Rejection:
    """Return the conversation of a text in lines, with these repairs first, or a Rejection."""
    block.repairs[:0] = repairs
    result = assemble(block)
    if isinstance(result, Rejection) and is_refusal(block.head):
        return _make_refusal(text)
    return result
