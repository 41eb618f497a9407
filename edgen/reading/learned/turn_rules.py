"""Rules about the turns of a layout: how they are written, and which texts are plain enough.

`TurnRules.decode` takes escapes away, and puts line breaks where the layout has something else for them.
`TurnRules.find_suspects` lets turns pass only if no rule of the general reader finds anything in them: each
begins and ends like words, and none can name a speaker, end the conversation, give a probability or head a
part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter, methodcaller

import msgspec

from edgen.core.text import compile_later
from edgen.reading.learned.notes import drop_directions
from edgen.reading.learned.texts import DIGITS
from edgen.reading.learned.turn_codes import ENTITIES, ESCAPES, SINGLES, decode_turn
from edgen.reading.learned.turn_codes import HINTS as ESCAPE_HINTS
from edgen.reading.learned.turn_shapes import (
    ENDS,
    STOPS,
    is_balanced,
    is_speech_alone,
    is_word,
    share_lines,
    share_marks,
    stand_in_quotes,
)
from edgen.reading.lines.shared_marks import find_margin
from edgen.reading.other_speaker import HINTS
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
_MANY = 4  # turns with marks that show another speaker next to a name: one search for names is cheaper
_FEW_BREAKS = 3  # line breaks of HTML that turns may hold
_MARGINS = 3  # turns that have the margin of the layout

# The end of a string in Python, or the beginning of another.
_STRING_END = compile_later(r"'(?:\s?[,:)\]}]|(?<=[,:(\[{]')|(?<=[,:(\[{]\s'))")
_CLOSING = frozenset('"“”„＂')
_BULLETS = WordMemory(lambda word: re.fullmatch(r"[-•]|[0-9]{1,2}[.)]", word) is not None)
# Marks with which a line that ends the last turn begins, or which stand before a probability.
_ENDING = frozenset("=≈~_#*$")
_LIKELY = ("likel", "prob", "chance")
# Those of `TELLING` that end a conversation, and that give a probability.
_CLOSED = tuple(map(str.encode, TELLING[:4]))
_GIVEN = tuple(map(str.encode, TELLING[5:]))
_FIRST, _LAST = itemgetter(0), itemgetter(-1)  # character
_BLANK_END = methodcaller("endswith", " ")
_COLONS = frozenset(":：")
_LETTER_ENDS = frozenset("]>)–—")
# A letter at the beginning of a line that may name a speaker.
_LETTERED = compile_later(r"\n[^\w\n]{0,8}[A-Z]\d?[^\S\n]?[\])>–—-]")
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
    paired: (
        bool  # quotation marks in turns come in pairs, as the layout is neither JSON nor the published one
    )
    single: bool  # turns stand in single quotation marks
    tagged: bool  # the layout has tags
    translated: bool  # labels are in another language
    named: bool  # labels hold more than a role, which may be a person's name
    ordered: bool  # speakers follow from the turns' order alone
    inline: bool  # turns stand next to each other on a line, each after a label
    parted: bool  # words that belong to no turn stand above labels
    own: re.Pattern[str] | None
    """A line that begins like one of the layout, with a word that names no speaker elsewhere."""
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
            if not self._may_join(said, whole):
                return None
            if joined and self.joint != "\n":
                said[:] = [turn.replace(self.joint, "\n") for turn in said]
                whole = " ".join(said)
        bare = drop_directions(whole, said, vocabulary) if self.directed and "[" in whole else whole
        escaped = self.code and ESCAPE_HINTS[self.code] in whole
        marks = find_marks(ESCAPES[self.code].sub("", bare) if escaped else bare)
        if self.code == SINGLES and "'" in whole.replace("''", ""):
            return None
        if self.single and self.code != SINGLES and "''" in whole:
            return None
        if escaped and self.paired and any(text.count('"') % 2 for text in said if '"' in text):
            return None
        unfit = self.unfit
        if self.mixed:
            if not stand_in_quotes(said, text):
                return None
            if "'" in whole and _STRING_END.search(whole) is not None:
                return None
            unfit = unfit - {'"'}
        if not unfit.isdisjoint(marks):
            return None
        if escaped:
            hint = ESCAPE_HINTS[self.code]
            said[:] = [decode_turn(turn, self.code) if hint in turn else turn for turn in said]
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

    def _may_join(self, said: Sequence[str], whole: str) -> bool:
        """Return whether lines of turns are joined by `joint` alone, and none of them has a margin that only
        some turns lose."""
        if self.several and self.joint == "\n":
            return True
        if whole.count("\n") != self.joint.count("\n") * whole.count(self.joint):
            return False
        further = whole.split(self.joint)[1:]
        if "<" in self.joint and 0 < len(further) <= _FEW_BREAKS:
            return False  # few breaks of HTML stay as they are
        begins = "".join([line[:1] for line in further])
        if not self.several and (" " in begins or "\t" in begins):
            return False
        margin = self.joint[1:]
        if not margin.isspace() or (
            begins.isalpha() and sum(self.joint in text for text in said[:-1]) >= _MARGINS
        ):
            return True
        return not further or find_margin(said[:-1]) == margin

    def find_suspects(self, said: Sequence[str], marks: str, vocabulary: TurnWords) -> list[int] | None:
        """Return the numbers of the turns in which another speaker may be shown. `marks`: those of all turns.

        None if a turn begins or ends unlike words, or holds something that a rule looks for.
        """
        kinds = frozenset(marks)
        if not self._stand_as_words(said, kinds):
            return None
        hints, colons = HINTS & kinds, _COLONS & kinds
        whole = "\n".join(said)
        broken = [text for text in said if "\n" in text] if "\n" in kinds else []
        lined = self.begins or bool(broken)
        marked = _find_any(hints - colons, said) if not (broken or self.ordered) else set()
        many = len(marked) > _MANY and 2 * len(marks) < len(whole)  # in words of ASCII
        searched = lined or self.inline or (many and not self.ordered)
        letters = encode_letters(whole, marks=marks)
        words = letters.split() if searched else ()
        quiet = bool(searched) and vocabulary.quiet.have_all(words)  # most
        named = vocabulary.speakers.intersection(() if quiet else words) if searched else None
        # Words outside of the turns with several lines may name a speaker, except where the order alone does.
        if self.inline and named:
            return None
        if lined and named:
            near = named if self.ordered else encode_letters(" ".join(broken), marks=marks).split()
            if not vocabulary.labels.isdisjoint(near):
                return None
        if not quiet and self._tells(said, whole, letters, lined=lined or self.ordered):
            return None
        coloned = _find_any(colons, said) if colons else set()
        if self._may_be_labelled(said, whole, coloned, vocabulary, lined=lined, quiet=quiet):
            return None
        if self.ordered:
            if broken or "(" in kinds or not is_speech_alone(said) or len({*said}) < len(said):
                return None
            # After a label, only a role's own name can be taken for a legend's.
            if not lined and any(map(fold(whole).__contains__, vocabulary.names)):
                return None
        elif broken and len(broken) >= len(said) - 1 and share_lines(said):
            return None
        if lined and not self._are_plain(said, whole, kinds, named, vocabulary, quiet=quiet):
            return None
        if self.translated and any(_LISTED.search(said[number]) for number in coloned):
            return None
        if ":" in colons and vocabulary.unlabelling.have_all(
            [" ".join(text.rsplit(" ", 2)[-2:]) for text in whole.split(":")[:-1]]
        ):
            coloned = _find_any(colons - {":"}, said)
        if named is not None and not (broken and _begin_with_letters(whole, kinds)):
            # Other marks than a colon show a speaker by a name alone.
            suspects = _find_any([name.decode() for name in named], [*map(str.lower, said)] if named else [])
        else:
            suspects = {*range(len(said))}
        if suspects:
            suspects &= marked or _find_any(hints - _COLONS, said)
        return sorted(suspects | coloned)

    def _may_be_labelled(
        self,
        said: Sequence[str],
        whole: str,
        coloned: set[int],
        vocabulary: TurnWords,
        *,
        lined: bool,
        quiet: bool,
    ) -> bool:
        """Return whether a turn may hold a label of this layout, or begin with a role's. `coloned`: the
        numbers of the turns with colons; `quiet`: none of their words names a speaker."""
        if lined and self.own is not None and self.own.search(f"\n{whole}") is not None:
            return True
        if quiet or not (self.tagged or coloned):
            return False
        if self.own is not None and coloned and any(map(fold(whole).__contains__, vocabulary.names)):
            return True  # a label, or a legend's
        begun = said if self.tagged else [said[number] for number in coloned]
        return not vocabulary.plain.have_all([text.partition(" ")[0] for text in begun])

    def _stand_as_words(self, said: Sequence[str], kinds: frozenset[str]) -> bool:
        """Return whether each turn begins and ends like words, and its last quotation is whole."""
        if not all(said):
            return False
        firsts, lasts = "".join(map(_FIRST, said)), "".join(map(_LAST, said))
        if not firsts.isalnum() and not (
            all(map(is_word, {*firsts} - self.firsts))
            and all(text[1:2].isalnum() or any(map(str.isalnum, text)) for text in said)
        ):
            return False
        if not all(map(is_word, {*lasts.strip(STOPS)} - ENDS - self.lasts)):
            return False
        if not (firsts[0].isalnum() and lasts[0] in ENDS) and share_marks(firsts, lasts):
            return False
        if self.inline and not ENDS.issuperset(lasts):
            return False
        if _CLOSING.isdisjoint(kinds) or _CLOSING.isdisjoint("".join([text[-2:-1] for text in said])):
            return True
        return all(text[-2:-1] not in _CLOSING or is_balanced(text) for text in said)

    def _tells(self, said: Sequence[str], whole: str, letters: bytes, *, lined: bool) -> bool:
        """Return whether a turn may end the conversation, give the probability, or hold a heading. `letters`:
        the turns' (`encode_letters`)."""
        closed = any(map(letters.__contains__, _CLOSED))
        if closed and self.translated:
            return True
        told = self.parted or self.own is not None  # or else only a marker with its marks counts
        if closed and may_mark(fold(whole)) and (told or any(map(find_marker, said))):
            return True
        if lined or self.tagged:
            given = any(map(letters.__contains__, _GIVEN)) and is_likely(fold(whole))
        else:
            given = is_likely(fold(said[-1]))
        if given and self._gives(said, lined=lined):
            return True
        headed = lined and (closed or b"transcript" in letters)
        return headed and may_head(fold(whole)) and HEADING.search(whole) is not None

    def _gives(self, said: Sequence[str], *, lined: bool) -> bool:
        """Return whether a turn may give a probability: by itself, or to the layout."""
        if self.tagged and any(
            is_likely(fold(text if len(text) < _SHORT else text[:_WORD])) for text in said
        ):
            return True
        texts = [text for text in said[:-1] if DIGITS.search(text) and mentions(text)] if lined else said[-1:]
        return any(read_value_of_line(line) for text in texts for line in text.split("\n"))

    def _are_plain(
        self,
        said: Sequence[str],
        whole: str,
        kinds: frozenset[str],
        named: frozenset[bytes] | None,
        vocabulary: TurnWords,
        *,
        quiet: bool,
    ) -> bool:
        """Return whether no line of the turns may be a label or a rule, or end the last turn. `named`: words
        of theirs that may name somebody; None if they are unknown. `quiet`: as of each of their words."""
        if "(" in kinds:
            return False
        lines = whole.split("\n") if "\n" in kinds else said
        clear = named is not None and (self.ordered or vocabulary.labels.isdisjoint(named))
        firsts = [line.partition(" ")[0] for line in lines if line] if clear else ()
        starts: Sequence[Sequence[str]] = ()
        if not firsts or not vocabulary.opening.have_all(firsts):
            starts = [line.partition(" ") if clear else line.split(" ", 2) for line in lines if line]
        others = vocabulary.opening.find_others([start[0] for start in starts])
        if others and clear and all(map(_BULLETS.__getitem__, others)):
            items = [start[2].partition(" ")[0] for start in starts if start[0] in others]
            others = vocabulary.opening.find_others(items) and others
        if others:
            starting = [line for line in lines if line and line.partition(" ")[0] in others]
            if any(line[0] in " \t" for line in starting) and (self.begins or find_margin(said[:-1])):
                return False  # margins of blocks are taken away from some turns alone, or are shared
            starts = _split_starts(starting if clear else lines)
            if not all(map(vocabulary.begin_plainly, starts)):
                return False
        if not (clear or vocabulary.plain.have_all([start[1] for start in starts if len(start) > 1])):
            return False
        colons = _COLONS & kinds
        if self.named and colons and any(_PERSON.match(lines[number]) for number in _find_any(colons, lines)):
            return False
        last = said[-1]
        starting = [line.partition(" ")[0] for line in last.split("\n") if line]
        if quiet and _ENDING.isdisjoint(kinds) and vocabulary.speaking.have_all(starting):
            return True
        return not _may_end(last, kinds, vocabulary) or not any(
            _ends(match, last) for match in LAST_STOP.finditer("\n" + last)
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


def _find_any(pieces: Iterable[str], texts: Sequence[str]) -> set[int]:
    """Return the numbers of the texts that hold one of some pieces."""
    return {number for piece in pieces for number, text in enumerate(texts) if piece in text}


def _begin_with_letters(whole: str, marks: frozenset[str]) -> bool:
    """Return whether a line may begin with a letter that names a speaker: `S - But why?`"""
    return (
        not _LETTER_ENDS.isdisjoint(marks) or any(map(_BLANK_END, whole.split("-")[:-1]))
    ) and _LETTERED.search(whole) is not None


def _ends(match: re.Match[str], text: str) -> bool:
    """Return whether a line that may end the last turn does so."""
    line = text[match.start() :].partition("\n")[0]
    return match.lastgroup != "likely" or read_value_of_line(line) is not None
