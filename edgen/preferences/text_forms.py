"""Forms of texts: regular expressions in a data file, and a search that tries only the forms that can match.

A file has sections: `[name]`, then one form on each line. `<NAME>` in a form stands for the alternatives of
an earlier section. There are hundreds of forms in many languages, and most of them require words that a given
text lacks. These words are derived from the forms themselves, so the search finds everything that trying
every form would find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

# The parser of the standard library's regular expressions. It has no public interface.
codes: Any = import_module("re._constants")
_parser: Any = import_module("re._parser")
_NAME = re.compile("<([A-Z_]+)>")
# Letters that case-insensitive expressions treat as equal to others, beyond the effect of `lower`.
_LOWER_CASE = str.maketrans("İıΣςᲀᲁᲂᲃᲄᲅᲆᲇᲈ", "iiσσвдосттъѣꙋ")
Words = frozenset[str]  # every text that a form matches contains at least one of these


def read_sections(path: Path) -> dict[str, list[str]]:
    """Return the forms of each section of a file, with `<NAME>` replaced by the alternatives of that
    section."""
    sections: dict[str, list[str]] = {}

    def expand_alternatives(found: re.Match[str]) -> str:
        return f"(?:{'|'.join(f'(?:{form})' for form in sections[found[1].lower()])})"

    for line in path.read_text(encoding="utf-8").splitlines():
        if named := re.fullmatch(r"\[(\w+)\]", line):
            sections[named[1]] = forms = []
        elif line and not line.startswith("# "):
            forms.append(_NAME.sub(expand_alternatives, line))
    return sections


class Forms:
    """The forms of several sections."""

    def __init__(self, sections: Mapping[str, Sequence[str]], flags: re.RegexFlag = re.NOFLAG) -> None:
        self._names = tuple(sections)
        self._forms = [
            (name, find_needs(form), re.compile(form, flags | re.IGNORECASE))
            for name, forms in sections.items()
            for form in forms
        ]
        self._ascii: dict[str, list[int]] = {}  # by word: the forms that need this word or an alternative
        self._others: dict[str, list[int]] = {}
        self._always = [place for place, (_, needs, _) in enumerate(self._forms) if not needs]
        for place, (_, needs, _) in enumerate(self._forms):
            for word in needs[0] if needs else ():
                (self._ascii if word.isascii() else self._others).setdefault(word, []).append(place)

    def choose(self, text: str) -> dict[str, list[re.Pattern[str]]]:
        """Return the forms that can match a text or a part of it, by section."""
        places, is_ascii = {*self._always}, text.isascii()
        folded = text.lower() if is_ascii else text.translate(_LOWER_CASE).lower()
        for by_word in (self._ascii,) if is_ascii else (self._ascii, self._others):
            for word in [word for word in by_word if word in folded]:
                places.update(by_word[word])
        chosen: dict[str, list[re.Pattern[str]]] = {name: [] for name in self._names}
        for name, needs, form in map(self._forms.__getitem__, sorted(places)):
            if all(any(word in folded for word in words) for words in needs[1:]):
                chosen[name].append(form)
        return chosen


def find_needs(form: str) -> tuple[Words, ...]:
    """Return sets of words in lower case. Every text that the form matches, in any case, contains one word of
    each set. The set that the fewest texts satisfy comes first."""
    return tuple(sorted(set(_needs(_parser.parse(form))), key=_compute_rarity, reverse=True))


def _needs(items: Iterable[tuple[Any, Any]]) -> list[Words]:
    found, run = [], ""
    for code, what in [*items, (None, None)]:
        if code is codes.LITERAL and not chr(what).isspace():
            run += chr(what)
            continue
        found += [frozenset({run.translate(_LOWER_CASE).lower()})] if run else []
        run = ""
        if code is codes.SUBPATTERN:
            found += _needs(what[-1])
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and what[0] > 0:
            found += _needs(what[2])
        elif code is codes.BRANCH:
            found += _of_any([_needs(branch) for branch in what[1]])
        elif code is codes.IN:
            found += _of_any([_needs([one]) for one in what])
    return [
        words
        for words in found
        if not any(len(word) == 1 and word.isascii() and word.isalnum() for word in words)
    ]


def _of_any(branches: Sequence[Sequence[Words]]) -> list[Words]:
    """Return the needs of an alternation: from each branch, the set with the longest words."""
    if not all(branches):
        return []
    return [frozenset().union(*[max(needs, key=_compute_rarity) for needs in branches])]


def _compute_rarity(words: Words) -> tuple[int, int, list[str]]:
    """Return a sort key: higher for longer and fewer words, which fewer texts contain. Words of other scripts
    count as long."""
    return min(len(word) if word.isascii() else 3 * len(word) for word in words), -len(words), sorted(words)
