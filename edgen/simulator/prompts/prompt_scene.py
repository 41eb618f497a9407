"""The scene of a prompt whose scenario is unknown, for a served simulator: the space and the values that the
prompt names.

It searches the shipped spaces and the server's further ones. Prompts about ways to learn and to teach need no
scene, since they state what a turn is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from edgen.core.errors import EdgenError
from edgen.core.resources import find_shipped_files
from edgen.core.values import Message, Scenario
from edgen.space import load_space
from edgen.space.model import Scene, SpaceBook

_MOST = 20_000  # characters of a brief that are searched
_LEAST_NAMED, _LEAST_CHARS = 2, 20  # dimensions, and characters of values, in a prompt
_YOU_ARE = re.compile(r"(?i)\b(?:you are|you play|act as|speak as)\b([^.\n]{0,200})")


class Value(NamedTuple):
    """A value to look for: its words in lower case, its dimension, and its own spelling."""

    words: str
    dimension: str
    value: str


class SceneFinder:
    """A finder of the scene of a prompt. `files`: spaces besides the shipped ones."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = tuple(files)
        self._books: list[tuple[SpaceBook, list[Value]]] | None = None
        self._found = lru_cache(maxsize=2_048)(self._search)

    def find(self, messages: Sequence[Message]) -> Scene | None:
        """Return the scene that the first message names; None if it names none."""
        return self._found(messages[0].content[:_MOST]) if messages else None

    def load(self) -> None:
        """Load the spaces. Raises SpaceError if one of `files` is invalid."""
        given = [SpaceBook(load_space(file)) for file in self._files]
        books = [*given, *_load_shipped_books()]
        self._books = [(book, [*_list_values(book)]) for book in books if book.speaks]

    def _search(self, text: str) -> Scene | None:
        if self._books is None:
            self.load()
        assert self._books is not None
        lower = text.lower()
        best, most = None, 0
        for book, values in self._books:
            named = _find_named_values(values, lower)
            if (role := _find_role(book, text) or _find_only_role(book, named)) is not None:
                sees = book.sees[role]
                named = {name: value for name, value in named.items() if name in sees}
            size = sum(map(len, named.values()))
            wanted = len(book.space.names if role is None else book.sees[role])
            enough = len(named) >= max(_LEAST_NAMED, wanted / 2) and size >= _LEAST_CHARS
            if enough and size > most:
                best, most = Scene(book, _make_scenario(book, named), role), size
        return best


def _load_shipped_books() -> Iterator[SpaceBook]:
    for file in sorted(find_shipped_files("preference_space").values()):
        try:
            yield SpaceBook(load_space(file))
        except EdgenError:  # the domain of this space is not installed
            continue


def _list_values(book: SpaceBook) -> Iterator[Value]:
    for dimension in book.space.dimensions:
        for value in dimension.values:
            yield Value(value.lower(), dimension.name, value)


def _find_named_values(values: Sequence[Value], lower: str) -> dict[str, str]:
    """Return, for each dimension, the longest value that occurs in the text as whole words."""
    found: dict[str, str] = {}
    for words, dimension, value in values:
        if words in lower and len(value) > len(found.get(dimension, "")) and _stands_alone(words, lower):
            found[dimension] = value
    return found


def _stands_alone(words: str, lower: str) -> bool:
    at = lower.find(words)
    while at >= 0:
        end = at + len(words)
        before, after = lower[at - 1 : at], lower[end : end + 1]
        if not (before.isalnum() and words[0].isalnum()) and not (after.isalnum() and words[-1].isalnum()):
            return True
        at = lower.find(words, at + 1)
    return False


def _find_role(book: SpaceBook, text: str) -> str | None:
    """Return the role that the prompt assigns: the first one after "you are"."""
    said = _YOU_ARE.search(text)
    if said is None:
        return None
    lower = said[1].lower()
    places = {
        name: found.start()
        for name in book.sees
        if (found := re.search(rf"\b{re.escape(name.lower())}\b", lower)) is not None
    }
    return min(places, key=lambda name: places[name], default=None)


def _find_only_role(book: SpaceBook, named: dict[str, str]) -> str | None:
    """Return the role that sees all named dimensions and the fewest others; None if every role speaks."""
    seeing = [name for name, sees in book.sees.items() if named.keys() <= {*sees}]
    return min(seeing, key=lambda name: len(book.sees[name]), default=None)


def _make_scenario(book: SpaceBook, named: dict[str, str]) -> Scenario:
    values = {name: named[name] for name in book.space.names if name in named}
    fields = {
        name: fields
        for name, value in values.items()
        if (fields := book.space[name].find_entry(value).fields)
    }
    return Scenario(0, values, fields)
