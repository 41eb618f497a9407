"""Rules about the turns of a layout: how they are written, and which texts are plain enough.

`TurnRules.decode` takes escapes away, and puts line breaks where the layout has something else for them.
`TurnRules.find_hints` lets turns pass only if no rule of the general reader finds anything in them: each
begins and ends like words, and none can name a speaker, end the conversation, give a probability or head a
part.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec

from edgen.core.text import compile_later
from edgen.reading.foreign_words import ends_conversation
from edgen.reading.learned.texts import DIGITS
from edgen.reading.learned.turn_codes import ENTITIES, ESCAPES, HINTS, SINGLES, decode_turn
from edgen.reading.lines.shared_marks import find_margin, have_key
from edgen.reading.text.characters import TELLING, TurnWords, are_spoken, find_marks, fold
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.surroundings import HEADING, LAST_STOP, is_likely, may_head, read_value_of_line

_WORD = 12  # characters of the longest word for a probability, and one more
_SHORT = 60  # characters; a tag may be around a shorter label
_FRAME = 4  # turns of which one may begin with a word that they share

# The end of a string in Python, or the beginning of another.
_STRING_END = compile_later(r"'(?:\s?[,:)\]}]|(?<=[,:(\[{]')|(?<=[,:(\[{]\s'))")
# A stage direction.
_DIRECTION = compile_later(r"(\[[^\W\d_](?:[^\W\d_]|[ ,'’-]){1,40}\])")
_UNDIRECTED = 2  # turns; if all begin with brackets, these may be the layout's
_CLOSING = '"“”„＂'
_STOPS = ".!?…。！？।؟"
_BULLET = compile_later("[-•]|[0-9]{1,2}[.)]")
# Marks with which a line that ends the last turn begins, or which stand before a probability.
_ENDING = frozenset("=≈~_#*$")
_LIKELY = ("likel", "prob", "chance")
_COLONS = frozenset(":：")
_LETTER_ENDS = frozenset("]>)–—")
# A letter at the beginning of a line that may name a speaker.
_LETTERED = compile_later(r"\n[^\w\n]{0,8}[A-Z]\d?[^\S\n]?[\])>–—-]")
_ENDS = frozenset(_STOPS)
# The place inside a line where another language's label could be: in a list, before a colon.
_LISTED = compile_later(r"[,”](?:\W|[\d_]){0,20}\w+(?:[ '’]\w+)?(?:\W|\d){0,16}[:：]")
# A line under what may be a person's name.
_PERSON = compile_later(r"(?:[^\W\d_][^\s,;:：?!]{0,30}[ ]){0,4}[^\W\d_][^\s,;:：?!]{0,30}[ ]?[:：]")


class TurnRules(msgspec.Struct):
    """The characters and lines that turns of a layout may hold, and how these are written."""

    unfit: frozenset[str]  # characters that no turn may hold
    begins: bool  # a turn may begin a line
    several: bool  # a turn may have several lines
    mixed: bool  # a turn that holds double quotation marks stands in single or tripled ones, as in Python
    tagged: bool  # the layout has tags
    translated: bool  # labels are in another language
    named: bool  # labels hold more than a role, which may be a person's name
    ordered: bool  # speakers follow from the turns' order alone
    directed: bool  # a turn may hold stage directions in square brackets
    firsts: frozenset[str]  # marks with which a turn may begin like a word
    lasts: frozenset[str]  # marks with which a turn may end like a word
    code: int
    """How turns are written (`turn_codes`)."""
    joint: str = ""  # what stands for a line break in a turn, as `<br>` or a break with a margin; "": a break

    def is_like(self, other: TurnRules) -> bool:
        """Return whether the turns of another layout may be written like those of this one."""
        return (
            self.translated == other.translated
            and self.named == other.named
            and self.mixed == other.mixed
            and (not self.joint or not other.joint or self.joint == other.joint)
        )

    def extend(self, other: TurnRules) -> bool:
        """Take what other rules know more; return whether that is anything."""
        before = (self.unfit, self.firsts, self.lasts, self.code, self.joint)
        self.unfit |= other.unfit
        self.firsts &= other.firsts
        self.lasts &= other.lasts
        self.code = max(self.code, other.code)
        self.joint = self.joint or other.joint
        return before != (self.unfit, self.firsts, self.lasts, self.code, self.joint)

    def decode(self, said: list[str], text: str, vocabulary: TurnWords) -> str | None:
        """Decode the turns in place; return the marks in them, None if one may belong to the layout."""
        whole = " ".join(said)
        joined = False
        if self.joint:
            joined = self.joint in whole
            if "\n" in whole.replace(self.joint, ""):
                return None
            if joined and not self.several and (f"{self.joint} " in whole or f"{self.joint}\t" in whole):
                return None  # margins of such lines are taken away from some turns alone
            if joined and self.joint[1:].isspace() and find_margin(said[:-1]) != self.joint[1:]:
                return None
            if joined and self.joint != "\n":
                said[:] = [turn.replace(self.joint, "\n") for turn in said]
                whole = " ".join(said)
        bare = _drop_directions(whole, said, vocabulary) if self.directed and "[" in whole else whole
        escaped = self.code and HINTS[self.code] in whole
        marks = find_marks(ESCAPES[self.code].sub("", bare) if escaped else bare)
        if self.code == SINGLES and "'" in whole.replace("''", ""):
            return None
        unfit = self.unfit
        if self.mixed:
            if not _stand_in_quotes(said, text):
                return None
            if "'" in whole and _STRING_END.search(whole) is not None:
                return None
            unfit = unfit - {'"'}
        if not unfit.isdisjoint(marks):
            return None
        if escaped:
            said[:] = [decode_turn(text, self.code) for text in said]
            marks = find_marks(" ".join(said))
            if self.code == ENTITIES and not self.unfit.isdisjoint(marks):
                return None
        elif bare is not whole:
            marks = find_marks(whole)
        if marks.isprintable():  # most
            return marks
        printed = marks.replace("\n", "") if self.several or joined else marks
        if "\t" in printed and whole.count("\t") == whole.count("\n\t"):  # lines are indented
            printed = printed.replace("\t", "")
        return marks if printed.isprintable() else None

    def find_hints(self, said: Sequence[str], marks: str, vocabulary: TurnWords) -> str | None:
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
        quiet = all_quiet = False
        if broken or (self.ordered and lined):  # a speaker may be named in any place
            near = said if self.ordered else broken
            spoken = (whole if len(near) == len(said) else " ".join(near)).split()
            quiet = vocabulary.quiet.have_all(spoken)
            if not (quiet or vocabulary.plain.have_all(spoken)):
                return None
            all_quiet = quiet and len(near) == len(said)
        words = "" if all_quiet else fold(whole)
        if any(map(words.__contains__, TELLING)) and self._tells(said, whole, words, lined=lined):
            return None
        if self.ordered:
            if broken or "(" in marks or not _is_speech_alone(said):
                return None
            # After a label, only a role's own name can be taken for a legend's.
            if not lined and any(map(words.__contains__, vocabulary.names)):
                return None
        elif broken and len(broken) >= len(said) - 1 and _share_lines(said):
            return None
        if lined:
            lines = whole.split("\n") if broken else said
            if broken and ("\n " in whole or "\n\t" in whole):
                if self.begins or find_margin(said[:-1]):
                    return None  # margins of blocks are taken away from some turns alone, or are shared
                lines = [line.lstrip(" \t") for line in lines]
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
            starts = [start[1:] if _BULLET.fullmatch(start[0]) else start for start in starts]  # of a list
            if not all(map(vocabulary.begin_plainly, starts)):
                return False
        if named and not (
            self.ordered or vocabulary.plain.have_all([start[1] for start in starts if len(start) > 1])
        ):
            return False
        return not (self.named and (":" in marks or "：" in marks) and any(map(_PERSON.match, lines)))


def _drop_directions(whole: str, said: Sequence[str], vocabulary: TurnWords) -> str:
    """Return the text of all turns without stage directions in square brackets, if some turns begin and end
    without one and none names anybody."""
    few = all(
        sum(turn[place] == mark for turn in said if turn) <= len(said) - _UNDIRECTED
        for place, mark in ((0, "["), (-1, "]"))
    )
    parts = _DIRECTION.split(whole) if few else []
    directions = parts[1::2]
    if not directions or not vocabulary.notes.have_all(directions) or ends_conversation(" ".join(directions)):
        return whole
    return "".join(parts[::2])


def _stand_in_quotes(said: Sequence[str], text: str) -> bool:
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


def _is_balanced(text: str) -> bool:
    """Return whether quotation marks are opened as often as closed."""
    return (
        text.count('"') % 2 == 0 and text.count("“") + text.count("„") == text.count("”") and "＂" not in text
    )


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
    """Return whether all turns but the last have as many words in their first lines, or in their last ones,
    or the same key: a line that they share belongs to the layout."""
    for cut, place in ((str.partition, 0), (str.rpartition, 2)):
        lines = [cut(text, "\n")[place] for text in said[:-1]]
        counts = {len(line.split()) for line in lines}
        if len(counts) == 1 or have_key(lines):
            return all("\n" in text for text in said[:-1])
    return False


def _is_speech_alone(said: Sequence[str]) -> bool:
    """Return whether turns are sentences that share no beginning which could be taken for the layout's."""
    # Numbers and a list's letters count as one beginning.
    beginnings = {text[0] for text in said if text[0] not in "ivxIVX" and text[1:2].isalpha()}
    return len(beginnings) > len(said) / _FRAME + 1 and (
        _ENDS.issuperset([text[-1] for text in said]) or are_spoken(said)
    )


def _is_word(char: str) -> bool:
    """Return whether a character belongs to a word or is a picture."""
    return char.isalnum() or char >= "\U0001f300" or unicodedata.category(char)[0] == "M"


def _ends(match: re.Match[str], text: str) -> bool:
    """Return whether a line that may end the last turn does so."""
    line = text[match.start() :].partition("\n")[0]
    return match.lastgroup != "likely" or read_value_of_line(line) is not None
