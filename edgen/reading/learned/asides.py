"""Words before and after a conversation that say nothing about it: `Sure, here is one about light:`."""

from __future__ import annotations

from edgen.core.text import compile_later
from edgen.reading.text.characters import TurnWords, find_marks, fold
from edgen.reading.text.marker import may_mark
from edgen.reading.text.surroundings import HEADING, has_words, may_head, mentions

_MOST = 600  # characters
_MARKS = frozenset(":\n’—–…*#()")
_EDGES = " *#_()"
# A sentence about a speaker, which no label begins as.
_PROSE = compile_later(r"(?:(?:The|the|An?|an?) )?[^\W\d_]+ [a-z]{2,}[^:]*\Z")
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
    return all(
        (vocabulary.opening[first] and vocabulary.plain[second]) or _PROSE.match(line) is not None
        for line in (line.strip(_EDGES) for line in text.split("\n"))
        if line
        for first, second in [[*line.split(" ", 2), ""][:2]]
    )
