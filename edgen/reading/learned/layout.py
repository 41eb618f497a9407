"""A layout of replies as strings: the texts before the first turn, between turns and after the last one.

`Layout.read` cuts a reply at these strings. It returns a conversation only if the general reader would give
exactly this one: nothing in a turn can belong to a layout, name a speaker, end the conversation or give a
probability.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, compress
from operator import methodcaller
from typing import NamedTuple

import msgspec

from edgen.core.text import compile_later
from edgen.core.values import Conversation, Turn
from edgen.reading.learned.asides import WORDS, is_aside, repeats, split_at
from edgen.reading.learned.notes import LabelNotes
from edgen.reading.learned.rewrites import Padding, Quoting
from edgen.reading.learned.texts import DIGITS, LONGEST_VALUE, VALUE, find_unit, make_skeleton, zero_digits
from edgen.reading.learned.turn_parts import APART
from edgen.reading.learned.turn_rules import TurnRules
from edgen.reading.probability import parse_probability
from edgen.reading.repairs import Repair
from edgen.reading.text.characters import TurnWords, fold
from edgen.reading.text.surroundings import is_likely

LEAST = 4  # turns; of fewer, the general reader takes no mark that they share for the layout's
MOST = 200  # turns
MOST_GAPS = 16  # texts between turns
_MOST_TAILS = 32  # of a layout
_BREAK = "\0"  # between texts that are joined
_MOST_ASIDE = 1_000  # characters in which the first turn begins
# No number in JSON, but one in dates and times.
_ZERO_LED = compile_later(r"0(?<![\w.]0)(?<![0-9][:/-]0)[0-9]")
_is_broken = methodcaller("__contains__", "\n")
_parse_value = lru_cache(maxsize=1024)(parse_probability)  # few values recur
_DOTS = ".…"  # a turn of dots alone says nothing
_OPENING = frozenset("{([<-–—")  # ends of labels that only words follow
_LATER = (Repair.UNSPOKEN_MARKER, Repair.PROBABILITY_UNCLEAR)  # repairs after those of the turns
# The texts before and after the probability that follow the last turn, and its unit; without a probability,
# nothing and the text after the last turn.
Behind = tuple[str, str, str | None]


class Tail(NamedTuple):
    """The meaning of the texts after the last turn."""

    repairs: tuple[str, ...]  # of the whole reply
    ended: bool  # an end marker is in them
    labelled: bool  # they follow a label, which has only the end marker
    unfit: str  # characters that the last turn may not hold
    blank: bool  # there is a blank in them
    broken: bool  # they followed turns of several lines; after others, lines may be cut off the last turn
    least: int  # turns of the shortest reply that ended so
    most: int  # and of the longest one

    def has_same_meaning(self, other: Tail) -> bool:
        """Return whether the same texts have the same meaning after the turns of another reply."""
        return self[:-3] == other[:-3]

    def extend(self, other: Tail) -> Tail:
        """Return what both replies show."""
        return self._replace(
            broken=self.broken or other.broken,
            least=min(self.least, other.least),
            most=max(self.most, other.most),
        )


class Layout(msgspec.Struct):
    """A layout: the texts around turns, and what a turn between them may hold."""

    begin: str  # what `head` begins with, up to a note or a number
    head: str  # text before the first turn, up to a probability that it gives
    first: str  # role of the first turn
    gaps: dict[str, str]
    """Texts between two turns, digits as zeros, with the role of the second turn; longer ones first. Empty if
    the layout has an `order`."""
    numbered: bool  # a gap holds a digit or the letter of a list
    lettered: bool  # what numbers a gap may be the letter of a list
    counted: list[str]
    """The first label and the texts between turns as written in the longest reply, if they have numbers;
    empty if these vary from reply to reply."""
    uncounted: list[list[str]] | None  # the same of a reply with other numbers; None once two have the same
    rows: bool  # turns stand next to each other in a table
    json: bool  # the layout may be JSON, in which no number begins with a zero
    turns: TurnRules  # what the turns may hold
    between: re.Pattern[str]  # any of the gaps, as a group
    tails: dict[Behind, Tail]  # what may follow the last turn, or a label that has only the end marker
    below: str | None = None  # text between a probability after `head` and the first turn; None without one
    order: list[str] = []  # texts between the turns in their order, if there is no other regularity
    speakers: Sequence[str] = ()  # roles of the turns in their order, if they are `counted` or in an `order`
    woven: bool = False  # one speaker's turns come before all of the other's
    told: re.Pattern[str] | None = None  # line between turns that gives the probability
    aside: bool = False  # words of any kind stand before `head`
    top: re.Pattern[str] | None = None  # of `head`, where values in it change; they are its groups
    confirmed: bool = False  # a second reply had it; an odd reply alone does not say how others are read
    rewrite: Padding | Quoting | None = None  # to the form of the texts above
    notes: LabelNotes | None = None  # notes in the labels, which the texts above have blanked

    def may_read(self, text: str) -> bool:
        """Return whether a text may be in this layout: cheap, as it is asked of many."""
        begins = self.begin in text[:_MOST_ASIDE] if self.aside else text.startswith(self.begin)
        if not begins or self.notes is not None or self.rewrite is not None:
            return begins
        for (before, after, _), tail in self.tails.items():
            if tail.blank:
                before, after = before.partition(WORDS)[0], after.rpartition(WORDS)[2]
            if text.endswith(after) and before in text:
                return True
        return False

    def read(
        self, text: str, vocabulary: TurnWords, *, checked: bool = True
    ) -> tuple[Conversation, list[Turn]] | None:
        """Return the conversation in a text that `may_read` lets pass, and the turns in which another speaker
        may be shown. None if the text departs from the layout, or a turn is not plain enough; such turns pass
        unless `checked`."""
        opened = self._open(text, vocabulary)
        if opened is None:
            return None
        text, body, given = opened
        body, foot = self._split_foot(body) if self.rows else (body, "")
        cut = self._cut(body)
        if cut is None:
            return None
        said, speakers = cut[0], [*cut[1]]
        said[-1] += foot
        behind = self._split_tail(said[-1], vocabulary)
        if behind is None:
            return None
        said[-1], value, tail = behind
        ended_by = speakers[-1] if tail.ended else None
        if tail.labelled:
            del said[-1], speakers[-1]
        if self.woven:
            said, speakers = _join_in_turn(said), _join_in_turn(speakers)
        if not tail.least <= len(said) <= tail.most or not self._may_speak(speakers):
            return None
        value = given if value is None else value
        probability = None if value is None else _parse_value(value)
        if (
            (probability is None and value is not None)
            or (self.json and "," in (value or ""))
            or (tail.unfit and any(map(said[-1].__contains__, tail.unfit)))
        ):
            return None
        marks = self.turns.decode(said, text, vocabulary, checked=checked)
        if marks is None or (not tail.broken and "\n" in marks and any(map(_is_broken, said[:-1]))):
            return None
        suspects = self.turns.find_suspects(said, marks, vocabulary) if checked else []
        repairs = tail.repairs
        if suspects is None and "" not in said and not all(kept := [text.strip(_DOTS) for text in said]):
            said, speakers = [*compress(said, kept)], [*compress(speakers, kept)]
            marks = APART.join(compress(marks.split(APART), kept))
            repairs = self._note_silence(repairs)
            if repairs and kept[-1] and speak_often(speakers):
                suspects = self.turns.find_suspects(said, marks, vocabulary)
        if suspects is None:
            return None
        turns = tuple(map(Turn, speakers, said))
        result = Conversation(turns, probability, ended_by, repairs)
        return result, [turns[number] for number in suspects]

    def _open(self, text: str, vocabulary: TurnWords) -> tuple[str, str, str | None] | None:
        """Return a text without its rewrites, notes and a probability between turns; the part of it after the
        head; and a probability that stands before its end. None if the text departs from the layout."""
        written = text if self.rewrite is None else self.rewrite.apply(text)
        if self.notes is not None and written is not None:
            written = self.notes.blank(written, vocabulary)
        if written is None:
            return None
        text = written
        start = self._skip_head(text, vocabulary)
        if start < 0:
            return None
        given = None
        if self.told is not None:
            before, *found = self.told.split(text)
            if len(found) != 2:
                return None
            given, text = found[0], before + found[1]  # after the head
        if self.counted and self.below is None and text[:start].rpartition("\n")[2] != self.counted[0]:
            return None
        body = text[start:]
        if self.below is not None:
            given, _, body = body.partition(self.below)
            if not VALUE.fullmatch(given):
                return None
        return text, body, given

    def _note_silence(self, repairs: tuple[str, ...]) -> tuple[str, ...]:
        """Return the repairs of a reply with a turn of dots among its turns, in the order of `assemble`;
        nothing if it is unclear."""
        labels = [gap.rstrip(" ") for gap in self.gaps]
        if (
            Repair.POSTAMBLE in repairs
            or Repair.EMPTY_TURN in repairs
            or not (self.turns.tagged or self.json or all(map(_has_one_line, labels)))
            or (self.turns.translated and self.json)
            or any(label[-1:].isalnum() or label[-1:] in _OPENING for label in labels)
            or self.order
        ):
            return ()
        later = {*_LATER, *([Repair.ROLE_ALIAS, Repair.MARKER_FORM] if self.turns.translated else [])}
        at = next((at for at, repair in enumerate(repairs) if repair in later), len(repairs))
        return (*repairs[:at], str(Repair.EMPTY_TURN), *repairs[at:])

    def _may_speak(self, speakers: Sequence[str]) -> bool:
        """Return whether turns of these roles show that the texts between them are labels."""
        if self.rows and (len(speakers) % 2 or not all(map(str.__ne__, speakers, speakers[1:]))):
            return False
        return speak_often(speakers)

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
        if place < 0 or (self.aside and not is_aside(text[:place], vocabulary)):
            return -1
        return place + len(self.head)

    def is_like(self, other: Layout) -> bool:
        """Return whether another layout differs only in its digits, its code or the text after the turns."""
        return (
            self.head == other.head
            and self.below == other.below
            and {make_skeleton(gap): role for gap, role in self.gaps.items()}
            == {make_skeleton(gap): role for gap, role in other.gaps.items()}
            and self.turns.is_like(other.turns)
            and self.lettered == other.lettered
            and self.order == other.order
            and (not self.order or self.speakers == other.speakers)
            and self.woven == other.woven
            and self.aside == other.aside
            and self.told == other.told
            and self.rewrite == other.rewrite
            and (self.notes and self.notes.pattern) == (other.notes and other.notes.pattern)
            and (self.uncounted is not None or not other.counted or self._counts_like(self.counted, other))
            and all(
                self.tails[behind].has_same_meaning(tail)
                for behind, tail in other.tails.items()
                if behind in self.tails
            )
        )

    @staticmethod
    def _counts_like(counted: list[str], other: Layout) -> bool:
        """Return whether numbers count in the same way, as far as both replies go."""
        return all(map(str.__eq__, counted, other.counted))

    def extend(self, other: Layout) -> bool:
        """Take what another layout like this one knows more; return whether that is anything."""
        before = (len(self.gaps), self.tails, self.counted, self.uncounted)
        gaps = dict(sorted((self.gaps | other.gaps).items(), key=lambda item: -len(item[0])))
        if len(self.gaps) < len(gaps) <= MOST_GAPS:
            self.gaps, self.between = gaps, match_any(gaps)
        shared = {
            behind: tail.extend(self.tails[behind])
            for behind, tail in other.tails.items()
            if behind in self.tails
        }
        tails = other.tails if len(self.tails) >= _MOST_TAILS else self.tails | other.tails | shared
        # One may end with another. A new dict, since another thread may read the old one.
        self.tails = dict(sorted(tails.items(), key=lambda item: -len(item[0][0])))
        if self.notes is not None:
            self.notes.extend(other.notes)
        if self.counted:
            self._extend_count(other)
        extended = self.turns.extend(other.turns)
        return extended or before != (len(self.gaps), self.tails, self.counted, self.uncounted)

    def _extend_count(self, other: Layout) -> None:
        """Learn how numbers count once two replies have the same, or that they vary once three differ."""
        if self._counts_like(self.counted, other):
            longer = self if len(self.counted) >= len(other.counted) else other
            self.counted, self.speakers, self.uncounted = longer.counted, longer.speakers, None
        elif any(self._counts_like(counted, other) for counted in self.uncounted or ()):
            self.counted, self.speakers, self.uncounted = other.counted, other.speakers, None
        elif self.uncounted:
            self.counted = []
        else:
            self.uncounted = [other.counted]

    def _cut(self, body: str) -> tuple[list[str], Sequence[str]] | None:
        """Return the texts of the turns, the last one with what follows it, and who speaks each; None if the
        texts between them are not those of the layout, or do not count as in the replies before."""
        parts = self.between.split(zero_digits(body) if self.lettered else body, len(self.order))
        if self.lettered:
            ends = [*accumulate(map(len, parts))]
            parts = [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        said, gaps = parts[::2], parts[1::2]
        if self.counted:
            return (said, self.speakers[: len(said)]) if gaps == self.counted[1 : len(said)] else None
        if self.numbered:
            if self.json and _ZERO_LED.search(" ".join(gaps)):
                return None
            gaps = zero_digits(_BREAK.join(gaps), lettered=self.lettered).split(_BREAK)
        if self.order:
            return (said, self.speakers) if gaps == self.order else None
        return (
            (said, [self.first, *map(self.gaps.__getitem__, gaps)]) if self.gaps.keys() >= {*gaps} else None
        )

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
                # The general reader may find no other probability by a label in another language.
                other = "\n" in said and DIGITS.search(said) is not None and not is_likely(fold(before))
                if len(value) <= LONGEST_VALUE and find_unit(value) == unit and not other:
                    return said, value, tail
            elif "\n" not in said and not (
                is_likely(fold(said)) and ((self.below is None and self.told is None) or DIGITS.search(said))
            ):
                return said, None, tail
        return None


def _has_one_line(label: str) -> bool:
    """Return whether at most one line of a text between turns has words, so no heading is above a label."""
    return sum([any(map(str.isalnum, line)) for line in label.split("\n")]) < 2


def match_any(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of some texts, as a group: the first of those that match in one place. Zeros in
    them stand for any digits."""
    return compile_later(f"({'|'.join(map(re.escape, texts)).replace('0', '[0-9]')})")


def _join_in_turn(some: list[str]) -> list[str]:
    """Return the first and the second half, their items in turn."""
    half = len(some) // 2
    return [item for pair in zip(some[:half], some[half:], strict=True) for item in pair]


def _split_blank_tail(
    last: str, before: str, after: str, unit: str | None, vocabulary: TurnWords
) -> tuple[bool, str, str]:
    """Return whether a last turn with what follows it has these texts around the probability, with words that
    say nothing in place of their blanks; its words, and the probability."""
    front = split_at(last, before) if unit is not None else ("", None, last)
    back = None if front is None else split_at(front[2], after, ends=True)
    if front is None or back is None:
        return False, "", ""
    fits = all(
        words is None
        # JSON with a line break in a text is repaired.
        or (
            unit is not None
            and f"={WORDS}" in around.replace('"', "")
            and repeats(words, _parse_value(back[0]))
        )
        or (is_aside(words, vocabulary) and not ("\n" in words and f'"{WORDS}' in around))
        for words, around in ((front[1], before), (back[1], after))
    )
    return fits, back[0] if unit is None else front[0], back[0]


def speak_often(speakers: Sequence[str]) -> bool:
    """Return whether two speak twice or more, and neither much oftener: fewer show no frame of labels."""
    half = len(speakers) / 2
    if speakers.count(speakers[0]) == half == speakers.count(speakers[1]):  # most
        return True
    counts = sorted(map(speakers.count, {*speakers}))
    return len(counts) > 1 and counts[-2] > 1 and counts[-1] <= 3 * counts[-2]
