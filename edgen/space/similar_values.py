"""Near-duplicates among a space's values, found by their text.

Two values are near-duplicates if their plain forms have the same words in any order, or share at least 0.8 of
their words, or at least 0.65 of their three-letter pieces (both as the Jaccard index: intersection over
union; Jaccard 1912, and Broder 1997 for pieces of text). The first rule finds "The Water Cycle" and "water
cycles, the", the last "Photosynthesis" and "Photosyntesis".

The plain form has no case, accents, punctuation, small words ("the", "of") and plural endings. Words that
change a value's meaning, numbers and negations, must be equal: World War 1 is not World War 2. Synonyms are
not found; that takes a human reader.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal

from edgen.core.text import compile_later
from edgen.space.entries import normalize_likeness

SAME_WORDS = 0.8  # minimum share of common words of near-duplicates
SAME_PIECES = 0.65  # minimum share of common three-letter pieces
_LEAST_WORDS = 3  # minimum number of common words: of two words, one differing word is half

_WORD = compile_later(r"[^\W_]+(?:['’][^\W_]+)?")
_SMALL_WORDS = "a an the of in on at to for and or by with from into its his her their is are be as"
_SMALL = frozenset(f"{_SMALL_WORDS} introduction basics".split())
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_NUMBERS = "zero one two three four five six seven eight nine ten i ii iii iv v vi vii viii ix x"
_TELLING = frozenset(f"{_ORDINALS} {_NUMBERS} no not never without non un anti before after".split())

Kind = Literal["identical", "near_duplicate"]


class PlainForm:
    """A value in its plain form: its words, those among them that change the meaning, and its pieces."""

    def __init__(self, value: str) -> None:
        folded = unicodedata.normalize("NFKD", normalize_likeness(value).casefold())
        kept = "".join(char for char in folded if unicodedata.category(char) != "Mn")
        words = [_strip_ending(word) for word in _WORD.findall(kept)]
        words = [word for word in words if word not in _SMALL] or words
        self.words = frozenset(words)
        self.telling = frozenset(
            w for w in words if w in _TELLING or w.endswith("n't") or any(map(str.isdigit, w))
        )
        text = f" {' '.join(words)} " if words else kept
        self.pieces = frozenset(text[i : i + 3] for i in range(max(1, len(text) - 2)))


def _strip_ending(word: str) -> str:
    """Return a word without a possessive or plural ending, judged by its letters."""
    for ending in ("'s", "’s"):
        word = word.removesuffix(ending)
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    return word


class KnownValues:
    """An index of values, in which `find_similar` finds a near-duplicate of a new value.

    Candidates are found by common pieces, so a look-up costs the pieces of the value times their frequency,
    not the number of values times their length.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.values: list[str] = []
        self._plain: list[PlainForm] = []
        self._letters: dict[str, int] = {}  # likeness -> number
        self._by_words: dict[frozenset[str], int] = {}
        self._by_piece: defaultdict[str, list[int]] = defaultdict(list)
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Add a value to the index."""
        number, plain = len(self.values), PlainForm(value)
        self.values.append(value)
        self._plain.append(plain)
        self._letters.setdefault(normalize_likeness(value).casefold(), number)
        self._by_words.setdefault(plain.words, number)
        for piece in plain.pieces:
            self._by_piece[piece].append(number)

    def find_similar(self, value: str) -> tuple[Kind, str] | None:
        """Return a near-duplicate among the values, and the kind of similarity; None if there is none.

        The kind `identical` means equal except for case and invisible characters.
        """
        number = self._letters.get(normalize_likeness(value).casefold())
        if number is not None:
            return "identical", self.values[number]
        plain = PlainForm(value)
        number = self._by_words.get(plain.words) if plain.words else None
        if number is None:
            shared = Counter(number for piece in plain.pieces for number in self._by_piece.get(piece, ()))
            number = next((n for n, count in shared.most_common() if self._is_similar(plain, n, count)), None)
        return None if number is None else ("near_duplicate", self.values[number])

    def _is_similar(self, plain: PlainForm, number: int, shared_pieces: int) -> bool:
        other = self._plain[number]
        if plain.telling != other.telling:
            return False
        if shared_pieces >= SAME_PIECES * (len(plain.pieces) + len(other.pieces) - shared_pieces):
            return True
        both = len(plain.words & other.words)
        return both >= max(_LEAST_WORDS, SAME_WORDS * (len(plain.words) + len(other.words) - both))
