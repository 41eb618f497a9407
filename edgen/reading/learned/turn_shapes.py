"""Rules about beginnings and ends of turns, and about the marks and lines that all turns share."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence

from edgen.core.text import compile_later
from edgen.reading.lines.shared_marks import find_margin, have_key
from edgen.reading.text.characters import are_spoken, find_common_start
from edgen.reading.text.quotes import CLOSERS, CLOSING_MARKS, DOUBLE, find_closing, unwrap

STOPS = ".!?…。！？।؟"
ENDS = frozenset(STOPS)
_WORDS = 4  # blanks of a sentence
_CLOSINGS = {"*": "*", "_": "_", "(": ")", "[": "]"}
_NUMBER = compile_later(r"\d{1,3}[.):\]](?:\s|\Z)")
# A character that the same words at the beginnings of sentences do not hold.
_LABEL = compile_later(r"(?![,;…]|\.(?:\s|\.|\Z))[^\w\s'’\u0300-\u036f\u0590-\u0dff-]|\d")
_LEAST = 3  # turns that share a mark
_FEW_BREAKS = 3  # line breaks of HTML that turns may hold
_MARGINS = 3  # turns that have the margin of the layout
_FRAME = 4  # turns of which one may begin with a word that they share
_BEFORE_COUNT, _AFTER_COUNT = "([#", ")]"


def stand_in_quotes(said: Sequence[str], text: str) -> bool:
    """Return whether each turn stands in quotation marks of one kind, which it does not hold, or in tripled
    ones. An end marker may follow the last one."""
    at = 0
    *others, last = said
    for words in said if '"' in last else others:
        at = text.find(words, at)
        if at < 1:
            return False
        mark = text[at - 1 : at]
        at += len(words)
        if mark != text[at : at + 1] or mark not in "\"'":
            return False
        if mark == '"' in words and not text.startswith('"""', at):
            return False
    return True


def may_close(said: Sequence[str], whole: str, opener: str, *, doubled: bool) -> bool:
    """Return whether a quotation mark inside a turn may close one before it (`quotes.unwrap`), or the one
    before the last turn, where an end marker may follow (`surroundings.close_quotation`). `whole`: all turns.
    `opener`: the mark before each turn. `doubled`: two marks in a turn stand for one."""
    closers = CLOSERS[opener]
    if not any(map(whole.__contains__, closers)):  # most
        return False
    if find_closing(said[-1], closers, 0, len(said[-1])) >= 0:
        return True
    if opener not in DOUBLE:  # after another mark at the end of a turn, `''` in it is not decoded
        return any(not CLOSING_MARKS.isdisjoint(text[-2:]) for text in said)
    for text in said:
        if any(map(text.replace('\\"', "").__contains__, closers)):
            inner = text.replace('""', '"') if doubled else text
            repairs: list[str] = []
            if (
                unwrap(f"{opener}{inner}{closers[0]}", opener, repairs) != inner.replace('\\"', '"')
                or repairs
            ):
                return True
    return False


def may_join(said: Sequence[str], whole: str, joint: str, *, several: bool) -> bool:
    """Return whether lines of turns are joined by `joint` alone, and none of them has a margin that only
    some turns lose. `whole`: all turns. `several`: a turn may have several lines."""
    if several and joint == "\n":
        return True
    if whole.count("\n") != joint.count("\n") * whole.count(joint):
        return False
    further = whole.split(joint)[1:]
    if "<" in joint and 0 < len(further) <= _FEW_BREAKS:
        return False  # few breaks of HTML stay as they are
    begins = "".join([line[:1] for line in further])
    if not several and (" " in begins or "\t" in begins):
        return False
    margin = joint[1:]
    if not margin.isspace() or (begins.isalpha() and sum(joint in text for text in said[:-1]) >= _MARGINS):
        return True
    return not further or find_margin(said[:-1]) == margin


def share_marks(firsts: str, lasts: str) -> bool:
    """Return whether turns that begin and end so have marks in common, which may belong to the layout."""
    few = len(firsts) - 1  # the last may be without
    bracketed = max(sum(map(firsts.count, _BEFORE_COUNT)), sum(map(lasts.count, _AFTER_COUNT)))
    return bracketed >= few or any(firsts.count(mark) >= few <= lasts.count(mark) for mark in "*_")


def count_many(turns: int) -> int:
    """Return how many of some turns may share words that belong to the layout."""
    return max(_LEAST, 3 * turns // 8)


def share_beginning(said: Sequence[str], firsts: str, lasts: str) -> bool:
    """Return whether many turns have the same mark, number or name in front, or stand between the same marks:
    these may belong to the layout. `firsts` and `lasts`: their first and last characters."""
    few, most = max(_LEAST, len(said) // _FRAME), count_many(len(said))
    for first in {*firsts}:
        if firsts.count(first) < (most if first.isalpha() else few):
            continue
        if first.isdecimal() and sum([_NUMBER.match(text) is not None for text in said]) >= few:
            return True
        alike = {text for text in said if text[0] == first}
        shared = len({text[1:2] for text in alike}) == 1
        start = find_common_start([*alike])[1:] if shared else ""
        if first.isalnum():
            if len(alike) >= most and _LABEL.search(start) is not None:
                return True
        # `frames` takes a mark of three quarters. Emphasis of a part of a turn, and brackets, have two marks.
        elif (
            (first not in _CLOSINGS and 3 * len(said) <= 4 * firsts.count(first))
            or first in start
            or max(lasts.count(first), _count_unclosed(alike, first)) >= few
        ):
            return True
    seconds = "".join([text[1:2] for text in said])
    if seconds.replace(" ", "").isalpha():
        return False
    keyed = [text[:2] for text in {*said} if text[0].isalnum() and _LABEL.match(text, 1) is not None]
    return any(keyed.count(key) >= few for key in keyed)


def share_words(firsts: Sequence[str]) -> bool:
    """Return whether many turns have the same first word: a layout that only its frame shows may hold it."""
    most, kinds = count_many(len(firsts)), {*firsts}
    return len(firsts) - len(kinds) >= most - 1 and max(map(firsts.count, kinds)) >= most


def _count_unclosed(texts: Collection[str], mark: str) -> int:
    """Return how many texts that begin with a mark of emphasis or a bracket do not close it."""
    closing = _CLOSINGS.get(mark)
    return 0 if closing is None else sum([text.find(closing, 1) < 0 for text in texts])


def share_ending(said: Sequence[str], lasts: str) -> bool:
    """Return whether most turns end with the same character, which ends no sentence, or one is a word that
    ends none."""
    half = len(lasts) // 2
    return any(last.isalnum() and lasts.count(last) >= half for last in {*lasts}) or any(
        " " not in text for text in said if text[-1].isalnum()
    )


def hold_odd_quotes(said: Sequence[str]) -> bool:
    """Return whether a turn holds an odd number of quotation marks."""
    return any(text.count('"') % 2 for text in said)


def is_bracketed_whole(text: str) -> bool:
    """Return whether brackets inside a turn are closed, and none opens it."""
    return text.count("(") == text.count(")") and text[:1] != "("


def is_half_emphasis(text: str) -> bool:
    """Return whether a star at an end of a turn may be the other half of one in the label."""
    return "*" in (text[0], text[-1]) and bool(text.count("*") % 2 or text.count("**") % 2)


def is_balanced(text: str) -> bool:
    """Return whether quotation marks are opened as often as closed."""
    return (
        text.count('"') % 2 == 0 and text.count("“") + text.count("„") == text.count("”") and "＂" not in text
    )


def share_lines(said: Sequence[str]) -> bool:
    """Return whether all turns but the last have as many words in their first lines, or in their last ones,
    or the same key: a line that they share belongs to the layout."""
    *others, _ = said
    for cut, place in ((str.partition, 0), (str.rpartition, 2)):
        first = cut(others[0], "\n")[place]
        words = len(first.split())
        if all(len(cut(text, "\n")[place].split()) == words for text in others[1:]) or (
            ":" in first and have_key([cut(text, "\n")[place] for text in others])
        ):
            return all("\n" in text for text in others)
    return False


def is_speech_alone(said: Sequence[str]) -> bool:
    """Return whether turns are sentences that share no beginning which could be taken for the layout's. The
    first one cannot be a heading."""
    if said[0].count(" ") < _WORDS or said[0][-1] not in ENDS:
        return False
    # Numbers and a list's letters count as one beginning.
    beginnings = {text[0] for text in said if text[0] not in "ivxIVX" and text[1:2].isalpha()}
    return len(beginnings) > len(said) / _FRAME + 1 and (
        ENDS.issuperset([text[-1] for text in said]) or are_spoken(said)
    )


def is_word(char: str) -> bool:
    """Return whether a character belongs to a word or is a picture."""
    return char.isalnum() or char >= "\U0001f300" or unicodedata.category(char)[0] == "M"
