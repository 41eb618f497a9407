"""Layouts learned from replies that `conversation.read` has read.

Most replies to one prompt have the same layout. Once two replies begin with the same words, the layout of the second
one is kept: the text before the first turn, between two turns (by the next speaker), and after the last one. Later
replies in a known layout are read with one regular expression.

This path is taken only if the general reader would give exactly the same result: nothing in a turn can belong to a
layout, start a line, end the conversation or give a probability. In doubt the general reader reads the reply. So
neither the learned layouts nor their order change a result (`tests/reading/test_learned.py` compares both readers).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from edgen.core.values import Conversation, Turn
from edgen.reading.answers.probability import parse_probability
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords
from edgen.reading.text.characters import fold
from edgen.reading.text.marker import SQUARE, find_marker, may_mark
from edgen.reading.text.surroundings import may_give

LEAST = 3  # turns; two lines alone may only say who is who, which the general reader decides
MOST = 200  # turns
_MOST_LAYOUTS = 16  # for some roles; each is compared with the beginning of a reply
_MOST_TAILS = 32
_MOST_HEADS = 64  # beginnings that were seen and not learned
_TRIES = 20  # replies with the same beginning that are examined for a layout
_LONGEST = 600  # characters before, between or after the turns

# Characters that no turn may hold: line ends, brackets, tags, escapes, code, invisible marks and marks of direction.
_NEVER = r"\x00-\x1f\x7f-\x9f\u2028\u2029<>&\[\]{}|\\`（）【】\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
# Characters that no turn may hold if the layout has one of the same kind.
_QUOTES = '"“”„«»‹›「」『』＂'
_SINGLE = "'‘’"
_ROUND = "()"
# The beginning and the end of a turn; between quotation marks, also of a stage direction in stars.
_START, _START_QUOTED = r"(?=[^\W_])", r"(?=\*?[^\W_])"
_END = r"(?<=[\w.!?…。！？])(?<!_)(?<![\"“”„＂].)"
_END_QUOTED = rf"(?:{_END}|(?<=[^\W_]\*)|(?<=[.!?…]\*))"
# The place inside a line where another language's label could be: in a list, before a colon.
_LISTED = re.compile(r"[,”](?:\W|[\d_]){0,20}\w+(?:[ '’]\w+)?(?:\W|\d){0,16}[:：]")
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile("[0-9]+")
_VALUE = re.compile(r"(?<![0-9.])(?:[01]\.[0-9]{1,6}(?!\.?[0-9])|[0-9]{1,3}[ ]?%)")


class _Tail(NamedTuple):
    """The meaning of a text after the last turn."""

    repairs: tuple[str, ...]
    ended: bool
    ended_by: str | None  # the role of a label that has only the end marker


class Layout(msgspec.Struct):
    """A layout. `pattern` matches a turn: its text, a group per role with the text before that role's next turn, the rest."""

    head: str
    first: str
    pattern: re.Pattern[str]
    roles: tuple[str, ...]
    escaped: bool  # quotation marks in a turn have a backslash before them
    translated: bool  # the labels are in another language
    tails: dict[tuple[str, str], _Tail]

    def read(self, text: str) -> Conversation | None:
        """Return the conversation in a text that begins with `head`; None if it departs from the layout anywhere."""
        found = self.pattern.findall(text, len(self.head))
        if not LEAST <= len(found) <= MOST:
            return None
        said, *nexts, rests = zip(*found, strict=True)
        behind = _split_tail(rests[-1])
        tail = None if behind is None else self.tails.get(behind[:2])
        if behind is None or tail is None or any(rests[:-1]) or not _is_plain(said, tagged="<" in self.head):
            return None
        if self.translated and any(map(_LISTED.search, said)):
            return None
        if len(nexts) == 2:
            one, other = self.roles
            speakers = [self.first, *[one if label else other for label in nexts[0][:-1]]]
        else:
            labels = zip(*nexts, strict=True)
            speakers = [
                self.first,
                *[self.roles[[*map(bool, label)].index(True)] for label in labels if any(label)],
            ]
        if len({*speakers}) < 2:
            return None
        if self.escaped:
            said = tuple([text.replace('\\"', '"') for text in said])
        turns = tuple(map(Turn, speakers, said))
        ended_by = (tail.ended_by or speakers[-1]) if tail.ended else None
        return Conversation(turns, parse_probability(behind[2]), ended_by, tail.repairs)


class Layouts:
    """The layouts learned for some roles."""

    def __init__(self, words: RoleWords) -> None:
        self._words = words
        self._known: list[Layout] = []
        self._seen: dict[str, int] = {}  # beginnings, with the number of replies

    def read(self, text: str) -> Conversation | None:
        """Return the conversation in a text of a known layout; None for any other."""
        for layout in self._known:
            if text.startswith(layout.head) and (found := layout.read(text)) is not None:
                return found
        return None

    def learn(self, text: str, result: Conversation) -> None:
        """Learn the layout of a text that the general reader read as `result`, if another text began like it."""
        at = text.find(result.turns[0].text)
        if not 0 <= at <= _LONGEST or len(result.turns) <= LEAST or result.probability is None:
            return
        head = text[:at]
        tries = self._seen.get(head, 0)
        if len(self._seen) >= _MOST_HEADS and not tries:
            self._seen.clear()
        self._seen[head] = tries + 1
        if 0 < tries <= _TRIES:
            self._learn(text, result, at)

    def _learn(self, text: str, result: Conversation, at: int) -> None:
        layout = _find_layout(text, result, at, self._words)
        if layout is None:
            return
        same = next(
            (one for one in self._known if one.head == layout.head and one.pattern == layout.pattern), None
        )
        if same is None:
            self._known = [layout, *self._known[: _MOST_LAYOUTS - 1]]
        elif len(same.tails) < _MOST_TAILS:
            same.tails.update(layout.tails)


@cache
def layouts_of(roles: RoleWords) -> Layouts:
    """Return the layouts learned for these roles, in this process."""
    return Layouts(roles)


def _find_layout(text: str, result: Conversation, at: int, words: RoleWords) -> Layout | None:
    """Return the layout of a text whose first turn is at this place; None if it has none that is regular."""
    head, gaps = text[:at], []
    for turn in result.turns:
        place = text.find(turn.text, at)
        if place < 0:
            return None
        gaps.append(text[at:place])
        at = place + len(turn.text)
    gaps, rest = gaps[1:], text[at:]
    behind = _split_tail(rest)
    if (
        behind is None
        or parse_probability(behind[2]) != result.probability
        or max(map(len, [*gaps, rest])) > _LONGEST
    ):
        return None
    roles = tuple(dict.fromkeys(turn.role for turn in result.turns))
    by_role = {
        role: [gap for turn, gap in zip(result.turns[1:], gaps, strict=True) if turn.role == role]
        for role in roles
    }
    before = {role: _between(some) for role, some in by_role.items()}
    if len(roles) < 2 or None in before.values() or not _is_regular(head, gaps):
        return None
    labelled = next((role for role, label in before.items() if label and re.match(label, rest)), None)
    if (result.ended_by is not None or may_mark(fold(rest))) and (
        result.ended_by != (labelled or result.turns[-1].role)
        or not SQUARE.search(rest)
        or "ended_by" in rest
    ):
        return None
    layout = "".join((head, *gaps, rest))
    never = _NEVER + "".join(
        re.escape(marks) for marks in (_QUOTES, _SINGLE, _ROUND) if any(mark in layout for mark in marks)
    )
    translated = Repair.ROLE_ALIAS in result.repairs and not _is_alias(head, words)
    if translated:
        never += "(="
    said, escaped = f"[^{never}]*", head[-1] == '"'
    if escaped:
        said += rf'(?:\\"[^{never}]*)*'
    start, end = (_START_QUOTED, _END_QUOTED) if escaped else (_START, _END)
    next_turn = "|".join(f"({before[role]}){start}" for role in roles)
    pattern = re.compile(rf"({start}{said}{end})(?:{next_turn}|([\s\S]*+)\Z)|[\s\S]++")
    tails = {behind[:2]: _Tail(result.repairs, result.ended_by is not None, labelled)}
    found = Layout(head, result.turns[0].role, pattern, roles, escaped, translated, tails)
    return found if found.read(text) == result else None


def _is_alias(head: str, words: RoleWords) -> bool:
    """Return whether the label before the first turn is another word for a role in the reader's own
    language."""
    return any(word in words.aliases for word in _WORD.findall(head.rpartition("\n")[2].lower()))


def _between(gaps: Sequence[str]) -> str | None:
    """Return the pattern of what stands before a role's turns; None if that differs in more than numbers."""
    if len({_DIGITS.sub("0", gap) for gap in gaps}) != 1:
        return None
    runs = zip(*[_DIGITS.findall(gap) for gap in gaps], strict=True)
    numbers = [
        f"{'' if any(len(one) > 1 and one[0] == '0' for one in run) else '(?!0[0-9])'}"
        f"[0-9]{{{min(map(len, run))},{max(map(len, run))}}}"
        for run in runs
    ]
    pieces = [re.escape(piece) for piece in _DIGITS.split(gaps[0])]
    return "".join(piece + number for piece, number in zip(pieces, [*numbers, ""], strict=True))


def _is_regular(head: str, gaps: Sequence[str]) -> bool:
    """Return whether every turn ends and begins alike, behind a label on its own line: then no rule counts
    turns, and none begins a line."""
    closings = {gap.partition("\n")[0] if "\n" in gap else gap[:1] for gap in gaps}
    closings = {_WORD.sub("", closing) if "</" in closing else closing for closing in closings}
    openings = (
        {before[-1] if before[-1] in _QUOTES + _SINGLE else "" for before in (head, *gaps)} if head else {""}
    )
    labels = {before.rpartition("\n")[2] for before in (head, *gaps)}
    if any("\n" not in gap and gap[:1] != '"' for gap in gaps):
        return False
    return len(closings) == len(openings) == 1 and all(any(map(str.isalpha, label)) for label in labels)


def _split_tail(rest: str) -> tuple[str, str, str] | None:
    """Return what stands before and behind the one value in a text behind the turns, and this value."""
    values = [*_VALUE.finditer(rest)] if len(rest) <= _LONGEST else []
    return (rest[: values[0].start()], rest[values[0].end() :], values[0][0]) if len(values) == 1 else None


def _is_plain(said: Sequence[str], *, tagged: bool) -> bool:
    """Return whether no turn holds the words of an end marker, and the last one, or any in a layout with
    tags, none that speaks of a probability."""
    words = "\x1f".join(said).encode().lower()
    if may_mark(words) and any(map(find_marker, said)):
        return False
    return not (_is_likely(words if tagged else said[-1].encode().lower()))


def _is_likely(words: bytes) -> bool:
    return may_give(words) or b"chance" in words
