"""A layout of replies as strings: the texts before the first turn, between turns and after the last one.

`Layout.read` cuts a reply at these strings. It returns a conversation only if the general reader would give
exactly this one: nothing in a turn can belong to a layout, name a speaker, end the conversation or give a
probability.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from edgen.core.text import compile_later
from edgen.core.values import Conversation, Turn
from edgen.reading.answers.probability import parse_probability
from edgen.reading.learned.asides import WORDS, is_aside, split_at
from edgen.reading.learned.notes import LabelNotes
from edgen.reading.learned.texts import CUTS, DIGITS, VALUE, find_unit, make_skeleton, zero_digits
from edgen.reading.learned.turn_codes import ENTITIES, ESCAPES, HINTS, SINGLES, decode_turn
from edgen.reading.text.characters import TELLING, TurnWords, are_spoken, find_marks, fold
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.surroundings import (
    HEADING,
    LAST_STOP,
    is_likely,
    may_head,
    read_value_of_line,
)

LEAST = 4  # turns; of fewer, the general reader takes no mark that they share for the layout's
MOST = 200  # turns
_MOST_TAILS = 32  # of a layout
_MOST_ASIDE = 1_000  # characters in which the first turn begins
_WORD = 12  # characters of the longest word for a probability, and one more
_SHORT = 60  # characters; a tag may be around a shorter label
_FRAME = 4  # turns of which one may begin with a word that they share

_ZERO_LED = compile_later(r"0(?<![\w.]0)(?<![0-9][:/-]0)[0-9]")  # no number in JSON; but in dates and times
_STRING_END = compile_later(
    r"'(?:\s?[,:)\]}]|(?<=[,:(\[{]')|(?<=[,:(\[{]\s'))"
)  # or its beginning, in Python
_CLOSING = '"“”„＂'
_STOPS = ".!?…。！？।؟"
_BULLETS = frozenset("-•")
_ENDING = frozenset(
    "=≈~_#*$"
)  # marks with which a line that ends the last turn begins, or before its probability
_LIKELY = ("likel", "prob", "chance")
_COLONS = frozenset(":：")
_LETTER_ENDS = frozenset("]>)–—")
_LETTERED = compile_later(r"\n[^\w\n]{0,8}[A-Z]\d?[^\S\n]?[\])>–—-]")  # a letter that may name a speaker
_ENDS = frozenset(_STOPS)
# The place inside a line where another language's label could be: in a list, before a colon.
_LISTED = compile_later(r"[,”](?:\W|[\d_]){0,20}\w+(?:[ '’]\w+)?(?:\W|\d){0,16}[:：]")
# A line under what may be a person's name.
_PERSON = compile_later(r"(?:[^\W\d_][^\s,;:：?!]{0,30}[ ]){0,4}[^\W\d_][^\s,;:：?!]{0,30}[ ]?[:：]")
# The texts before and after the probability that follow the last turn, and its unit; without a probability,
# nothing and the text after the last turn.
Behind = tuple[str, str, str | None]


class Tail(NamedTuple):
    """The meaning of the texts after the last turn."""

    repairs: tuple[str, ...]
    ended: bool
    labelled: bool  # they follow a label, which has only the end marker
    unfit: str  # characters that the last turn may not hold
    blank: bool  # there is a blank in them


class Layout(msgspec.Struct):
    """A layout: the texts around turns, and what a turn between them may hold."""

    begin: str  # what `head` begins with, up to a note or a number
    head: str  # text before the first turn, up to a probability that it gives
    first: str  # role of the first turn
    gaps: dict[str, str]
    """Texts between two turns, digits as zeros, with the role of the second turn; longer ones first. Empty if
    the layout has an `order`."""
    unfit: str  # characters that no turn may hold
    numbered: bool  # a gap holds a digit or the letter of a list
    lettered: bool  # what numbers a gap may be the letter of a list
    begins: bool  # a turn may begin a line
    several: bool  # a turn may have several lines
    rows: bool  # turns stand next to each other in a table
    mixed: bool  # a turn that holds double quotation marks stands in single or tripled ones, as in Python
    tagged: bool  # the layout has tags
    translated: bool  # labels are in another language
    named: bool  # labels hold more than a role, which may be a person's name
    firsts: frozenset[str]  # marks with which a turn may begin like a word
    lasts: frozenset[str]  # marks with which a turn may end like a word
    json: bool  # the layout may be JSON, in which no number begins with a zero
    code: int
    """How turns are written (`turn_codes`)."""
    tails: dict[Behind, Tail]  # what may follow the last turn, or a label that has only the end marker
    below: str | None = None  # text between a probability after `head` and the first turn; None without one
    order: tuple[str, ...] = ()  # texts between the turns in their order, if there is no other regularity
    speakers: tuple[str, ...] = ()  # roles of the turns in this order
    told: re.Pattern[str] | None = None  # line between turns that gives the probability
    aside: bool = False  # words of any kind stand before `head`
    top: re.Pattern[str] | None = None  # of `head`, where values in it change; they are its groups
    notes: LabelNotes | None = None  # notes in the labels, which the texts above have blanked

    def may_read(self, text: str) -> bool:
        """Return whether a text may be in this layout: cheap, as it is asked of many."""
        begins = self.begin in text[:_MOST_ASIDE] if self.aside else text.startswith(self.begin)
        if not begins or self.notes is not None:
            return begins
        for (before, after, _), tail in self.tails.items():
            if tail.blank:
                before, after = before.partition(WORDS)[0], after.rpartition(WORDS)[2]
            if text.endswith(after) and before in text:
                return True
        return False

    def read(self, text: str, vocabulary: TurnWords) -> tuple[Conversation, str] | None:
        """Return the conversation in a text that `may_read` lets pass, and the marks in its turns.

        The marks are those of `find_marks`, without those that cannot show another speaker. None if the text
        departs from the layout.
        """
        if self.notes is not None:
            blanked = self.notes.blank(text, vocabulary)
            if blanked is None:
                return None
            text = blanked
        start = self._skip_head(text, vocabulary)
        if start < 0:
            return None
        given = None
        if self.told is not None:
            before, *found = self.told.split(text)
            if len(found) != 2:
                return None
            given, text = found[0], before + found[1]  # after the head
        body = text[start:]
        if self.below is not None:
            given, _, body = body.partition(self.below)
            if not VALUE.fullmatch(given):
                return None
        body, foot = self._split_foot(body) if self.rows else (body, "")
        cut = self._cut_in_order(body) if self.order else self._cut(body)
        if cut is None:
            return None
        said, speakers = cut
        said[-1] += foot
        behind = self._split_tail(said[-1], vocabulary)
        if behind is None:
            return None
        said[-1], value, tail = behind
        ended_by = speakers[-1] if tail.ended else None
        if tail.labelled:
            del said[-1], speakers[-1]
        if not LEAST <= len(said) <= MOST or not speak_often(speakers):
            return None
        if self.rows and (len(said) % 2 or not all(map(str.__ne__, speakers, speakers[1:]))):
            return None
        value = given if value is None else value
        probability = None if value is None else parse_probability(value)
        if (probability is None and value is not None) or (
            tail.unfit and any(map(said[-1].__contains__, tail.unfit))
        ):
            return None
        marks = self._decode(said, text)
        hints = None if marks is None else self._find_hints(said, marks, vocabulary)
        if hints is None:
            return None
        return Conversation(tuple(map(Turn, speakers, said)), probability, ended_by, tail.repairs), hints

    def _skip_head(self, text: str, vocabulary: TurnWords) -> int:
        """Return the place where `head` ends at the beginning of a text, numbers apart; -1 without it."""
        if self.top is not None:
            found = self.top.match(text)
            return found.end() if found is not None and vocabulary.notes.have_all(found.groups()) else -1
        if not self.aside and not self.numbered:  # most
            return len(self.head) if text.startswith(self.head) else -1
        start = text[: len(self.head) + _MOST_ASIDE * self.aside]
        if self.numbered and self.below is None:
            start = zero_digits(start, lettered=self.lettered)
        place = start.find(self.head)
        return (
            -1
            if place < 0 or (self.aside and not is_aside(text[:place], vocabulary))
            else place + len(self.head)
        )

    def is_like(self, other: Layout) -> bool:
        """Return whether another layout differs only in its digits, its code or the text after the turns."""
        return (
            self.head == other.head
            and self.below == other.below
            and {make_skeleton(gap): role for gap, role in self.gaps.items()}
            == {make_skeleton(gap): role for gap, role in other.gaps.items()}
            and self.translated == other.translated
            and self.named == other.named
            and self.lettered == other.lettered
            and self.mixed == other.mixed
            and self.order == other.order
            and self.speakers == other.speakers
            and self.aside == other.aside
            and self.told == other.told
            and (self.notes and self.notes.pattern) == (other.notes and other.notes.pattern)
        )

    def extend(self, other: Layout) -> bool:
        """Take what another layout like this one knows more; return whether that is anything."""
        before = (len(self.gaps), len(self.tails), self.unfit, self.firsts, self.lasts, self.code)
        if len(self.gaps | other.gaps) <= len(CUTS):
            self.gaps = dict(sorted((self.gaps | other.gaps).items(), key=lambda item: -len(item[0])))
        tails = other.tails if len(self.tails) >= _MOST_TAILS else self.tails | other.tails
        # One may end with another. A new dict, since another thread may read the old one.
        self.tails = dict(sorted(tails.items(), key=lambda item: -len(item[0][0])))
        self.unfit = "".join(dict.fromkeys(self.unfit + other.unfit))
        self.firsts &= other.firsts
        self.lasts &= other.lasts
        if self.notes is not None:
            self.notes.extend(other.notes)
        self.code = max(self.code, other.code)
        return before != (len(self.gaps), len(self.tails), self.unfit, self.firsts, self.lasts, self.code)

    def _cut(self, body: str) -> tuple[list[str], list[str]] | None:
        """Return the texts of the turns, the last one with what follows it, and who speaks each."""
        if "\0" in body:
            return None
        cut = zero_digits(body, lettered=self.lettered) if self.numbered else body
        found = {}
        for mark, (gap, role) in zip(CUTS, self.gaps.items(), strict=False):
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
            if self.json and _ZERO_LED.search(body, at, start):
                return None
            at = start + len(part) - 1
            said.append(body[start:at])
        return said, speakers

    def _cut_in_order(self, body: str) -> tuple[list[str], list[str]] | None:
        """Return the same where the texts between the turns come in one order."""
        cut = zero_digits(body, lettered=self.lettered) if self.numbered else body
        said: list[str] = []
        at = 0
        for gap in self.order:
            place = cut.find(gap, at)
            if place < 0:
                return None
            said.append(body[at:place])
            at = place + len(gap)
        return [*said, body[at:]], [*self.speakers]

    def _split_foot(self, body: str) -> tuple[str, str]:
        """Return the text up to what follows the turns, and the rest: the foot of a table may be one, too."""
        for before, after, _ in self.tails:
            place = body.find(before or after)
            if place >= 0:
                return body[:place], body[place:]
        return body, ""

    def _split_tail(self, last: str, vocabulary: TurnWords) -> tuple[str, str | None, Tail] | None:
        """Return the last turn's words, the probability and the tail around it; None if no tail fits.

        The words are empty after a label that has only the end marker.
        """
        for (before, after, unit), tail in self.tails.items():
            if tail.blank:
                fits, said, value = _split_blank_tail(last, before, after, unit, vocabulary)
            elif unit is None:
                fits, said, value = last.endswith(after), last[: len(last) - len(after)], ""
            else:
                said, found, value = last.partition(before)
                fits = bool(found) and value.endswith(after)
                value = value[: len(value) - len(after)]
            if not fits or (tail.labelled and said):
                continue
            if unit is not None:
                if find_unit(value) == unit and VALUE.fullmatch(value):
                    return said, value, tail
            elif "\n" not in said and not (
                is_likely(fold(said)) and (self.below is None or DIGITS.search(said))
            ):
                return said, None, tail
        return None

    def _decode(self, said: list[str], text: str) -> str | None:
        """Decode the turns in place; return the marks in them, None if one may belong to the layout."""
        whole = " ".join(said)
        escaped = self.code and HINTS[self.code] in whole
        marks = find_marks(ESCAPES[self.code].sub("", whole) if escaped else whole)
        if self.code == SINGLES and "'" in whole.replace("''", ""):
            return None
        unfit = self.unfit
        if self.mixed:
            if not _stand_in_quotes(said, text):
                return None
            if "'" in whole and _STRING_END.search(whole) is not None:
                return None
            unfit = unfit.replace('"', "")
        if any(map(marks.__contains__, unfit)):
            return None
        if escaped:
            said[:] = [decode_turn(text, self.code) for text in said]
            marks = find_marks(" ".join(said))
            if self.code == ENTITIES and any(map(marks.__contains__, self.unfit)):
                return None
        printed = marks.replace("\n", "") if self.several else marks
        if "\t" in printed and whole.count("\t") == whole.count("\n\t"):  # lines are indented
            printed = printed.replace("\t", "")
        return marks if printed.isprintable() else None

    def _find_hints(self, said: Sequence[str], marks: str, vocabulary: TurnWords) -> str | None:
        """Return those of the marks of turns that may show another speaker.

        None if a turn begins or ends unlike words, or holds something that a rule looks for.
        """
        firsts, lasts = "".join([text[:1] for text in said]), "".join([text[-1:] for text in said])
        if (
            len(firsts) < len(said)
            or not (firsts.isalnum() or all(map(_is_word, {*firsts} - self.firsts)))
            or not all(map(_is_word, {*lasts.strip(_STOPS)} - _ENDS - self.lasts))
        ):
            return None
        if any(map(marks.__contains__, _CLOSING)) and any(
            text[-2] in _CLOSING and not _is_balanced(text) for text in said if text[1:]
        ):
            return None
        whole = "\n".join(said)
        broken = [text for text in said if "\n" in text] if "\n" in marks else []
        lined = self.begins or bool(broken)
        near = said if self.order and lined else broken  # what may name a speaker in any place
        spoken = " ".join(near).split()
        quiet = bool(near) and vocabulary.quiet.have_all(spoken)
        all_quiet = quiet and len(near) == len(said)
        words = "" if all_quiet else fold(whole)
        if any(map(words.__contains__, TELLING)) and self._tells(said, whole, words, lined=lined):
            return None
        if near and not (quiet or vocabulary.plain.have_all(spoken)):
            return None
        if self.order:
            if broken or "(" in marks or not _is_speech_alone(said):
                return None
            # After a label, only a role's own name can be taken for a legend's.
            if not lined and any(map(words.__contains__, vocabulary.names)):
                return None
        elif len(broken) >= len(said) - 1 and _share_lines(said):
            return None
        if lined:
            lines = [line.lstrip(" \t") for line in whole.split("\n")] if broken else said
            if not self._begin_plainly(lines, marks, vocabulary, named=not all_quiet):
                return None
            if _may_end(said[-1], marks, vocabulary) and any(
                _ends(match, said[-1]) for match in LAST_STOP.finditer("\n" + said[-1])
            ):
                return None
        if (
            self.translated
            and (":" in marks or "：" in marks)
            and any(_LISTED.search(text) for text in said if ":" in text or "：" in text)
        ):
            return None
        if not quiet or _begin_with_letters(whole, marks):
            return marks
        # Other marks than a colon show a speaker by a name alone.
        return "".join(_COLONS.intersection(marks)) if all_quiet else marks.replace("\n", "")

    def _tells(self, said: Sequence[str], whole: str, words: str, *, lined: bool) -> bool:
        """Return whether a turn may end the conversation, give the probability, or hold a heading."""
        return (
            (may_mark(words) and any(map(find_marker, said)))
            or (is_likely(words) and self._gives(said, lined=lined))
            or (lined and may_head(words) and HEADING.search(whole) is not None)
        )

    def _gives(self, said: Sequence[str], *, lined: bool) -> bool:
        """Return whether a turn may give a probability: by itself, or to the layout."""
        if self.tagged and any(
            is_likely(fold(text if len(text) < _SHORT else text[:_WORD])) for text in said
        ):
            return True
        texts = [text for text in said[:-1] if DIGITS.search(text)] if lined else said[-1:]
        return any(read_value_of_line(line) for text in texts for line in text.split("\n"))

    def _begin_plainly(self, lines: Sequence[str], marks: str, vocabulary: TurnWords, *, named: bool) -> bool:
        """Return whether no line of the turns may be a label or a rule, or end the last turn. `named`: words
        of theirs may name somebody."""
        if "(" in marks:
            return False
        starts = [line.split(" ", 2) for line in lines if line]
        firsts = [start[0] for start in starts]
        if not vocabulary.opening.have_all(firsts):
            starts = [start[1:] if start[0] in _BULLETS else start for start in starts]  # of a list
            if not all(map(vocabulary.begin_plainly, starts)):
                return False
        if named and not (
            self.order or vocabulary.plain.have_all([start[1] for start in starts if len(start) > 1])
        ):
            return False
        return not (self.named and (":" in marks or "：" in marks) and any(map(_PERSON.match, lines)))


def _stand_in_quotes(said: Sequence[str], text: str) -> bool:
    """Return whether each turn stands in quotation marks of one kind, which it does not hold, or in tripled
    ones. An end marker may follow the last one."""
    at = 0
    *others, last = said
    for words in said if '"' in last else others:
        at = text.find(words, at)
        mark = text[at - 1 : at]
        at += len(words)
        if mark != text[at : at + 1] or mark not in "\"'":
            return False
        if mark == '"' in words and not text.startswith('"""', at):
            return False
    return True


def _is_balanced(text: str) -> bool:
    """Return whether quotation marks are opened as often as closed."""
    return (
        text.count('"') % 2 == 0 and text.count("“") + text.count("„") == text.count("”") and "＂" not in text
    )


def _split_blank_tail(
    last: str, before: str, after: str, unit: str | None, vocabulary: TurnWords
) -> tuple[bool, str, str]:
    """Return whether a last turn with what follows it has these texts around the probability, with words that
    say nothing in place of their blanks; its words, and the probability."""
    found = split_at(last, before) if unit is not None else (last, [], last)
    if found is None:
        return False, "", ""
    said, words, rest = found
    end = split_at(rest, after)
    if end is None or end[2]:
        return False, "", ""
    if unit is None:
        said = end[0]
    return all(is_aside(word, vocabulary) for word in [*words, *end[1]]), said, end[0]


def _may_end(said: str, marks: str, vocabulary: TurnWords) -> bool:
    """Return whether a line of the last turn may end it: cheaper than `LAST_STOP`."""
    words = fold(said)
    return (
        not _ENDING.isdisjoint(marks)
        or any(map(words.__contains__, _LIKELY))
        or not all(map(vocabulary.goes_on, said.split("\n")))
    )


def _begin_with_letters(whole: str, marks: str) -> bool:
    """Return whether a line may begin with a letter that names a speaker: `S - But why?`"""
    return (not _LETTER_ENDS.isdisjoint(marks) or " -" in whole) and _LETTERED.search(whole) is not None


def _share_lines(said: Sequence[str]) -> bool:
    """Return whether all turns but the last have as many words in their first lines, or in their last ones:
    a line that they share is nobody's."""
    for cut, place in ((str.partition, 0), (str.rpartition, 2)):
        counts = (len(cut(text, "\n")[place].split()) for text in said[:-1])
        count = next(counts)
        if all(map(count.__eq__, counts)):
            return all("\n" in text for text in said[:-1])
    return False


def _is_speech_alone(said: Sequence[str]) -> bool:
    """Return whether turns are sentences that share no beginning which could be taken for the layout's."""
    # Numbers and a list's letters count as one beginning.
    beginnings = {text[0] for text in said if text[0] not in "ivxIVX" and text[1:2].isalpha()}
    return len(beginnings) > len(said) / _FRAME + 1 and (
        _ENDS.issuperset([text[-1] for text in said]) or are_spoken(said)
    )


def speak_often(speakers: Sequence[str]) -> bool:
    """Return whether two speak twice or more, and neither much oftener: fewer show no frame of labels."""
    half = len(speakers) / 2
    if speakers.count(speakers[0]) == half == speakers.count(speakers[1]):  # most
        return True
    counts = sorted(map(speakers.count, {*speakers}))
    return len(counts) > 1 and counts[-2] > 1 and counts[-1] <= 3 * counts[-2]


def _is_word(char: str) -> bool:
    """Return whether a character belongs to a word or is a picture."""
    return char.isalnum() or char >= "\U0001f300" or unicodedata.category(char)[0] == "M"


def _ends(match: re.Match[str], text: str) -> bool:
    """Return whether a line that may end the last turn does so."""
    line = text[match.start() :].partition("\n")[0]
    return match.lastgroup != "likely" or read_value_of_line(line) is not None
