"""Layouts learned from replies that `conversation.read` has read.

Most replies to one prompt have the same layout: the same characters before the first turn, before each role's
other turns (numbers apart), and after the last turn. Once two replies begin with the same characters, these
strings are kept. A later reply is cut at them, without any rule.

This path is taken only if the general reader would give exactly the same result: nothing in a turn can belong
to a layout, name a speaker, end the conversation or give a probability. In doubt the general reader reads the
reply. So neither the learned layouts nor their order change a result (`tests/reading/test_learned.py`
compares both readers).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache

from edgen.core.lazy_patterns import compile_later
from edgen.core.values import Conversation
from edgen.reading.foreign_words import ends_conversation
from edgen.reading.layout import (
    CUTS,
    DIGITS,
    DOUBLED,
    JSON,
    MOST,
    PLAIN,
    QUOTED,
    TOKEN,
    VALUE,
    Layout,
    Tail,
    is_likely,
    skeleton,
    zero_digits,
)
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords
from edgen.reading.text.characters import fold
from edgen.reading.text.marker import SQUARE, may_mark

_LEAST = 4  # turns
_HALVES = {"AM", "PM", "am", "pm"}  # of the day, which are no person's name
_MOST_LAYOUTS = 256  # for some roles
_MOST_HEADS = 256  # beginnings that were seen
_TRIES = 40  # replies with the same beginning that are examined for a layout
_OFTEN = 16  # of further ones, one in so many is examined
_LONGEST = 600  # characters before, between or after the turns
_KEY = 3  # characters by which layouts are looked up

# Characters that no turn may hold: brackets, tags, escapes, code. Those that do not print count with them.
_NEVER = "<>&[]{}|\\`（）【】"
# Characters that no turn may hold if the layout has one of the same kind.
_KINDS = ('"“”„＂', "«»", "‹›", "「」", "『』", "()")
_QUOTES = "".join(_KINDS[:5]) + "'‘’"
_STRUCTURE = frozenset(_QUOTES + "<|{}[]")  # a turn of several lines could be taken for part of such a layout
_TAG = compile_later("<[^<>]*>")
_MARKUP = compile_later(r"[*<\\]|\[/?\w")  # a layout with one of them may take a star for its own
_WRITERS: tuple[Callable[[str], str], ...] = (
    str,
    lambda said: said.replace('"', '\\"'),
    lambda said: json.dumps(said)[1:-1],
    lambda said: said.replace('"', '""'),
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
        self._labels = frozenset(tokens | {f"{token}s" for token in tokens})
        self._known: dict[str, list[Layout]] = {}  # by the first characters of a reply, the latest first
        self._count = 0
        self._seen: dict[str, int] = {}  # beginnings, with the number of replies

    def read(self, text: str) -> Conversation | None:
        """Return the conversation in a text of a known layout; None for any other."""
        known = self._known.get(text[:_KEY], [])
        for place, layout in enumerate(known):
            if text.startswith(layout.head) and (found := layout.read(text, self._labels)) is not None:
                if place:
                    self._known[text[:_KEY]] = [layout, *known[:place], *known[place + 1 :]]
                return found
        return None

    def learn(self, text: str, result: Conversation) -> None:
        """Learn the layout of a text that was read as `result`, if another text began the same way."""
        at = text.find(result.turns[0].text)
        if (
            not _KEY <= at <= _LONGEST
            or not _LEAST <= len(result.turns) <= MOST
            or result.probability is None
        ):
            return
        head = text[:at]
        tries = self._seen.get(head, 0)
        if len(self._seen) >= _MOST_HEADS and not tries:
            self._seen.clear()
        self._seen[head] = tries + 1
        if not tries or (tries > _TRIES and tries % _OFTEN):
            return
        layout = _find_layout(text, result, at, self._words)
        if layout is not None and layout.read(text, self._labels) == result:
            self._keep(layout)

    def _keep(self, layout: Layout) -> None:
        key = layout.head[:_KEY]
        known = self._known.get(key, [])
        if (same := next((one for one in known if one.is_like(layout)), None)) is not None:
            same.extend(layout)
            return
        if self._count >= _MOST_LAYOUTS:
            self._known.clear()
            self._count, known = 0, []
        self._known[key] = [layout, *known]
        self._count += 1


@cache
def layouts_of(roles: RoleWords) -> Layouts:
    """Return the layouts learned for these roles, in this process."""
    return Layouts(roles)


def _find_layout(text: str, result: Conversation, at: int, words: RoleWords) -> Layout | None:
    """Return the layout of a text whose first turn is at this place; None if it has none that is regular."""
    found = _find_gaps(text, result, at)
    if found is None:
        return None
    head, (written, rest, code) = text[:at], found
    gaps = [*map(zero_digits, written)]
    lettered = gaps != [zero_digits(gap, lettered=False) for gap in written]
    before: dict[str, str] = {}
    skeletons: dict[str, set[str]] = {}
    for gap, turn in zip(gaps, result.turns[1:], strict=True):
        if before.setdefault(gap, turn.role) != turn.role:
            return None
        skeletons.setdefault(turn.role, set()).add(skeleton(gap))
    values = [*VALUE.finditer(rest)]
    if (
        len(before) > len(CUTS)
        or len(skeletons) < 2
        or any(len(some) > 1 for some in skeletons.values())
        or len(values) != 1
        or max(map(len, [*gaps, rest])) > _LONGEST
        or any(mark in gap for gap in (*gaps, rest) for mark in ("\0", *CUTS))
        or not _is_regular(head, gaps)
    ):
        return None
    (value,) = values
    around = rest[: value.start()], rest[value.end() :], value[0].endswith("%")
    label, labelled = next(
        ((gap, role) for gap, role in before.items() if zero_digits(rest).startswith(gap)), ("", None)
    )
    if not (_is_apart(*around[:2]) and _ends_as_read(rest, result, labelled)):
        return None
    layout = "".join((head, *gaps, rest))
    if "ended_by" in layout or _gives("".join((head, *gaps))):
        return None
    translated = Repair.ROLE_ALIAS in result.repairs and not _is_alias(head, words)
    marks = _TAG.sub("", layout)
    kinds = [kind for kind in _KINDS if any(mark in marks for mark in kind)]
    return Layout(
        head,
        result.turns[0].role,
        dict(sorted(before.items(), key=lambda item: -len(item[0]))),
        "".join((_NEVER, *kinds, "(=" if translated else "")),
        numbered="0" in "".join(before),
        lettered=lettered,
        begins=not all(any(map(str.isalpha, gap.rpartition("\n")[2])) for gap in (head, *gaps)),
        several=_STRUCTURE.isdisjoint("".join((head, *gaps))) and all(gap[0] == "\n" for gap in gaps),
        tagged="<" in head,
        translated=translated,
        named=Repair.ROLE_NAME in result.repairs
        and any(len({*TOKEN.findall(gap)} - _HALVES) > 1 for gap in (head, *before)),
        edges=frozenset("¿¡" if _MARKUP.search(head + "".join(gaps)) else "¿¡*"),
        code=code,
        tails={
            (around[0][len(label) :], *around[1:]): Tail(
                result.repairs, result.ended_by is not None, bool(label)
            )
        },
    )


def _is_apart(before: str, after: str) -> bool:
    """Return whether the texts around a probability can be no part of it."""
    begins, ends = before[:1], after[:1]
    return not (begins.isalnum() or before[-1:] in "0123456789." or ends.isalnum() or ends == "%")


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
    quoted = '"' in _TAG.sub("", text[:at])
    code = QUOTED if quoted else PLAIN
    gaps = []
    for turn in result.turns:
        place, written = _find_written(text, turn.text, at, quoted=quoted)
        said = turn.text if written == PLAIN else _WRITERS[written](turn.text)
        if place < 0:
            return None
        code = max(code, written)
        gaps.append(text[at:place])
        at = place + len(said)
    return gaps[1:], text[at:], code


def _find_written(text: str, said: str, at: int, *, quoted: bool) -> tuple[int, int]:
    """Return (place, code) of a turn's next text, as it is or in a code; a place of -1 if there is none."""
    codes = (PLAIN, QUOTED, JSON, DOUBLED) if quoted else (PLAIN,)
    for code in codes:
        place = text.find(_WRITERS[code](said), at)
        if 0 <= place <= at + _LONGEST:
            return place, code
    return -1, PLAIN


def _is_alias(head: str, words: RoleWords) -> bool:
    """Return whether the label before the first turn is another word for a role in the reader's own
    language."""
    return any(word in words.aliases for word in TOKEN.findall(head.rstrip().rpartition("\n")[2].lower()))


def _is_regular(head: str, gaps: Sequence[str]) -> bool:
    """Return whether every turn begins and ends alike, at a line break or a quotation mark.

    Then no rule counts turns.
    """
    closings = {skeleton(gap.partition("\n")[0] if "\n" in gap else gap[:1]) for gap in gaps}
    closings = {TOKEN.sub("", closing) if "<" in closing else closing for closing in closings}
    openings = {skeleton(before[-1:]) if before[-1:] in _QUOTES else "" for before in (head, *gaps)}
    if any("\n" not in gap and gap[:1] != '"' for gap in gaps):
        return False
    return len(closings) == len(openings) == 1
