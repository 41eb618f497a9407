"""Layouts learned from replies that `conversation.read` has read.

Most replies to one prompt have the same layout: the same characters before the first turn, before each role's other
turns (numbers apart), and after the last turn. Once two replies begin with the same characters, these strings are kept.
A later reply is cut at them, without any rule.

This path is taken only if the general reader would give exactly the same result: nothing in a turn can belong to a
layout, name a speaker, end the conversation or give a probability. In doubt the general reader reads the reply. So
neither the learned layouts nor their order change a result (`tests/reading/test_learned.py` compares both readers).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from edgen.core.values import Conversation, Turn
from edgen.reading.answers.probability import parse_probability
from edgen.reading.foreign_words import ends_conversation
from edgen.reading.repairs import Repair
from edgen.reading.roles import RoleWords
from edgen.reading.text.characters import fold
from edgen.reading.text.marker import SQUARE, find_marker, may_mark
from edgen.reading.text.surroundings import HEADING, LAST_STOP, may_give, may_head, value_of_line

_LEAST = 3  # turns; two lines alone may only say who is who, which the general reader decides
_MOST = 200  # turns
_MOST_LAYOUTS = 256  # for some roles
_MOST_TAILS = 32  # of a layout
_MOST_HEADS = 256  # beginnings that were seen
_TRIES = 40  # replies with the same beginning that are examined for a layout
_OFTEN = 16  # of further ones, one in so many is examined
_WORD = 12  # characters of the longest word for a probability, and one more
_SHORT = 60  # characters; a tag may be around a shorter label
_LONGEST = 600  # characters before, between or after the turns
_KEY = 3  # characters by which layouts are looked up

# Stand for the texts between turns while a reply is cut.
_CUTS = "\x01\x02\x03\x04\x05\x06\x07\x0e\x0f\x10\x11\x12\x13\x14\x15\x16"
_DIGITS = re.compile("[0-9]+")
_ZERO_LED = re.compile(r"0(?<![\w.]0)[0-9]")  # no number in JSON
# Characters that no turn may hold: brackets, tags, escapes, code. Those that do not print count with them.
_NEVER = "<>&[]{}|\\`（）【】"
# Characters that no turn may hold if the layout has one of the same kind.
_KINDS = ('"“”„＂', "«»", "‹›", "「」", "『』", "()")
_TAG = re.compile("<[^<>]*>")
_CLOSING = '"“”„＂'
_ENDS = frozenset(".!?…。！？")
_STRUCTURE = frozenset("\"'‘“”„«»‹›「」『』＂<|{}[]")  # a turn of several lines could be taken for part of such a layout
# The place inside a line where another language's label could be: in a list, before a colon.
_LISTED = re.compile(r"[,”](?:\W|[\d_]){0,20}\w+(?:[ '’]\w+)?(?:\W|\d){0,16}[:：]")
_TOKEN = re.compile(r"[^\W\d_]+")
_SPOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_VALUE = re.compile(r"(?<![0-9.])(?:[01]\.[0-9]{1,6}(?!\.?[0-9])|[0-9]{1,3}[ ]?%)")
# Words at the beginning of a line that may head or end a turn, or be the key of a text.
_OPENERS = frozenset({
    "turn", "exchange", "round", "line", "role", "speaker", "name", "who", "from", "author", "character", "text", "content",
    "message", "utterance", "says", "said", "value", "speech", "t", "s",
})  # fmt: skip
# How a layout writes a turn: with backslashes before quotation marks, as JSON, or with quotation marks doubled.
_PLAIN, _QUOTED, _JSON, _DOUBLED = range(4)
_WRITERS: tuple[Callable[[str], str], ...] = (
    str,
    lambda said: said.replace('"', '\\"'),
    lambda said: json.dumps(said)[1:-1],
    lambda said: said.replace('"', '""'),
)
_WRITTEN = ("", "\\", "\\", '""')
_QUOTE = re.compile(r'\\"')
_ESCAPES = (
    _QUOTE,
    _QUOTE,
    re.compile(r"\\(?:\"|u(?!00[0-7]|[dD][89a-fA-F])[0-9a-fA-F]{4})"),
    re.compile('""'),
)


_Behind = tuple[str, str, bool]


class _Tail(NamedTuple):
    """The meaning of the texts before and after the probability that follow the last turn."""

    repairs: tuple[str, ...]
    ended: bool
    ended_by: str | None  # the role of a label that has only the end marker


class Layout(msgspec.Struct):
    """A layout.

    head, first: the text before the first turn, and the role of that turn.
    gaps: the texts between two turns, digits as zeros, with the role of the second turn; longer ones first.
    unfit: characters that no turn may hold.
    numbered: whether a gap holds a digit.
    begins: whether each turn begins a line.
    several: whether a turn may have several lines.
    tagged: whether the layout has tags.
    translated: whether its labels are in another language.
    named: whether its labels hold more than a role, which may be a person's name.
    code: how it writes quotation marks and letters beyond ASCII.
    tails: the texts before and after the probability, and whether it is a percentage.
    """

    head: str
    first: str
    gaps: dict[str, str]
    unfit: str
    numbered: bool
    begins: bool
    several: bool
    tagged: bool
    translated: bool
    named: bool
    code: int
    tails: dict[_Behind, _Tail]

    def read(self, text: str, labels: frozenset[str]) -> Conversation | None:
        """Return the conversation in a text that begins with `head`; None if it departs from the layout anywhere.
        `labels` are words that may name a speaker."""
        if not any([text.endswith(after) and before in text for before, after, _ in self.tails]):
            return None
        cut = self._cut(text[len(self.head) :])
        if cut is None:
            return None
        said, speakers = cut
        behind = self._split_tail(said[-1])
        if behind is None or not _LEAST <= len(said) <= _MOST or len({*speakers}) < 2:
            return None
        said[-1], value, tail = behind
        probability = parse_probability(value)
        if probability is None or not self._decode(said) or not self._is_plain(said, labels):
            return None
        ended_by = (tail.ended_by or speakers[-1]) if tail.ended else None
        return Conversation(tuple(map(Turn, speakers, said)), probability, ended_by, tail.repairs)

    def is_like(self, other: Layout) -> bool:
        """Return whether another layout is the same but for the number of digits, the code and what follows the turns."""
        return (
            self.head == other.head
            and {_DIGITS.sub("0", gap): role for gap, role in self.gaps.items()}
            == {_DIGITS.sub("0", gap): role for gap, role in other.gaps.items()}
            and self.translated == other.translated
            and self.named == other.named
        )

    def extend(self, other: Layout) -> None:
        """Take what another layout like this one knows more."""
        if len(self.gaps | other.gaps) <= len(_CUTS):
            self.gaps = dict(sorted((self.gaps | other.gaps).items(), key=lambda item: -len(item[0])))
        if len(self.tails) < _MOST_TAILS:
            self.tails |= other.tails
        self.unfit = "".join(dict.fromkeys(self.unfit + other.unfit))
        self.code = max(self.code, other.code)

    def _cut(self, body: str) -> tuple[list[str], list[str]] | None:
        """Return the texts of the turns, the last one with what follows it, and who speaks each."""
        if "\0" in body:
            return None
        cut = _zeroed(body) if self.numbered else body
        found = {}
        for mark, (gap, role) in zip(_CUTS, self.gaps.items(), strict=False):
            if gap in cut:
                cut = cut.replace(gap, "\0" + mark)
                found[mark] = (role, len(gap))
        first, *rest = cut.split("\0")
        if first[-1:].isspace():
            return None
        speakers = [self.first, *[found[part[0]][0] for part in rest]]
        if not self.numbered:
            return [first, *[part[1:] for part in rest]], speakers
        at = len(first)
        said = [body[:at]]
        for part in rest:
            start = at + found[part[0]][1]
            if self.code and _ZERO_LED.search(body, at, start):
                return None
            at = start + len(part) - 1
            said.append(body[start:at])
        return said, speakers

    def _split_tail(self, last: str) -> tuple[str, str, _Tail] | None:
        """Return the last turn's words, the probability and the meaning of what surrounds it."""
        for (before, after, percent), tail in self.tails.items():
            said, found, rest = last.partition(before)
            if found and rest.endswith(after):
                value = rest[: len(rest) - len(after)]
                if value.endswith("%") == percent and _VALUE.fullmatch(value):
                    return said, value, tail
        return None

    def _decode(self, said: list[str]) -> bool:
        """Decode the turns in place; return False if one holds a character that may mean something to the layout."""
        bare = whole = " ".join(said)
        if self.code and _WRITTEN[self.code] in whole:
            bare = _ESCAPES[self.code].sub("", whole)
            said[:] = [_ESCAPES[self.code].sub(_decoded, text) for text in said]
            whole = " ".join(said)
        if self.several:
            whole = whole.replace("\n", " ")
        return whole.isprintable() and not any([mark in bare for mark in self.unfit])

    def _is_plain(self, said: Sequence[str], labels: frozenset[str]) -> bool:
        """Return whether every turn begins and ends like words, and none holds what a rule looks for."""
        whole = "\n".join(said)
        firsts, lasts = "".join([text[:1] for text in said]), {text[-1:] for text in said} - _ENDS
        if len(firsts) < len(said) or not firsts.isalnum() or not (not lasts or "".join(lasts).isalnum()):
            return False
        if any([mark in whole for mark in _CLOSING]) and any([text[-2] in _CLOSING for text in said if text[1:]]):
            return False
        words = fold(whole)
        if may_mark(words) and any(map(find_marker, said)):
            return False
        lined = self.begins or (self.several and whole.count("\n") >= len(said))
        if _is_likely(words) and self._gives(said, lined=lined):
            return False
        if lined and not self._begin_plainly(whole, words, said[-1], labels):
            return False
        return not (self.translated and any([_LISTED.search(text) for text in said if ":" in text or "：" in text]))

    def _gives(self, said: Sequence[str], *, lined: bool) -> bool:
        """Return whether a turn may give a probability: by itself, or to the layout."""
        for place in range(0 if self.tagged or lined else len(said) - 1, len(said)):
            text = said[place]
            if not _is_likely(fold(text)):
                continue
            if self.tagged and (len(text) < _SHORT or _is_likely(fold(text[:_WORD]))):
                return True
            values = [value_of_line(line) for line in text.split("\n")]
            if any(values) or (lined and place == len(said) - 1 and values != [None] * len(values)):
                return True
        return False

    def _begin_plainly(self, whole: str, words: bytes, last: str, labels: frozenset[str]) -> bool:
        """Return whether no line of the turns may be a label, a heading or a rule, or end the last turn."""
        lines = [line for line in whole.split("\n") if line]
        starts = [line.split(" ", 2) for line in lines]
        firsts = " ".join([start[0] for start in starts]).lower()
        seconds = " ".join([start[1] for start in starts if start[1:]]).lower()
        return (
            labels.isdisjoint(_TOKEN.findall(f"{firsts} {seconds}"))
            and _OPENERS.isdisjoint(_SPOKEN.findall(firsts))
            and "".join([line[0] for line in lines]).isalpha()
            and "(" not in whole
            and not (self.named and (":" in whole or "：" in whole))
            and not (may_head(words) and HEADING.search(whole))
            and not any([match.lastgroup != "likely" for match in LAST_STOP.finditer("\n" + last)])
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
            for token in _TOKEN.findall(word)
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
                    known.insert(0, known.pop(place))
                return found
        return None

    def learn(self, text: str, result: Conversation) -> None:
        """Learn the layout of a text that the general reader read as `result`, if another text began like it."""
        at = text.find(result.turns[0].text)
        if not _KEY <= at <= _LONGEST or len(result.turns) <= _LEAST or result.probability is None:
            return
        head = text[:at]
        tries = self._seen.get(head, 0)
        if len(self._seen) >= _MOST_HEADS and not tries:
            self._seen.clear()
        self._seen[head] = tries + 1
        if not tries or (tries > _TRIES and tries % _OFTEN):
            return
        if (layout := _find_layout(text, result, at, self._words)) is not None:
            if layout.read(text, self._labels) == result:
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
    head, (gaps, rest, code) = text[:at], found
    before: dict[str, str] = {}
    skeletons: dict[str, set[str]] = {}
    for gap, turn in zip(map(_zeroed, gaps), result.turns[1:], strict=True):
        if before.setdefault(gap, turn.role) != turn.role:
            return None
        skeletons.setdefault(turn.role, set()).add(_DIGITS.sub("0", gap))
    values = [*_VALUE.finditer(rest)]
    if (
        len(before) > len(_CUTS)
        or len(skeletons) < 2
        or any(len(some) > 1 for some in skeletons.values())
        or len(values) != 1
        or max(map(len, [*gaps, rest])) > _LONGEST
        or any(mark in gap for gap in (*gaps, rest) for mark in ("\0", *_CUTS))
        or not _is_regular(head, gaps)
    ):
        return None
    (value,) = values
    around = rest[: value.start()], rest[value.end() :], value[0].endswith("%")
    labelled = next((role for gap, role in before.items() if _zeroed(rest).startswith(gap)), None)
    if (
        around[0][:1].isalnum()
        or around[0][-1:] in "0123456789."
        or around[1][:1].isalnum()
        or around[1][:1] == "%"
    ):
        return None
    if (result.ended_by is not None or may_mark(fold(rest))) and (
        result.ended_by != (labelled or result.turns[-1].role)
        or not (SQUARE.search(rest) or ends_conversation(rest))
        or "ended_by" in rest
    ):
        return None
    layout = "".join((head, *gaps, rest))
    translated = Repair.ROLE_ALIAS in result.repairs and not _is_alias(head, words)
    marks = _TAG.sub("", layout)
    kinds = [kind for kind in _KINDS if any(mark in marks for mark in kind)]
    return Layout(
        head,
        result.turns[0].role,
        dict(sorted(before.items(), key=lambda item: -len(item[0]))),
        "".join((_NEVER, *kinds, "(=" if translated else "")),
        numbered="0" in "".join(before),
        begins=not all(any(map(str.isalpha, gap.rpartition("\n")[2])) for gap in (head, *gaps)),
        several=_STRUCTURE.isdisjoint("".join((head, *gaps))) and all(gap[0] == "\n" for gap in gaps),
        tagged="<" in head,
        translated=translated,
        named=Repair.ROLE_NAME in result.repairs and any(len(_TOKEN.findall(gap)) > 1 for gap in (head, *before)),
        code=code,
        tails={around: _Tail(result.repairs, result.ended_by is not None, labelled)},
    )


def _find_gaps(text: str, result: Conversation, at: int) -> tuple[list[str], str, int] | None:
    """Return the texts between the turns and after the last one, and how the turns are written."""
    quoted = '"' in _TAG.sub("", text[:at])
    code = _QUOTED if quoted else _PLAIN
    gaps = []
    for turn in result.turns:
        place, written = _find_written(text, turn.text, at, quoted=quoted)
        said = turn.text if written == _PLAIN else _WRITERS[written](turn.text)
        if place < 0:
            return None
        code = max(code, written)
        gaps.append(text[at:place])
        at = place + len(said)
    return gaps[1:], text[at:], code


def _find_written(text: str, said: str, at: int, *, quoted: bool) -> tuple[int, int]:
    """Return where the text of a turn stands next, as it is or in a code, and that code; -1 if it does not."""
    codes = (_PLAIN, _QUOTED, _JSON, _DOUBLED) if quoted else (_PLAIN,)
    for code in codes:
        place = text.find(_WRITERS[code](said), at)
        if 0 <= place <= at + _LONGEST:
            return place, code
    return -1, _PLAIN


def _zeroed(text: str) -> str:
    """Return the text with zeros as its digits."""
    for digit in "123456789":
        text = text.replace(digit, "0")
    return text


def _decoded(escape: re.Match[str]) -> str:
    """Return the character that some others stand for."""
    written = escape[0]
    return '"' if len(written) == 2 else chr(int(written[2:], 16))


def _is_alias(head: str, words: RoleWords) -> bool:
    """Return whether the label before the first turn is another word for a role in the reader's own
    language."""
    return any(word in words.aliases for word in _TOKEN.findall(head.rstrip().rpartition("\n")[2].lower()))


def _is_regular(head: str, gaps: Sequence[str]) -> bool:
    """Return whether every turn begins and ends alike, at a line break or a quotation mark: then no rule counts
    turns."""
    closings = {gap.partition("\n")[0] if "\n" in gap else gap[:1] for gap in gaps}
    closings = {_TOKEN.sub("", closing) if "<" in closing else closing for closing in closings}
    quotes = "".join(_KINDS[:5]) + "'‘’"
    openings = {before[-1:] if before[-1:] in quotes else "" for before in (head, *gaps)}
    if any("\n" not in gap and gap[:1] != '"' for gap in gaps):
        return False
    return len(closings) == len(openings) == 1


def _is_likely(words: bytes) -> bool:
    """Return whether folded words may speak of a probability."""
    return may_give(words) or b"chance" in words
