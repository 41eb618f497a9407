"""The words of turns that may belong to a layout: each word is examined once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgen.core.text import compile_later

_LONGEST_WORD = 30  # characters of a word that is remembered
_MOST_WORDS = 20_000
TOKEN = compile_later(r"[^\W\d_]+")
# The ASCII letters of a text in lower case, all else as blanks; marks that English texts hold besides ASCII.
_LETTERS = bytes(ord(c.lower()) if c.isalpha() else 32 for c in map(chr, range(128))) + bytes(128)
_PUNCTUATION = "’—“”…–‘"
_SPOKEN = compile_later(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# Words at the beginning of a line that may head or end a turn, or be the key of a text.
_OPENERS = frozenset({
    "turn", "exchange", "round", "line", "role", "speaker", "name", "who", "from", "author", "character",
    "text", "content",
    "message", "step", "part", "phase", "scene", "act", "stage", "section", "segment", "episode", "utterance", "says", "said", "value", "speech", "t", "s",
})  # fmt: skip


def split_letters(text: str) -> list[str]:
    """Return the runs of letters in a text, in lower case."""
    plain = text
    for mark in () if text.isascii() else _PUNCTUATION:
        plain = plain.replace(mark, " ")
    if plain.isascii():  # most
        return plain.encode().translate(_LETTERS).decode().split()
    return TOKEN.findall(text.lower())


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
