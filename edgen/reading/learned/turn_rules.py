"""Rules about the turns of a layout: how they are written, and which texts are plain enough.

`TurnRules.decode` takes escapes away, and puts line breaks where the layout has something else for them.
`TurnRules.find_suspects` lets turns pass only if no rule of the general reader finds anything in them: each
begins and ends like words, and none can name a speaker, end the conversation, give a probability or head a
part. Marks that the general reader leaves in a turn are no reason against it: a whole pair of brackets or
stars (`line.strip_half_marks`), a quotation mark that closes nothing (`quotes.unwrap`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

import msgspec

from edgen.core.text import compile_later
from edgen.reading.foreign_words import ends_conversation
from edgen.reading.learned.formulas import FORMULAS, are_formulas
from edgen.reading.learned.notes import drop_directions
from edgen.reading.learned.texts import find_numbered
from edgen.reading.learned.turn_codes import DOUBLED, ENTITIES, ESCAPES, PLAIN, SINGLES, decode_turn
from edgen.reading.learned.turn_codes import HINTS as ESCAPE_HINTS
from edgen.reading.learned.turn_parts import APART, TurnParts, split_turns, split_words
from edgen.reading.learned.turn_shapes import (
    ENDS,
    STOPS,
    hold_odd_quotes,
    is_balanced,
    is_bracketed_whole,
    is_half_emphasis,
    is_speech_alone,
    is_word,
    may_close,
    may_join,
    share_beginning,
    share_ending,
    share_lines,
    share_marks,
    share_words,
    stand_in_quotes,
)
from edgen.reading.lines.foot import split_foot
from edgen.reading.lines.shared_marks import SMILEY, find_margin
from edgen.reading.text.characters import (
    TELLING,
    TurnWords,
    WordMemory,
    encode_letters,
    find_marks,
    fold,
)
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.surroundings import (
    HEADING,
    LAST_STOP,
    is_likely,
    may_head,
    mentions,
    read_value_of_line,
)

_WORD = 12  # characters of the longest word for a probability, and one more
_SHORT = 60  # characters; a tag may be around a shorter label

# The end of a string in Python, or the beginning of another.
_STRING_END = compile_later(r"'(?:\s?[,:)\]}]|(?<=[,:(\[{]')|(?<=[,:(\[{]\s'))")
_CLOSING = frozenset('"“”„＂')
_BULLETS = WordMemory(lambda word: re.fullmatch(r"[-•]|[0-9]{1,2}[.)]", word) is not None)
# Marks of a line that ends the last turn, or which stand before a probability.
_ENDING = frozenset("=≈~_#*$")
_LIKELY = ("likel", "prob", "chance")
_CLOSED = tuple(map(str.encode, TELLING[:4]))  # words that end a conversation
_BRACKETS = frozenset("([{<（")  # of end markers
_FIRST, _LAST = itemgetter(0), itemgetter(-1)  # character
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
    opener: str  # the quotation mark before each turn; nothing without one
    paired: bool  # a label names its role in quotation marks, and those of a turn may seem to name another
    bracketed: bool  # the layout has round brackets
    single: bool  # turns stand in single quotation marks
    tagged: bool  # the layout has tags
    translated: bool  # labels are in another language
    named: bool  # labels hold more than a role, which may be a person's name
    ordered: bool  # speakers follow from the turns' order alone
    inline: bool  # turns stand next to each other on a line, each after a label
    parted: bool  # words that belong to no turn stand above labels
    own: re.Pattern[str] | None
    """A line that begins like one of the layout, with a word that names no speaker elsewhere."""
    unowned: WordMemory  # whether no such line begins with a word
    directed: bool  # a turn may hold stage directions in square brackets
    firsts: frozenset[str]  # marks with which a turn may begin like a word
    lasts: frozenset[str]  # marks with which a turn may end like a word
    code: int
    """How turns are written (`turn_codes`)."""
    framed: bool = False  # the general reader knows the labels by what is around them alone
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

    def decode(
        self, said: list[str], text: str, vocabulary: TurnWords, *, checked: bool = True
    ) -> str | None:
        """Decode the turns in place; return the marks in them, with `APART` between turns. None if one may
        belong to the layout; such marks pass unless `checked`."""
        whole = APART.join(said)
        joined = False
        if self.joint:
            joined = self.joint in whole
            if not may_join(said, whole, self.joint, several=self.several):
                return None
            if joined and self.joint != "\n":
                said[:] = [turn.replace(self.joint, "\n") for turn in said]
                whole = APART.join(said)
        bare = drop_directions(whole, said, vocabulary) if self.directed and "[" in whole else whole
        escaped = self.code != PLAIN and ESCAPE_HINTS[self.code] in whole
        marks = find_marks(ESCAPES[self.code].sub("", bare) if escaped else bare)
        if checked and self._may_take(said, whole, text, marks, vocabulary, escaped=escaped):
            return None
        if escaped:
            hint = ESCAPE_HINTS[self.code]
            said[:] = [decode_turn(turn, self.code) if hint in turn else turn for turn in said]
            marks = find_marks(APART.join(said))
            if self.code == ENTITIES and not self.unfit.isdisjoint(marks):
                return None
        elif bare is not whole:
            marks = find_marks(whole)
        if marks.count(APART) >= len(said):
            return None  # in a turn, it may belong to a table
        printed = marks.replace(APART, "")
        if printed.isprintable():  # most
            return marks
        printed = printed.replace("\n", "") if self.several or joined else printed
        if "\t" in printed and whole.count("\t") == whole.count("\n\t"):  # lines are indented
            printed = printed.replace("\t", "")
        return marks if printed.isprintable() else None

    def _may_take(
        self, said: Sequence[str], whole: str, text: str, marks: str, vocabulary: TurnWords, *, escaped: bool
    ) -> bool:
        """Return whether the general reader may take marks of the turns for the layout's. `marks`: those that
        are not escaped."""
        if ("'" in whole.replace("''", "")) if self.code == SINGLES else (self.single and "''" in whole):
            return True
        if self.paired and escaped and hold_odd_quotes(said):
            return True
        # The text between two quotation marks and a colon after it may seem to be a label.
        if self.paired and '"' in marks and (":" in marks or len(said[-1]) < _SHORT):
            return True
        unfit = self.unfit
        if self.opener and may_close(said, whole, self.opener, doubled=self.code == DOUBLED):
            return True
        if self.mixed:
            if not stand_in_quotes(said, text) or ("'" in whole and _STRING_END.search(whole) is not None):
                return True
            unfit = unfit - {'"'}
        if not unfit.isdisjoint(marks):
            return True
        if not FORMULAS.isdisjoint(marks) and not are_formulas(
            whole, text, marks, vocabulary.roles, tagged=self.tagged
        ):
            return True
        # Of brackets, the general reader takes only one whose other half is missing.
        if self.bracketed and ("(" in marks or ")" in marks) and not all(map(is_bracketed_whole, said)):
            return True
        return self.translated and "(" in marks and ends_conversation(whole)

    def find_suspects(self, said: Sequence[str], marks: str, vocabulary: TurnWords) -> Sequence[int] | None:
        """Return the numbers of the turns in which another speaker may be shown. `marks`: those of all turns,
        with `APART` between turns.

        None if a turn begins or ends unlike words, or holds something that a rule looks for.
        """
        if not all(said):
            return None
        turns = split_turns(said, marks, vocabulary)
        if self.framed and (share_words(turns.firsts) or not vocabulary.plain.have_all(turns.firsts)):
            return None
        if not turns.usual and not self._stand_as_words(said, turns.kinds):
            return None
        lined = self.begins or bool(turns.broken)
        if turns.broken or self.inline or (self.begins and self.ordered):
            turns.look_up_words(marks, vocabulary)
        if not turns.quiet and self._hold_told_words(turns, vocabulary, lined=lined):
            return None
        if lined and not self._are_plain(turns, vocabulary):
            return None
        if self.ordered:
            if turns.broken or "(" in turns.kinds or not is_speech_alone(said) or len({*said}) < len(said):
                return None
            # After a label, only a role's own name can be taken for a legend's.
            if not lined and any(map(fold(turns.whole).__contains__, vocabulary.names)):
                return None
        elif turns.broken and len(turns.broken) >= len(said) - 1 and share_lines(said):
            return None
        if self.translated and any(_LISTED.search(said[number]) for number in turns.coloned):
            return None
        return turns.hinted

    def _hold_told_words(self, turns: TurnParts, vocabulary: TurnWords, *, lined: bool) -> bool:
        """Return whether words of the turns may name a speaker to the layout, end the conversation, head a
        part or give a probability. `lined`: a turn may begin a line or have several."""
        if turns.named:
            if self.inline:
                return True
            # Words outside of turns with several lines may name one, except where the order alone does.
            near = turns.named if self.ordered else split_words(turns.broken)
            if lined and not vocabulary.labels.isdisjoint(near):
                return True
        headed = lined or self.ordered
        return (
            self._close(turns, vocabulary, headed=headed)
            or self._give(turns.said, lined=headed)
            or self._may_be_labelled(turns, vocabulary)
        )

    def _may_be_labelled(self, turns: TurnParts, vocabulary: TurnWords) -> bool:
        """Return whether a turn may begin with a role's label."""
        if not (turns.coloned or self.tagged):
            return False
        coloned = [turns.said[number] for number in turns.coloned]
        if self.own is not None and coloned:
            near = fold(APART.join(coloned))
            if any(map(near.__contains__, vocabulary.names)):
                return True  # a label, or a legend's
        if self.tagged and "(" in turns.kinds:  # a short text between tags may be a name with a note
            noted = split_words([text for text in turns.said if "(" in text])
            if not vocabulary.labels.isdisjoint(noted):
                return True
        begun = turns.said if self.tagged else coloned
        return not vocabulary.plain.have_all([text.partition(" ")[0] for text in begun])

    def _stand_as_words(self, said: Sequence[str], kinds: frozenset[str]) -> bool:
        """Return whether each turn begins and ends like words, and its last quotation is whole."""
        firsts, lasts = "".join(map(_FIRST, said)), "".join(map(_LAST, said))
        marked = [] if firsts.isalnum() else [text for text in said if not text[0].isalnum()]
        if marked and not all(map(is_word, {text[0] for text in marked} - self.firsts)):
            return False
        if not all(text[1:2].isalpha() or any(map(str.isalpha, text)) for text in marked):
            return False
        if "*" in kinds and any(map(is_half_emphasis, said)):
            return False
        unstopped = lasts.strip(STOPS)
        odd = {last for last in {*unstopped} - ENDS - self.lasts if not is_word(last)}
        if odd and not all(SMILEY.search(text) for text in said if text[-1] in odd):
            return False
        if not (firsts[0].isalnum() and lasts[0] in ENDS) and share_marks(firsts, lasts):
            return False
        if share_beginning(said, firsts, lasts) or (unstopped and share_ending(said, lasts)):
            return False
        if self.inline and not ENDS.issuperset(lasts):
            return False
        if _CLOSING.isdisjoint(kinds) or _CLOSING.isdisjoint("".join([text[-2:] for text in said])):
            return True
        return all(_CLOSING.isdisjoint(text[-2:]) or is_balanced(text) for text in said)

    def _close(self, turns: TurnParts, vocabulary: TurnWords, *, headed: bool) -> bool:
        """Return whether a turn may end the conversation, or hold a heading."""
        said, whole = turns.said, turns.whole
        lines_end = _BRACKETS.isdisjoint(turns.kinds) and not turns.broken and not self.translated
        if lines_end and vocabulary.unending.have_all(turns.lasts):
            return False  # an end marker or a heading ends a line
        letters = encode_letters(whole, marks=find_marks(whole))
        closed = any(map(letters.__contains__, _CLOSED))
        told = self.parted or self.own is not None  # or else only a marker with its marks counts
        if closed and may_mark(fold(whole)) and (told or any(map(find_marker, said))):
            return True
        return (
            headed
            and (closed or b"transcript" in letters)
            and may_head(fold(whole))
            and HEADING.search(whole) is not None
        )

    def _give(self, said: Sequence[str], *, lined: bool) -> bool:
        """Return whether a turn may give a probability: by itself, or to the layout."""
        if self.tagged:
            begun = fold(APART.join([text if len(text) < _SHORT else text[:_WORD] for text in said]))
            if is_likely(begun) or "probab" in begun:  # as in `markup`
                return True
        texts: Sequence[str] = ()
        if lined:
            texts = [text for text in find_numbered(said[:-1]) if mentions(text)]
        elif is_likely(fold(said[-1])):
            texts = said[-1:]
        return any(read_value_of_line(line) for text in texts for line in text.split("\n"))

    def _are_plain(self, turns: TurnParts, vocabulary: TurnWords) -> bool:
        """Return whether no line of the turns may be a label or a rule, or end the last turn."""
        lines, firsts, named = turns.lines, turns.firsts, turns.named
        clear = named is not None and (self.ordered or vocabulary.labels.isdisjoint(named))
        if "(" in turns.kinds and not clear:  # a label has its name at its beginning or in brackets
            noted = split_words([line.partition("(")[2] for line in lines if "(" in line])
            if not vocabulary.labels.isdisjoint(noted):
                return False
        if not clear and not vocabulary.plain.have_all(
            [start[1] for start in [line.split(" ", 2) for line in lines] if len(start) > 1]
        ):
            return False
        own = None if self.own is None or self.unowned.have_all(firsts) else self.own
        if own is not None and own.search("\n" + turns.whole) is not None:
            return False
        if not turns.usual and not self._begin_plainly(turns, vocabulary, clear=clear):
            return False
        if self.named and any(_PERSON.match(line) for line in lines if ":" in line or "：" in line):
            return False
        last = turns.said[-1]
        if "\n" in last and split_foot(last, len(turns.said))[1]:
            return False
        starting = [line.partition(" ")[0] for line in last.split("\n") if line]
        if turns.quiet and _ENDING.isdisjoint(turns.kinds) and vocabulary.speaking.have_all(starting):
            return True
        return not _may_end(last, turns.kinds, vocabulary) or not any(
            _ends(match, last) for match in LAST_STOP.finditer("\n" + last)
        )

    def _begin_plainly(self, turns: TurnParts, vocabulary: TurnWords, *, clear: bool) -> bool:
        """Return whether no line begins as a label, a heading or a key. `clear`: no word of the turns names a
        speaker."""
        others = vocabulary.opening.find_others(turns.firsts)
        if "*" in turns.kinds and "\n" not in turns.said[-1]:  # emphasis of words, but of no label
            others = {word for word in others if word[:1] != "*" or not vocabulary.opening[word[1:]]}
        if not others:
            return True
        starting = [line for line, first in zip(turns.lines, turns.firsts, strict=True) if first in others]
        if clear and all(map(_BULLETS.__getitem__, others)):
            items = [line.partition(" ")[2].partition(" ")[0] for line in starting]
            if vocabulary.opening.have_all(items):
                return True
        if any(line[0] in " \t" for line in starting) and (self.begins or find_margin(turns.said[:-1])):
            return False  # margins of blocks are taken away from some turns alone, or are shared
        starts = _split_starts(starting)
        return all(map(vocabulary.begin_plainly, starts)) and (
            clear or vocabulary.plain.have_all([start[1] for start in starts if len(start) > 1])
        )


def _may_end(said: str, marks: frozenset[str], vocabulary: TurnWords) -> bool:
    """Return whether a line of the last turn may end it: cheaper than `LAST_STOP`."""
    words = fold(said)
    if not _ENDING.isdisjoint(marks) or any(map(words.__contains__, _LIKELY)):
        return True
    starts = [line.lstrip(" \t").partition(" ") for line in said.split("\n")]
    return not vocabulary.go_on(
        [rest if _BULLETS[first] else first + blank + rest for first, blank, rest in starts]
    )


def _split_starts(lines: Sequence[str]) -> list[list[str]]:
    """Return the first two words of lines that are not blank, without the bullets of a list, and the rest."""
    starts = [line.split(" ", 2) for line in (line.lstrip(" \t") for line in lines) if line]
    return [start[1:] if _BULLETS[start[0]] else start for start in starts]


def _ends(match: re.Match[str], text: str) -> bool:
    """Return whether a line that may end the last turn does so."""
    line = text[match.start() :].partition("\n")[0]
    return match.lastgroup != "likely" or read_value_of_line(line) is not None
