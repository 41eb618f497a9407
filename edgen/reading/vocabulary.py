"""The words of turns that may belong to a layout: each word is examined once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from edgen.core.text import compile_later
from edgen.reading.text.characters import holds_foreign_letters, list_marks

_LONGEST_WORD = 30  # characters of a word that is remembered
_MOST_WORDS = 20_000
TOKEN = compile_later(r"[^\W\d_]+")
# ASCII letters in lower case, or as they are, and blanks for other characters of ASCII.
_LOWERED, _LETTERS = (
    bytes(ord(change(c)) if c.isalpha() else 32 for c in map(chr, range(128))) + bytes(range(128, 256))
    for change in (str.lower, str)
)
_SPOKEN = compile_later(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# Words at the beginning of a line that may head or end a turn, or be the key of a text.
_OPENERS = frozenset({
    "turn", "exchange", "round", "line", "role", "speaker", "name", "who", "from", "author", "character",
    "text", "content",
    "message", "step", "part", "phase", "scene", "act", "stage", "section", "segment", "episode", "utterance", "says", "said", "value", "speech", "t", "s",
})  # fmt: skip


@lru_cache(maxsize=4)  # several rules ask about one reply
def find_letters(text: str, *, exact: bool = False) -> frozenset[str]:
    """Return the runs of letters in a text, in lower case if not `exact`."""
    return frozenset(split_letters(text, exact=exact))


def split_letters(text: str, *, exact: bool = False) -> list[str]:
    """Return the same in their order."""
    if text.isascii():
        encoded = text.encode()
    elif not holds_foreign_letters(text):
        encoded = text.encode("ascii", "replace")
    else:
        for mark in {*list_marks(text)}:
            if not mark.isascii() and (not mark.isalnum() or mark.isdecimal()):
                text = text.replace(mark, " ")
        text = text if exact else text.lower().replace("\u0307", " ")  # of İ
        encoded = text.encode("utf-8", "surrogatepass")
    return encoded.translate(_LETTERS if exact else _LOWERED).decode("utf-8", "surrogatepass").split()


class WordMemory(dict[str, bool]):
    """A memory of what was decided about words, each examined once."""

    def __init__(self, decide: Callable[[str], bool]) -> None:
        super().__init__()
        self._decide = decide
        self._have: set[str] = set()  # words of which it is true, for a quick look

    def __missing__(self, word: str) -> bool:
        found = self._decide(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
                self._have = set()
            self[word] = found
            if found:
                self._have.add(word)
        return found

    def have_all(self, words: Sequence[str]) -> bool:
        """Return whether it is true of all of some words."""
        return self._have.issuperset(words) or all(map(self.__getitem__, words))


class TurnWords:
    """The words of turns that may belong to a layout."""

    def __init__(self, labels: frozenset[str], names: Sequence[str] = ()) -> None:
        self.names = names  # of the roles, in lower case
        self._labels = labels
        self.plain = WordMemory(lambda word: labels.isdisjoint(TOKEN.findall(word.lower())))
        """Whether a word names no speaker. `labels`: words that may do so."""
        self.opening = WordMemory(
            lambda word: (
                word[:1].isalpha() and self.plain[word] and _OPENERS.isdisjoint(_SPOKEN.findall(word.lower()))
            )
        )
        """Whether a line that begins with a word is no label, heading or key."""

    def name_nobody(self, text: str) -> bool:
        """Return whether no word of a text may name a speaker."""
        return self._labels.isdisjoint(split_letters(text))
