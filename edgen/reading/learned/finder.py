"""The layout of a reply that was read: the texts around its turns, and what a turn of it may hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from edgen.core.text import compile_later
from edgen.core.values import Conversation
from edgen.reading.learned.asides import WORDS, blank_attribute, blank_remark, blank_values, is_aside
from edgen.reading.learned.formulas import FORMULAS, TAGS
from edgen.reading.learned.given_values import find_behind, find_told, split_head
from edgen.reading.learned.layout import Behind, Layout, Tail, match_any
from edgen.reading.learned.notes import BLANK, find_label_notes
from edgen.reading.learned.regularity import (
    KINDS,
    QUOTES,
    STRINGS,
    begins_no_line,
    is_closed,
    is_mixed,
    is_regular,
    match_own_words,
)
from edgen.reading.learned.rewrites import COLUMNS, PAD, Quoting, find_rewrite
from edgen.reading.learned.texts import DIGITS, KEY, zero_digits
from edgen.reading.learned.turn_codes import PLAIN
from edgen.reading.learned.turn_places import LONGEST, TAG, TurnPlaces, find_turns
from edgen.reading.learned.turn_rules import TurnRules
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords
from edgen.reading.text.characters import TOKEN, TurnWords, WordMemory, fold
from edgen.reading.text.quotes import CLOSERS
from edgen.reading.text.surroundings import is_likely

_HALVES = {"AM", "PM", "am", "pm"}  # of the day, which are no person's name

# Characters that no turn may hold: brackets, tags, escapes, code. Those that do not print count with them.
_NEVER = "<>&[]{}|\\`（）【】"
_STRUCTURE = frozenset(QUOTES + "<|{}[]")  # a turn of several lines could be taken for part of such a layout
_VARYING = compile_later(
    rf"[0-9{BLANK}{WORDS}{PAD}]|^[A-Za-z]{{1,5}}[.)]"
)  # what is not the same in each label
_NAMED_OUTSIDE = compile_later(r'"[^"]*?[^\W\d_]')  # of the strings: `",\n   Student:  "`
_NAMED = compile_later(r"[^\W\d_]\"")  # a name in quotation marks
_LEADING = compile_later(r"[>|•-]\s*\Z")  # a mark that the general reader keeps before a turn with `«`


def find_layout(
    text: str,
    result: Conversation,
    at: int,
    words: RoleWords,
    vocabulary: TurnWords,
    *,
    blank: bool = True,
    vary: bool = False,
) -> Layout | None:
    """Return the layout of a text whose first turn is at this place; None if it has none that can be kept.

    Notes in its labels are left out unless they are blanked already (`blank` is False). `vary`: values before
    the first turn change from reply to reply.
    """
    if blank and (layout := _find_rewritten_layout(text, result, at, words, vocabulary)) is not None:
        return layout
    found = find_turns(text, result.turns, at)
    if found is None:
        layout = _find_woven_layout(text, result, at, words, vocabulary)
        return _blank_head(layout, vocabulary) if layout is not None and vary else layout
    written = found.gaps
    if blank and (told := find_told(written, result)) is not None:
        without = told.sub("", text)
        layout = find_layout(
            without, replace(result, probability=None), at, words, vocabulary, blank=False, vary=vary
        )
        if layout is not None and layout.below is None:
            layout.told = told
            return layout
    notes = find_label_notes(text[:at], written, [turn.role for turn in result.turns]) if blank else None
    if notes is not None and (blanked := notes.blank(text, vocabulary)) is not None:
        at = blanked.find(result.turns[0].text.partition("\n")[0])
        layout = (
            find_layout(blanked, result, at, words, vocabulary, blank=False, vary=vary) if at >= 0 else None
        )
        if layout is not None and not layout.order:
            layout.notes, layout.turns.named = notes, True
            if not notes.blanked:  # the first label may have a note or none
                layout.begin = layout.begin[:KEY]
            return layout
    layout = _find_fixed_layout(text[:at], found, result, words, vocabulary)
    return _blank_head(layout, vocabulary) if layout is not None and vary else layout


def _find_rewritten_layout(
    text: str, result: Conversation, at: int, words: RoleWords, vocabulary: TurnWords
) -> Layout | None:
    """Return the layout of a text that has to be rewritten before it is cut; None for any other."""
    found = find_turns(text, result.turns, at, quoted='"' in text)
    rewrite = None if found is None else find_rewrite(text[:at], found.gaps, found.rest)
    rewritten = None if rewrite is None else rewrite.apply(text)
    if rewritten is None:
        return None
    at = rewritten.find(result.turns[0].text.partition("\n")[0])
    layout = find_layout(rewritten, result, at, words, vocabulary, blank=False) if at >= 0 else None
    if layout is None or layout.order:
        return None
    layout.rewrite = rewrite
    if isinstance(rewrite, Quoting):  # the first turn may have some or none
        layout.begin = layout.begin.removesuffix('"')
        layout.turns.unfit |= {'"'}
    return layout


def _blank_head(layout: Layout, vocabulary: TurnWords) -> Layout:
    """Return a layout with blanks in place of the values before the first turn."""
    numbered = layout.numbered and layout.below is None
    values = None if layout.aside else blank_values(layout.head, vocabulary, numbered=numbered)
    if values is not None:
        layout.head, layout.top = values
        layout.begin = _VARYING.split(layout.head, 1)[0]
    return layout


def _find_woven_layout(
    text: str, result: Conversation, at: int, words: RoleWords, vocabulary: TurnWords
) -> Layout | None:
    """Return the layout of a text in which all turns of one speaker stand before those of the other."""
    turns = (*result.turns[::2], *result.turns[1::2])
    if len(turns) % 2 or (found := find_turns(text, turns, at)) is None:
        return None
    layout = _find_fixed_layout(text[:at], found, replace(result, turns=turns), words, vocabulary)
    if layout is None or not layout.order:
        return None
    layout.woven = True
    return layout


class _Texts(NamedTuple):
    """The texts around the turns of a reply."""

    top: str  # text before the first turn
    head: str  # the same, up to a probability that it gives
    below: str | None  # the same after this probability
    gaps: list[str]  # texts between turns, digits as zeros
    before: dict[str, str]  # the role that follows each of them
    order: list[str]  # the gaps in their order, if there is no other regularity
    rest: str  # text after the last turn


def _find_fixed_layout(
    top: str, found: TurnPlaces, result: Conversation, words: RoleWords, vocabulary: TurnWords
) -> Layout | None:
    """Return the layout of a reply with these texts around its turns, notes apart; None if it has none."""
    written, rest = found.gaps, found.rest
    head, below = split_head(top, result)
    gaps = [*map(zero_digits, written)]
    lettered = gaps != [zero_digits(gap, lettered=False) for gap in written]
    before: dict[str, str] = {}
    spoken = [turn.role for turn in result.turns]
    clear = [before.setdefault(gap, role) for gap, role in zip(gaps, spoken[1:], strict=True)] == spoken[1:]
    regular = clear and len(top) >= KEY and is_regular(top, before, gaps, spoken[0])
    order = [] if regular else gaps if clear else written
    behind = find_behind(rest, result, before)
    if behind is None or (below is not None and behind[0][2] is not None):
        return None
    tails, label = _blank_behind(behind[0], result, vocabulary), behind[1]
    if (
        (label and order)
        or not all(map(_is_marked, order))
        or not _is_apart_from(head + (below or ""), gaps, rest)
        or not is_closed(gaps, rest, ended=result.ended_by is not None)
        or (tails[2] is None and below is None and _gives(top))
    ):
        return None
    texts = _Texts(top, head, below, gaps, before, order, rest)
    layout = _make_layout(texts, result, words, vocabulary)
    if layout.json and found.joint == "\n":
        return None  # JSON that the general reader repairs
    layout.turns.code, layout.turns.joint = found.code, found.joint
    layout.lettered = lettered and clear
    unfit = "".join([kind for kind in _list_kinds(rest) if not layout.turns.unfit.issuperset(kind)])
    layout.tails = {
        tails: Tail(
            result.repairs,
            result.ended_by is not None,
            bool(label),
            unfit,
            WORDS in tails[0] + tails[1],
            any("\n" in turn.text for turn in result.turns[:-1]),
            len(result.turns),
            len(result.turns),
        )
    }
    if layout.numbered:
        layout.counted = [_find_first_label(top), *written, *([rest[: len(label)]] if label else [])]
    if layout.numbered or order:
        layout.speakers = [*spoken, before[label]] if label else spoken
    layout.head = (
        zero_digits(layout.head, lettered=lettered) if layout.numbered and below is None else layout.head
    )
    layout.begin = _VARYING.split(layout.head, 1)[0]
    unclear = Repair.MISSING_QUOTE in result.repairs and (layout.turns.mixed or not rest)
    return None if unclear else layout


def _blank_behind(behind: Behind, result: Conversation, vocabulary: TurnWords) -> Behind:
    """Return the texts around the probability with `WORDS` for what changes in them from reply to reply."""
    before, after, unit = behind
    remark = blank_remark(after, vocabulary)
    if unit is None and remark.partition(WORDS)[0][-1:] not in ('"', "“", ">"):
        remark = after  # words without a mark around them may be the last turn's
    front = blank_attribute(before, result.probability)
    if front == before:
        front = blank_remark(before, vocabulary, keyed=True)
    return front, remark, unit


def _make_layout(texts: _Texts, result: Conversation, words: RoleWords, vocabulary: TurnWords) -> Layout:
    """Return the layout of these texts; `find_fixed_layout` adds its code and what may follow the turns."""
    top, head, below, gaps, before, order, _ = texts
    before_turns = "".join((top, *gaps))
    translated = Repair.ROLE_ALIAS in result.repairs and not _is_alias(head, words)
    named = Repair.ROLE_NAME in result.repairs and any(
        len({*TOKEN.findall(gap)} - _HALVES) > 1 for gap in (_find_last_line(top), *before)
    )
    preamble, blank_line, line = head.rpartition("\n\n")
    called = not any(map(vocabulary.plain.__getitem__, before))  # by words for the roles
    free = called and below is None and not (named or order) and is_aside(preamble, vocabulary)
    beside = [gap for gap in before if "\n" not in gap and not (called and gap.lstrip()[:1] in STRINGS)]
    inline = called and bool(beside)
    marks = _list_kinds_around(top, gaps) + ["*_"] * inline + ["«"] * (_LEADING.search(top) is not None)
    edges = _list_edges(top, gaps)
    own = match_own_words(_find_last_line(top), before, vocabulary)
    opener, labels = _find_opener(top, gaps)
    json = '"＂' in marks and ("{" in top or "[" in top)
    held = _list_own_marks(texts, opener, labels, json=json)
    turns = TurnRules(
        unfit=frozenset("".join((_NEVER, *marks, "=" * translated))) - held,
        begins=not all(_is_label(gap.rpartition("\n")[2], vocabulary) for gap in (top, *before)),
        several=_STRUCTURE.isdisjoint(before_turns) and all(gap[0] == "\n" for gap in gaps),
        mixed=not order and is_mixed([top, *gaps]),
        opener=opener if opener in CLOSERS else "",
        paired=opener == '"' and _NAMED.search(labels) is not None and Repair.LAYOUT in result.repairs,
        bracketed="(" in before_turns,
        single=top[-1:] == "'",
        tagged=TAG.search(head) is not None or "<|" in head,
        translated=translated,
        named=named,
        ordered=bool(order),
        inline=inline,
        parted=any(any(map(str.isalnum, gap.rpartition("\n")[0])) for gap in gaps),
        own=own,
        unowned=WordMemory(partial(begins_no_line, own)),
        directed=not any(map(before_turns.__contains__, "[]")),
        firsts=edges[0],
        lasts=edges[1],
        code=PLAIN,
    )
    between = sorted({*order} or before, key=len, reverse=True)
    return Layout(
        "",
        blank_line + line if free else head,
        result.turns[0].role,
        {} if order else {gap: before[gap] for gap in between},
        numbered="0" in "".join(between),
        lettered=False,
        counted=[],
        uncounted=[],
        rows=bool(beside) and not order,
        json=json,
        turns=turns,
        between=match_any(between),
        tails={},
        below=below,
        order=order,
        aside=free,
    )


def _list_own_marks(texts: _Texts, opener: str, labels: str, *, json: bool) -> frozenset[str]:
    """Return the marks that are a turn's own, as the layout has none of them: round brackets, quotation marks
    on lines, marks of formulas. In JSON, brackets belong to the strings, and backslashes to their escapes.

    `opener` and `labels` are those of `_find_opener`.
    """
    top, gaps, rest = texts.top, texts.gaps, texts.rest
    around = "".join((top, *gaps))
    taken = {mark for mark in FORMULAS if mark in around}
    taken |= {mark for mark in "<>&\\`|" if mark in rest}
    if json:
        taken -= {*"[]{}"}
    if not taken.isdisjoint("<>&\\"):
        taken |= TAGS
    if opener == "'" or (json and not all(map(_NAMED_OUTSIDE.match, gaps))):
        taken.add("\\")
    quotes = '"' if _hold_bare_quotes(opener, labels, top, gaps) else ""
    return (FORMULAS - taken).union("()", quotes)


def _find_opener(top: str, gaps: Sequence[str]) -> tuple[str, str]:
    """Return the last character of all labels, nothing if they differ; and the last lines of labels without
    it."""
    openers = {label[-1:] for label in (top, *gaps)}
    opener = openers.pop() if len(openers) == 1 else ""
    return opener, "".join([label[label.rfind("\n") + 1 : -1] for label in (top, *gaps)])


def _hold_bare_quotes(opener: str, labels: str, top: str, gaps: Sequence[str]) -> bool:
    """Return whether turns hold quotation marks as they are: only lines do, and only after labels without
    any; JSON does not."""
    if opener not in ('"', "“") or not _STRUCTURE.isdisjoint(labels) or top[-2:-1] in COLUMNS:
        return False
    return all(gap.count('"') <= 2 for gap in gaps)


def _list_edges(top: str, gaps: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the marks with which a turn may begin like a word, and those with which it may end so."""
    before_turns = "".join((top, *gaps))
    edges = "¿¡" if "_" in before_turns else "¿¡_"
    opened, closed = ("", "") if "[" in before_turns or "]" in before_turns else "[]"
    starred = "" if any(label[-1:] == "*" for label in (top, *gaps)) else "*"
    quoted = "" if any(mark in before_turns for mark in '"“”') else '"”'
    return frozenset(f"{edges}({opened}{starred}"), frozenset(f"{edges};){closed}*{quoted}")


def _is_apart_from(top: str, gaps: Sequence[str], rest: str) -> bool:
    """Return whether the texts around the turns are short, and give no probability before the last turn."""
    layout = "".join((top, *gaps, rest))
    return (
        max(map(len, [*gaps, rest])) <= LONGEST
        and WORDS not in layout
        and "ended_by" not in layout
        and not _gives("".join(gaps))
    )


def _is_label(label: str, vocabulary: TurnWords) -> bool:
    """Return whether a text before a turn names a speaker on the turn's line, or opens a quotation there."""
    return not vocabulary.plain[label] or (label[-1:] in QUOTES and any(map(str.isalpha, label)))


def _find_last_line(head: str) -> str:
    """Return the line of a text before the first turn that has this turn's label."""
    return head.rstrip().rpartition("\n")[2]


def _find_first_label(head: str) -> str:
    """Return the text before the first turn on its line."""
    return head.rpartition("\n")[2]


def _list_kinds_around(top: str, gaps: Sequence[str]) -> list[str]:
    """Return the kinds of quotation marks and emphasis next to the turns, and of brackets before them.

    Tags are left out.
    """
    anywhere = _list_kinds(*{top, *gaps})
    bare = [TAG.sub("", gap) for gap in (top, *gaps)]
    edges = _list_kinds("".join([bare[0][-2:], *[gap[:2] + gap[-2:] for gap in bare[1:]]]))
    emphasis = [
        mark for mark in "*_" if any(mark in (gap[:1], gap[-1:]) for gap in (bare[0][-1:], *bare[1:]))
    ]
    return [*[kind for kind in anywhere if kind == "()" or kind in edges], *emphasis]


def _list_kinds(*pieces: str) -> list[str]:
    """Return the kinds of quotation marks and brackets in some pieces of a layout, whole tags apart."""
    marks = "".join([TAG.sub("", piece) for piece in pieces])
    return [kind for kind in KINDS if any(mark in marks for mark in kind)]


def _is_marked(gap: str) -> bool:
    """Return whether a text between turns holds something that no turn of one line has in it."""
    return "\n" in gap or any(map(gap.__contains__, _NEVER + QUOTES))


def _gives(text: str) -> bool:
    """Return whether a text before the last turn may give a probability of its own."""
    return is_likely(fold(text)) and DIGITS.search(text) is not None


def _is_alias(head: str, words: RoleWords) -> bool:
    """Return whether the label before the first turn is another word for a role in the reader's own
    language."""
    return any(word in words.aliases for word in TOKEN.findall(head.rstrip().rpartition("\n")[2].lower()))
