"""The words of turns that may belong to a layout: each word is examined once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgen.core.text import compile_later

_LONGEST_WORD = 30  # characters of a word that is remembered
_MOST_WORDS = 20_000
TOKEN = compile_later(r"[^\W\d_]+")
_SPOKEN = compile_later(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# Words at the beginning of a line that may head or end a turn, or be the key of a text.
_OPENERS = frozenset({
    "turn", "exchange", "round", "line", "role", "speaker", "name", "who", "from", "author", "character",
    "text", "content",
    "message", "step", "part", "utterance", "says", "said", "value", "speech", "t", "s",
})  # fmt: skip


class _Memory(dict[str, bool]):
    """A memory of what was decided about words, each examined once."""

    def __init__(self, decide: Callable[[str], bool]) -> None:
        super().__init__()
        self._decide = decide

    def __missing__(self, word: str) -> bool:
        found = self._decide(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = found
        return found


class TurnWords:
    """The words of turns that may belong to a layout.

    labels: words that may name a speaker.
    plain: whether a word is no such word.
    opening: whether a line that begins with a word is no label, heading or key either.
    """

    def __init__(self, labels: frozenset[str]) -> None:
        self.labels = labels
        self.plain = _Memory(lambda word: labels.isdisjoint(TOKEN.findall(word.lower())))
        self.opening = _Memory(
            lambda word: (
                word[:1].isalpha() and self.plain[word] and _OPENERS.isdisjoint(_SPOKEN.findall(word.lower()))
            )
        )
        self._seen: set[str] = set()  # plain words, for a quick look

    def are_plain(self, words: Sequence[str]) -> bool:
        """Return whether none of some words may name a speaker."""
        if self._seen.issuperset(words):
            return True
        if not all(map(self.plain.__getitem__, words)):
            return False
        self._seen = {word for word in self._seen.union(words) if len(word) <= _LONGEST_WORD}
        if len(self._seen) > _MOST_WORDS:
            self._seen = set()
        return True
