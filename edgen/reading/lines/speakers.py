"""Find words that name a speaker in a text: `teacher`, `Lehrerin`, `élève`, `T`.

An expression of a hundred words costs as much as twenty readings. So the words that a text holds are selected
first, by the set of its words, and only these are searched for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from edgen.core.text import compile_later
from edgen.reading.roles import RoleWords
from edgen.reading.text.characters import find_letters, lower

_LETTERS = compile_later(r"[^\W\d_]+")
_BEGINNING = 6  # letters of the longest abbreviation, and one more


class Speakers:
    """Words for speakers, with their roles. `exact`: capitals count."""

    def __init__(self, words: Mapping[str, str], *, exact: bool = False) -> None:
        self.words = words
        self.known = tuple(words)
        self._exact = exact
        self._by_first: dict[str, list[str]] = {}
        self._marks: list[str] = []  # words that begin with no letter
        for word in sorted(words, key=len, reverse=True):
            first = _LETTERS.match(word)
            if first is None:
                self._marks.append(word)
            else:
                self._by_first.setdefault(first[0], []).append(word)

    def select_within(self, text: str) -> Speakers:
        """Return those words that a text holds."""
        lowered = text if self._exact else lower(text)
        letters = find_letters(text, exact=True) if self._exact else find_letters(text)
        letters &= self._by_first.keys()
        words = [word for first in letters for word in self._by_first[first] if word in lowered]
        held = {word: self.words[word] for word in (*words, *[mark for mark in self._marks if mark in text])}
        return Speakers(held, exact=self._exact)

    def find_in(self, text: str) -> list[tuple[int, int, str]]:
        """Return (start, -end, role) of all words for speakers in a text in their order.

        Of words that overlap, the longest comes first.
        """
        lowered = text if self._exact else lower(text)
        found: list[tuple[int, int, str]] = []
        for word, role in self.words.items():
            begins = word not in self._marks
            at = lowered.find(word)
            while at >= 0:
                end = at + len(word)
                around = (lowered[at - 1 : at], lowered[end : end + 1]) if begins else ()
                if _NO_LETTERS.issuperset(around) or not any(map(_is_letter, around)):
                    found.append((at, -end, role))
                at = lowered.find(word, end)
        found.sort()
        return found


# What mostly stands before and after a word.
_NO_LETTERS = frozenset(["", *"\n \t\"'()[]{}<>|:;,.*_#@/=-"])


def _is_letter(char: str) -> bool:
    return char.isalnum() and not char.isdecimal()


@cache
def list_known_speakers(roles: RoleWords) -> Speakers:
    """Return the words for the roles, in any language, of two letters or more."""
    words = {word: role for word, role in roles.aliases.items() if len(word) > 1}
    for i, some in enumerate(roles.foreign()):
        words |= dict.fromkeys(some, roles.names[i])
    return Speakers(words | roles.by_name)


@cache
def list_abbreviations(roles: RoleWords) -> Speakers:
    """Return abbreviations of the roles' names that no two roles have in common: `T`, `Stu`."""
    words: dict[str, str] = {}
    shared: set[str] = set()
    for name in roles.names:
        starts = [name[:length].title() for length in range(1, _BEGINNING)]
        consonants = [char for char in name.lower() if char not in "aeiou"]
        for start in [*starts, starts[2].upper(), "".join(consonants[:3]).upper()]:
            if words.setdefault(start, name) != name:
                shared.add(start)
    return Speakers({word: role for word, role in words.items() if word not in shared}, exact=True)
