"""Layouts learned from replies that `conversation.read` has read.

Most replies to one prompt have the same layout: the same characters before the first turn, before each role's
other turns (numbers apart), and after the last turn. Once two replies begin with the same characters, these
strings are kept. A later reply is cut at them, without any rule. Where the texts between turns have no such
regularity (headings, speakers named after their words), they are kept in their order: a reply with as many
turns is cut at them.

This path is taken only if the general reader would give exactly the same result: nothing in a turn can belong
to a layout, name a speaker, end the conversation or give a probability. In doubt the general reader reads the
reply. So neither the learned layouts nor their order change a result (`tests/reading/test_learned.py`
compares both readers).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from edgen.core.text import compile_later
from edgen.core.values import Conversation
from edgen.reading.answers.probability import parse_probability
from edgen.reading.foreign_words import ends_conversation
from edgen.reading.layout import (
    CUTS,
    DIGITS,
    DOUBLED,
    JSON,
    LEAST,
    MOST,
    PLAIN,
    QUOTED,
    SINGLES,
    VALUE,
    Behind,
    Layout,
    Tail,
    find_unit,
    make_skeleton,
    zero_digits,
)
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords
from edgen.reading.text.characters import TOKEN, TurnWords, fold
from edgen.reading.text.marker import SQUARE, may_mark
from edgen.reading.text.surroundings import is_likely

_HALVES = {"AM", "PM", "am", "pm"}  # of the day, which are no person's name
_MOST_LAYOUTS = 256  # for some roles
_MOST_ORDERED = 8  # that begin alike and are kept in an order
_MOST_HEADS = 256  # beginnings that were seen
_TRIES = 40  # replies with the same beginning that are examined for a layout
_OFTEN = 16  # of further ones, one in so many is examined
_LONGEST = 600  # characters before, between or after the turns
_KEY = 3  # characters by which layouts are looked up

# Characters that no turn may hold: brackets, tags, escapes, code. Those that do not print count with them.
_NEVER = "<>&[]{}|\\`（）【】"
# Characters that no turn may hold if the layout has one of the same kind.
_KINDS = ('"＂', "“”„", "«»", "‹›", "「」", "『』", "()")
_QUOTES = "".join(_KINDS[:-1]) + "'‘’"
_STRUCTURE = frozenset(_QUOTES + "<|{}[]")  # a turn of several lines could be taken for part of such a layout
_TAG = compile_later("<[^<>]*>")
_MARKUP = compile_later(r"[*<\\]|\[/?\w")  # a layout with one of them may take a star for its own
_WRITERS: tuple[Callable[[str], str], ...] = (
    str,
    lambda said: said.replace('"', '\\"'),
    lambda said: json.dumps(said)[1:-1],
    lambda said: said.replace('"', '""'),
    lambda said: said.replace("'", "''"),
)


class Layouts:
    """The layouts learned for some roles."""

    def __init__(self, words: RoleWords) -> None:
        self._words = words
        foreign = [word for some in words.foreign() for word in some]
        tokens = {
            token
            for word in (*words.by_name, *words.aliases, *foreign)
            if len(word) > 1
            for token in TOKEN.findall(word)
        }
        self._vocabulary = TurnWords(
            frozenset(tokens | {f"{token}s" for token in tokens}), tuple(words.by_name)
        )
        # By the first characters of a reply, the latest first; under "" those with fewer before the first
        # turn.
        self._known: dict[str, list[Layout]] = {}
        self._count = 0
        self._seen: dict[str, int] = {}  # beginnings, with the number of replies

    def read(self, text: str) -> Conversation | None:
        """Return the conversation in a text of a known layout; None for any other."""
        found = self.find(text)
        return None if found is None else found[0]

    def find(self, text: str) -> tuple[Conversation, str] | None:
        """Return the same with the marks in the turns (`find_marks`)."""
        for key in (text[:_KEY], ""):
            known = self._known.get(key, [])
            for place, layout in enumerate(known):
                if (
                    text.startswith(layout.head)
                    and (found := layout.read(text, self._vocabulary)) is not None
                ):
                    if place:
                        self._known[key] = [layout, *known[:place], *known[place + 1 :]]
                    return found
        return None

    def learn(self, text: str, result: Conversation) -> None:
        """Learn the layout of a text that was read as `result`, if another text began the same way."""
        at = text.find(result.turns[0].text)
        if not 0 <= at <= _LONGEST or not LEAST <= len(result.turns) <= MOST:
            return
        head, _ = _split_head(text[:at], result)
        tries = self._seen.get(head, 0)
        if len(self._seen) >= _MOST_HEADS and not tries:
            self._seen.clear()
        self._seen[head] = tries + 1
        if not tries or (tries > _TRIES and tries % _OFTEN):
            return
        layout = _find_layout(text, result, at, self._words)
        if layout is None or (again := layout.read(text, self._vocabulary)) is None:
            return
        if again[0] == result:
            self._keep(layout)

    def _keep(self, layout: Layout) -> None:
        key = layout.head[:_KEY] if len(layout.head) >= _KEY else ""
        known = self._known.get(key, [])
        if (same := next((one for one in known if one.is_like(layout)), None)) is not None:
            same.extend(layout)
            return
        if self._count >= _MOST_LAYOUTS:
            self._known.clear()
            self._count, known = 0, []
        if layout.order:
            ordered = [one for one in known if one.order]
            for one in ordered[_MOST_ORDERED - 1 :]:
                known = [other for other in known if other is not one]
                self._count -= 1
        self._known[key] = [layout, *known]
        self._count += 1


@cache
def find_layouts(roles: RoleWords) -> Layouts:
    """Return the layouts learned for these roles, in this process."""
    return Layouts(roles)


def _find_layout(text: str, result: Conversation, at: int, words: RoleWords) -> Layout | None:
    """Return the layout of a text whose first turn is at this place; None if it has none that can be kept."""
    found = _find_gaps(text, result, at)
    if found is None:
        return None
    written, rest, code = found
    top, (head, below) = text[:at], _split_head(text[:at], result)
    gaps = [*map(zero_digits, written)]
    lettered = gaps != [zero_digits(gap, lettered=False) for gap in written]
    before: dict[str, str] = {}
    spoken = [turn.role for turn in result.turns]
    clear = [before.setdefault(gap, role) for gap, role in zip(gaps, spoken[1:], strict=True)] == spoken[1:]
    regular = clear and at >= _KEY and _is_regular(top, before, gaps, spoken[0])
    order = () if regular else tuple(gaps if clear else written)
    behind = _find_behind(rest, result, before)
    if behind is None or (below is not None and behind[0][2] is not None):
        return None
    tails, label = behind
    if (
        (label and order)
        or not all(map(_is_marked, order))
        or not _is_apart_from(head + (below or ""), gaps, rest)
    ):
        return None
    mixed = not order and _is_mixed([top, *gaps])
    if mixed and Repair.MISSING_QUOTE in result.repairs:
        return None
    before_turns = "".join((top, *gaps))
    translated = Repair.ROLE_ALIAS in result.repairs and not _is_alias(head, words)
    marks = _list_kinds_around(top, gaps, rest)
    return Layout(
        head,
        spoken[0],
        {} if order else dict(sorted(before.items(), key=lambda item: -len(item[0]))),
        "".join((_NEVER, *marks, "(=" if translated else "")),
        numbered="0" in "".join(order or before),
        lettered=lettered and clear,
        begins=not all(any(map(str.isalpha, gap.rpartition("\n")[2])) for gap in (top, *gaps)),
        several=_STRUCTURE.isdisjoint(before_turns) and all(gap[0] == "\n" for gap in gaps),
        mixed=mixed,
        tagged="<" in head,
        translated=translated,
        named=Repair.ROLE_NAME in result.repairs
        and any(len({*TOKEN.findall(gap)} - _HALVES) > 1 for gap in (_find_last_line(top), *before)),
        edges=frozenset("¿¡" if _MARKUP.search(before_turns) else "¿¡*"),
        json='"＂' in marks and ("{" in top or "[" in top),
        code=code,
        tails={
            tails: Tail(
                result.repairs,
                result.ended_by is not None,
                bool(label),
                "".join([kind for kind in _list_kinds(rest) if kind not in marks]),
            )
        },
        below=below,
        order=order,
        speakers=tuple(spoken) if order else (),
    )


def _is_mixed(labels: Sequence[str]) -> bool:
    """Return whether each turn stands in quotation marks that it does not hold, of either kind or tripled."""
    return {label[-1:] for label in labels} == {*"\"'"} or all(label.endswith('"""') for label in labels)


def _is_apart_from(top: str, gaps: Sequence[str], rest: str) -> bool:
    """Return whether the texts around the turns are short, and give no probability before the last turn."""
    layout = "".join((top, *gaps, rest))
    return (
        max(map(len, [*gaps, rest])) <= _LONGEST
        and not any(mark in layout for mark in ("\0", *CUTS))
        and "ended_by" not in layout
        and not _gives("".join((top, *gaps)))
    )


def _split_head(head: str, result: Conversation) -> tuple[str, str | None]:
    """Return the text before the first turn as it is, or around the probability that it gives."""
    alone = VALUE.match(head)  # at the beginning, under no label
    told = result.probability is not None and (alone is not None or is_likely(fold(head)))
    values = [*VALUE.finditer(head)] if told else []
    if len(values) != 1 or parse_probability(values[0][0]) != result.probability:
        return head, None
    before, below = head[: values[0].start()], head[values[0].end() :]
    apart = below[:1] == "\n" if alone else len(before) >= _KEY and below and _is_apart(before, below)
    return (before, below) if apart else (head, None)


def _find_last_line(head: str) -> str:
    """Return the line of a text before the first turn that has this turn's label."""
    return head.rstrip().rpartition("\n")[2]


def _find_behind(rest: str, result: Conversation, before: Mapping[str, str]) -> tuple[Behind, str] | None:
    """Return the texts around the probability after the last turn, and a label before them that has only the
    end marker; None where they are not clear."""
    zeros = zero_digits(rest)
    label, role = next(((gap, role) for gap, role in before.items() if zeros.startswith(gap)), ("", None))
    if not _ends_as_read(rest, result, role):
        return None
    values, rest = [*VALUE.finditer(rest)], rest[len(label) :]
    if len(values) != 1:
        # The reply gives none, or before its turns.
        clear = Repair.PROBABILITY_UNCLEAR not in result.repairs and not DIGITS.search(rest)
        return (("", rest, None), label) if clear and not is_likely(fold(rest)) else None
    start, end = (place - len(label) for place in values[0].span())
    if start <= 0 or rest[0].isalnum() or not _is_apart(rest[:start], rest[end:]):
        return None
    return (rest[:start], rest[end:], find_unit(values[0][0])), label


def _list_kinds_around(top: str, gaps: Sequence[str], rest: str) -> list[str]:
    """Return the kinds of quotation marks and emphasis next to the turns, and of brackets anywhere; tags are
    left out."""
    anywhere = _list_kinds(*{top, *gaps, rest})
    bare = [_TAG.sub("", gap) for gap in (top, *gaps)]
    edges = _list_kinds("".join([bare[0][-2:], *[gap[:2] + gap[-2:] for gap in bare[1:]]]))
    emphasis = [
        mark for mark in "*_" if any(mark in (gap[:1], gap[-1:]) for gap in (bare[0][-1:], *bare[1:]))
    ]
    return [*[kind for kind in anywhere if kind == "()" or kind in edges], *emphasis]


def _list_kinds(*pieces: str) -> list[str]:
    """Return the kinds of quotation marks and brackets in some pieces of a layout, whole tags apart."""
    marks = "".join([_TAG.sub("", piece) for piece in pieces])
    return [kind for kind in _KINDS if any(mark in marks for mark in kind)]


def _is_marked(gap: str) -> bool:
    """Return whether a text between turns holds something that no turn of one line has in it."""
    return "\n" in gap or any(map(gap.__contains__, _NEVER + _QUOTES))


def _is_apart(before: str, after: str) -> bool:
    """Return whether the texts around a probability can be no part of it."""
    ends = after[:1]
    return not (before[-1:] in tuple("0123456789.") or ends.isalnum() or ends == "%")


def _ends_as_read(rest: str, result: Conversation, labelled: str | None) -> bool:
    """Return whether the text after the last turn has an end marker where the reader found one: of the role
    that its label names, or of the last turn's."""
    if result.ended_by is None and not may_mark(fold(rest)):
        return True
    marked = SQUARE.search(rest) is not None or ends_conversation(rest)
    return marked and result.ended_by == (labelled or result.turns[-1].role)


def _gives(text: str) -> bool:
    """Return whether a text before the last turn may give a probability of its own."""
    return is_likely(fold(text)) and DIGITS.search(text) is not None


def _find_gaps(text: str, result: Conversation, at: int) -> tuple[list[str], str, int] | None:
    """Return the texts between the turns and after the last one, and how the turns are written."""
    before = _TAG.sub("", text[:at])
    quoted = '"' in before
    code = QUOTED if quoted else PLAIN
    codes = (PLAIN, QUOTED, JSON, DOUBLED) if quoted else (PLAIN, SINGLES) if before[-1:] == "'" else (PLAIN,)
    gaps = []
    for turn in result.turns:
        place, written = _find_written(text, turn.text, at, codes)
        said = turn.text if written == PLAIN else _WRITERS[written](turn.text)
        if place < 0:
            return None
        code = max(code, written)
        gaps.append(text[at:place])
        at = place + len(said)
    return gaps[1:], text[at:], code


def _find_written(text: str, said: str, at: int, codes: Sequence[int]) -> tuple[int, int]:
    """Return (place, code) of a turn's next text in one of these codes; a place of -1 if there is none."""
    for code in codes:
        place = text.find(_WRITERS[code](said), at)
        if 0 <= place <= at + _LONGEST:
            return place, code
    return -1, PLAIN


def _is_alias(head: str, words: RoleWords) -> bool:
    """Return whether the label before the first turn is another word for a role in the reader's own
    language."""
    return any(word in words.aliases for word in TOKEN.findall(head.rstrip().rpartition("\n")[2].lower()))


def _is_regular(head: str, before: Mapping[str, str], gaps: Sequence[str], first: str) -> bool:
    """Return whether every turn begins and ends alike, at a line break or a quotation mark, under one label a
    role.

    Then no rule counts turns.
    """
    skeletons: dict[str, set[str]] = {}
    for gap, role in before.items():
        skeletons.setdefault(role, set()).add(make_skeleton(gap))
    if len(before) > len(CUTS) or len(skeletons) < 2 or any(len(some) > 1 for some in skeletons.values()):
        return False
    if any(map(_is_bare, gaps)) or not _names_next(head, before, first):
        return False
    closings = {make_skeleton(gap.partition("\n")[0] if "\n" in gap else gap[:1]) for gap in gaps}
    closings = {TOKEN.sub("", closing) if "<" in closing else closing for closing in closings}
    openings = {make_skeleton(label[-1:]) if label[-1:] in _QUOTES else "" for label in (head, *gaps)}
    if any("\n" not in gap and gap[:1] not in ('"', "'") for gap in gaps):
        return False
    return len(closings) == len(openings) == 1


def _names_next(head: str, before: Mapping[str, str], first: str) -> bool:
    """Return whether the texts between turns name who speaks next, not who spoke: the text before the first
    turn ends as those before this role's other turns do, and no other role's."""
    top = make_skeleton(head)
    for gap, role in before.items():
        if role == first:
            named = make_skeleton(gap)
            label = next((named[at:] for at in range(len(named)) if top.endswith(named[at:])), "")
            return not any(
                make_skeleton(other).endswith(label) for other, who in before.items() if who != first
            )
    return False


def _is_bare(gap: str) -> bool:
    """Return whether a label is a word or a picture without a mark, which counts only where two alternate."""
    label = gap.rpartition("\n")[2]
    marks = (unicodedata.category(mark)[0] == "P" for mark in label)
    return label.endswith(" ") and len(label.split()) == 1 and not any(marks)
