"""The parts of a reply's turns which the rules look at: lines, first and last words, marks, names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgen.reading.learned.turn_shapes import count_many
from edgen.reading.other_speaker import HINTS
from edgen.reading.text.characters import TurnWords, encode_letters, find_marks

APART = "\x1f"  # between turns that are joined


class TurnParts(msgspec.Struct, gc=False):
    """The turns of a reply and their parts."""

    said: Sequence[str]  # the turns
    whole: str  # the same, one after another
    kinds: frozenset[str]  # their marks
    held: Sequence[str]  # marks of each turn
    hinted: Sequence[int]  # numbers of the turns with a mark that may show another speaker
    coloned: Sequence[int]  # of those with a colon
    broken: Sequence[str]  # turns of several lines
    lines: Sequence[str]  # all lines that are not blank
    firsts: Sequence[str]  # first words of these
    lasts: Sequence[str]  # last words of the turns
    usual: bool  # each line begins as a sentence does and each turn ends so, with few first words in common
    named: frozenset[bytes] | None = None
    """Words of the turns that may name a speaker, in letters of UTF-8; None before these are looked up."""
    quiet: bool = False  # all words were looked up: none of them is one that a rule looks for

    def look_up_words(self, marks: str, vocabulary: TurnWords) -> None:
        """Look up all words of the turns. `marks`: those of the turns."""
        words = encode_letters(self.whole, marks=marks).split()
        self.quiet = vocabulary.quiet.have_all(words)  # most
        self.named = frozenset() if self.quiet else vocabulary.speakers.intersection(words)


def split_turns(said: Sequence[str], marks: str, vocabulary: TurnWords) -> TurnParts:
    """Return the parts of turns that are not empty. `marks`: their marks, with `APART` between turns."""
    kinds, held = frozenset(marks), marks.split(APART)
    hints = HINTS & kinds
    hinted = [number for number, some in enumerate(held) if not hints.isdisjoint(some)] if hints else []
    coloned = [number for number in hinted if ":" in held[number] or "：" in held[number]]
    whole = "\n".join(said)
    broken: Sequence[str] = ()
    lines = said
    if "\n" in kinds:
        broken = [text for text in said if "\n" in text]
        lines = [line for line in whole.split("\n") if line]
    firsts = [line.partition(" ")[0] for line in lines]
    lasts = [text.rpartition(" ")[2] for text in said]
    usual = (
        vocabulary.beginning.have_all(firsts)
        and vocabulary.stopping.have_all(lasts)
        and len(firsts) - len({*firsts}) < count_many(len(said)) - 1
        and not any(text[0] == "\n" for text in broken)
    )
    return TurnParts(said, whole, kinds, held, hinted, coloned, broken, lines, firsts, lasts, usual)


def split_words(texts: Sequence[str]) -> list[bytes]:
    """Return the words of some texts, in letters of UTF-8."""
    whole = " ".join(texts)
    return encode_letters(whole, marks=find_marks(whole)).split()
