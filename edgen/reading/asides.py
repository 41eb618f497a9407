"""Words before and after a conversation that say nothing about it: `Sure, here is one about light:`."""

from __future__ import annotations

from edgen.core.text import compile_later
from edgen.reading.text.characters import TurnWords, find_marks, fold
from edgen.reading.text.marker import may_mark
from edgen.reading.text.surroundings import HEADING, has_words, may_head, mentions

_MOST = 600  # characters
_MARKS = frozenset(":\n’—–…")
_DIGIT = compile_later("[0-9]")


def is_aside(text: str, vocabulary: TurnWords) -> bool:
    """Return whether a text around the turns holds words alone that no rule of the general reader looks for.

    No line of it is a label, a heading or an end marker, and it gives no probability.
    """
    if len(text) > _MOST or _DIGIT.search(text) is not None:
        return False
    marks = {*find_marks(text)}
    if not all(mark in _MARKS or mark.isalpha() for mark in marks) or not has_words(text):
        return False
    words = fold(text)
    if mentions(text) or may_mark(words) or (may_head(words) and HEADING.search(text) is not None):
        return False
    starts = [line.split(None, 2) for line in text.split("\n") if line and not line.isspace()]
    return vocabulary.opening.have_all([start[0] for start in starts]) and vocabulary.plain.have_all(
        [start[1] for start in starts if len(start) > 1]
    )
