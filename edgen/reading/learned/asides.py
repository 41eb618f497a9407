"""Words around a conversation that change from reply to reply and say nothing about who speaks.

They are asides (`Sure, here is one about light:`), remarks after the turns (`"reason": "She asked."`) and
values above them (`topic: light`). In the texts of a layout, `WORDS` stands for them.
"""

from __future__ import annotations

import re

from edgen.core.text import compile_later
from edgen.reading.text.characters import TurnWords, find_marks, fold
from edgen.reading.text.marker import may_mark
from edgen.reading.text.surroundings import HEADING, may_head, mentions

WORDS = "\x18"  # stands for words that change
_MOST = 600  # characters
_SAME = 1e-9  # difference of equal numbers
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
    if not all(mark in _MARKS or mark.isalpha() for mark in marks) or not any(map(str.isalpha, text)):
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


# Where words may begin that change, in a text after the turns.
_OPENED = compile_later(r"\n\n|[\w\"*_]: ?(?:\*\*)? ?[\"“]?|>")
# Where they end before the line or the key of the probability.
_BEFORE_KEY = compile_later(r"(?:[\"”]?,?\n|[\"”], ?|</\w+>)(?=[^\n]*\w)")
_CLOSED = compile_later(r"[^\w.!?…。！？]*(?:</\w+>\s*)*\Z")
# A value under a key, in words that begin with a letter or in digits; one of the same kind.
_LETTERS = r"([^\W\d_](?:[\w ,.;'’()&!?/%+-]|[\u0300-\u036f\u0590-\u0dff]){0,79})"
_VALUE = compile_later(
    rf"""(?:(?<=["'*]|[^\W\d])(?:\*{{0,2}}: ?\*{{0,2}} ?|=)["'“]?|>|<!-- )(?:{_LETTERS}|[0-9]{{1,4}})"""
    r"""(?=["'”]?(?:,? ?\n|, |/?>| \w+=)|</| -->)"""
)
_NUMBER = "(0|[1-9][0-9]{0,3})"
_KEY = compile_later(r"[^\n,{>]*\Z")


def blank_remark(text: str, vocabulary: TurnWords, *, keyed: bool = False) -> str:
    """Return a text after the turns with `WORDS` for words in it that say nothing about them.

    `keyed`: the text ends with a line or a key of something else, the probability's.
    """
    if keyed:
        end = max((closed.start() for closed in _BEFORE_KEY.finditer(text)), default=0)
    else:
        end = len(text) - len(_CLOSED.search(text)[0])  # type: ignore[index]
    for opened in _OPENED.finditer(text, 0, end):
        # Lines under the last turn and before the probability are speech, unless a rule finds their words.
        if not (keyed and opened[0][0] == "\n") and is_aside(text[opened.end() : end], vocabulary):
            return text[: opened.end()] + WORDS + text[end:]
    return text


_SIMPLE_NUMBER = compile_later(r"[0-9]{1,3}(?:\.[0-9]{1,6})?")
_ATTRIBUTE = compile_later(rf"""(?<=[="']){_SIMPLE_NUMBER.pattern}(?=["' />])""")  # its value


def blank_attribute(text: str, probability: float | None) -> str:
    """Return a text before the probability with `WORDS` for an attribute that repeats it."""
    found = [number for number in _ATTRIBUTE.finditer(text) if repeats(number[0], probability)]
    return text[: found[0].start()] + WORDS + text[found[0].end() :] if len(found) == 1 else text


def repeats(words: str, probability: float | None) -> bool:
    """Return whether words are a probability as a number or in percent."""
    if probability is None or _SIMPLE_NUMBER.fullmatch(words) is None:
        return False
    return any(abs(float(words) - value) < _SAME for value in (probability, 100 * probability))


def split_at(text: str, around: str, *, ends: bool = False) -> tuple[str, str | None, str] | None:
    """Return what stands before and after a text of a layout, and between these the words in place of its
    blank (None without one); None where it does not occur. `ends`: the whole ends with it."""
    first, blank, last = around.partition(WORDS)
    if not blank and ends:
        return (text[: len(text) - len(first)], None, "") if text.endswith(first) else None
    before, found, rest = text.partition(first)
    if not found or not blank:
        return (before, None, rest) if found else None
    if ends:
        return (before, rest[: len(rest) - len(last)], "") if rest.endswith(last) else None
    words, found, rest = rest.partition(last)
    return (before, words, rest) if found else None


def blank_values(
    head: str, vocabulary: TurnWords, *, numbered: bool = False
) -> tuple[str, re.Pattern[str]] | None:
    """Return the text before the first turn with `WORDS` for values in it, and a pattern of such texts with
    the values as groups; None if it has none. `numbered`: zeros in it stand for any digits."""

    def escape(piece: str) -> str:
        return re.escape(piece).replace("0", "[0-9]") if numbered else re.escape(piece)

    parts, patterns, at = [], [], 0
    for value in _VALUE.finditer(head):
        words = value[1] or value[0].lstrip("<!->:=*\"'“ ")
        start = value.end() - len(words)
        key = _KEY.search(head, 0, value.start())
        if vocabulary.notes[value[0]] and key is not None and vocabulary.plain[key[0]]:
            parts += [head[at:start], WORDS]
            patterns += [escape(head[at:start]), _LETTERS if value[1] else _NUMBER]
            at = value.end()
    if not parts:
        return None
    return "".join([*parts, head[at:]]), re.compile("".join([*patterns, escape(head[at:])]))
