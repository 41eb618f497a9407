"""The end marker in a turn's text: its position, and the text before it. Linear in the length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from edgen.core.text import compile_later
from edgen.reading.repairs import Repair
from edgen.reading.text.characters import fold

_WORDS = (
    r"(?:the\s+)?end\s+of\s+(?:(?:the|this|our)\s+)?(?:conversation|dialogue|dialog|chat|discussion)"
    r"|(?:the\s+)?conversation\s+(?:ends|ended|over|is\s+over)|end\s+conversation"
)
_BY = r"\s*(?:by\s+(?:the\s+)?(?:teacher|student))?\s*[.!]?\s*"
_SQUARE = r"\[\s*end[\s_-]+of[\s_-]+(?:the[\s_-]+)?conversation\s*[.!]?\s*\]"
SQUARE = compile_later(_SQUARE, re.IGNORECASE)
# In brackets, these words are the marker at any place.
_BRACKETED = compile_later(
    rf"(?i)(?P<wrap>[*_`]{{0,3}})(?:(?P<square>{_SQUARE})"
    rf"|\\\[\s*(?:{_WORDS}){_BY}\\\]|[\[(<{{]\s*(?:{_WORDS}){_BY}[\])>}}])(?P<close>[*_`]{{0,3}})"
)
_CANDIDATE = compile_later(r"(?i)[\[(<{]\s*(?:the\s+)?(?:end|conversation)")
# Without brackets, they are the marker only as a line or as the last sentence of a turn.
_LINE = compile_later(rf"(?i)\n[^\w\n]{{0,12}}(?:{_WORDS})[^\w\n]{{0,12}}(?=\n|\Z)")
_SENTENCE = compile_later(rf"(?i)(?<=[.!?…\"”'’)])[\s*_\-–—=]{{1,12}}(?:{_WORDS})\W{{0,12}}\Z")

# Shorter words, and `<end_of_conversation>`, are the marker only at the end of a single turn.
_SHORT = compile_later(
    r"(?i)(?<!\w)[*_`]{0,3}(?:[\[<]\s?end(?:[\s_-]of[\s_-](?:(?:the|this)[\s_-])?(?:conversation|dialogue"
    r"|dialog|chat|discussion))?\s?[.!]?\s?[\]>][*_`]{0,3}\s{0,3}){1,9}(?=[\s\"”'’.`*_]{0,9}\Z)"
)


_SHORTEST = 11  # characters of a marker: `end of chat`


class MarkedText(msgspec.Struct, frozen=True, gc=False):
    """A text split at its first marker.

    `said` is the text before it, `end` the place where the marker ends, `standard` whether it has its
    standard form.
    """

    said: str
    end: int
    standard: bool

    @property
    def repairs(self) -> list[str]:
        """The repairs that reading it makes."""
        return [] if self.standard else [Repair.MARKER_FORM]


def may_mark(words: str) -> bool:
    """Return whether a folded text can hold an end marker. Cheap, since it runs for every turn."""
    if "conversation" in words:
        return "end" in words or "over" in words
    return "end" in words and ("dialog" in words or "chat" in words or "discussion" in words)


def hold_no_marker(texts: Sequence[str]) -> bool:
    """Return whether none of some texts, which are stripped, holds an end marker."""
    whole = "\n".join(texts)
    words = whole.lower() if whole.isascii() else fold(whole)
    return not may_mark(words) or all(find_marker(text) is None for text in texts)


@lru_cache(maxsize=4)  # several rules look at the last turn
def find_marker(text: str) -> MarkedText | None:
    """Return the text split at its first end marker; None without a marker."""
    if len(text) < _SHORTEST or not may_mark(fold(text)):
        return None
    candidate = _CANDIDATE.search(text)
    match = None if candidate is None else _BRACKETED.search(text, max(0, candidate.start() - 4))
    if match is not None:
        start, wrap = match.start(), match["wrap"]
        if wrap and not match["close"] and text[start - 1 : start].strip():
            start, wrap = match.end("wrap"), ""  # emphasis of the text, as in `*so*[end of conversation]`
        return MarkedText(text[:start], match.end(), match["square"] is not None and not wrap)
    bare = _LINE.search("\n" + text)
    if bare is not None:
        return MarkedText(text[: bare.start()], bare.end() - 1, False)
    bare = _SENTENCE.search(text, max(0, len(text) - 80))
    return None if bare is None else MarkedText(text[: bare.start()], bare.end(), False)


def find_short_marker(text: str) -> MarkedText | None:
    """Return a turn split at `[END]` or the like at its end; within a whole conversation, these words do not
    count as a marker."""
    if "[" not in text and "<" not in text:
        return None
    match = _SHORT.search(text, max(0, len(text) - 200))
    return None if match is None else MarkedText(text[: match.start()], match.end(), False)
