"""An index of conversations for pages: full-text search, facets and sorting, in a SQLite file of its own.

The index only saves time. It is written once, from the beginning, and is never changed afterwards; a run or a
file that has changed gets a new one. Its search is FTS5's (https://sqlite.org/fts5.html).
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import RunError

_SCHEMA = """
CREATE TABLE entries (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, preview TEXT NOT NULL, status TEXT NOT NULL,
    turns INTEGER, words INTEGER, probability REAL
);
CREATE TABLE facets (name TEXT NOT NULL, value TEXT NOT NULL, n INTEGER NOT NULL);
CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
"""
_INDEXES = """
CREATE INDEX facets_by_value ON facets (name, value, n);
CREATE INDEX facets_by_entry ON facets (n);
CREATE INDEX entries_by_id ON entries (id);
CREATE INDEX entries_by_turns ON entries (turns, n);
CREATE INDEX entries_by_words ON entries (words, n);
CREATE INDEX entries_by_probability ON entries (probability, n);
CREATE TABLE counts AS SELECT name, value, COUNT(*) AS entries FROM facets GROUP BY name, value;
CREATE INDEX counts_by_name ON counts (name, entries DESC, value);
CREATE TABLE finished (entries INTEGER);
INSERT INTO finished SELECT COUNT(*) FROM entries;
ANALYZE;
"""
_BATCH = 2_000
_MOST_COUNTED = 20_000  # entries that match, up to which facets are counted anew
MOST_VALUES = 100  # of a facet that are listed
ORDERS = {
    "place": "n",
    "shortest": "turns, n",
    "longest": "turns DESC, n DESC",
    "fewest_words": "words, n",
    "most_words": "words DESC, n DESC",
    "least_probable": "probability, n",
    "most_probable": "probability DESC, n DESC",
}
"""Orders of entries, by name."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation as lists show it. `facets`: its values by name, each a text or several."""

    id: str
    title: str
    preview: str
    status: str
    turns: int | None = None
    words: int | None = None
    probability: float | None = None


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of entries: words that all occur, and values of facets. Values of one facet are
    alternatives."""

    words: str = ""
    facets: Mapping[str, tuple[str, ...]] = {}
    order: str = "place"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a page, how many match in all, and how often each facet's values occur among these.
    `counted` is False where so many match that the counts are those of all entries."""

    total: int
    entries: tuple[Entry, ...]
    facets: dict[str, list[tuple[str, int]]]
    counted: bool


def write_index(
    path: Path, entries: Iterable[tuple[Entry, str, Mapping[str, Iterable[str]]]]
) -> Iterator[int]:
    """Write the index of entries, each with its text and facets, and yield the number of entries so far.

    A file that is not finished is replaced. Raises RunError where it cannot be written, and what `entries`
    raises.
    """
    with _explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    with _explained(path), contextlib.closing(sqlite3.connect(path, isolation_level=None)) as book:
        path.chmod(0o600)
        book.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")
        book.execute("BEGIN")
        done = 0
        for done, (entry, text, facets) in enumerate(entries, 1):
            row = (done, *(getattr(entry, name) for name in Entry.__struct_fields__))
            book.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            book.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (done, text))
            values = [(name, value, done) for name, each in facets.items() for value in dict.fromkeys(each)]
            book.executemany("INSERT INTO facets VALUES (?, ?, ?)", values)
            if done % _BATCH == 0:
                yield done
        book.execute("COMMIT")
        book.executescript(_INDEXES)
        yield done


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Report a file that cannot be written or read."""
    try:
        yield
    except (OSError, sqlite3.Error) as problem:
        raise RunError(f"{path}: the index of conversations cannot be used ({problem}); remove it.") from None


class ConversationIndex:
    """A finished index. Each call opens it anew, so that any thread may ask."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_finished(self) -> bool:
        """Return whether the index was written to its end."""
        with contextlib.suppress(RunError), self._open() as book:
            return book.execute("SELECT entries FROM finished").fetchone() is not None
        return False

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        address = f"{self._path.absolute().as_uri()}?mode=ro"
        with _explained(self._path), contextlib.closing(sqlite3.connect(address, uri=True)) as book:
            yield book

    def find(self, query: Query, page: int, size: int) -> Found:
        """Return one page of the entries that match, pages counted from 0."""
        where, values = _condition(query)
        order = ORDERS.get(query.order, ORDERS["place"])
        with self._open() as book:
            total = book.execute(f"SELECT COUNT(*) FROM entries WHERE {where}", values).fetchone()[0]  # noqa: S608
            listed = book.execute(
                f"SELECT * FROM entries WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608
                (*values, size, page * size),
            )
            entries = tuple(
                Entry(**dict(zip(Entry.__struct_fields__, row[1:], strict=True))) for row in listed
            )
            everything = where == "1"
            counted = everything or total <= _MOST_COUNTED
            facets = self._facets(book, "1" if not counted else where, values if counted else ())
        return Found(total=total, entries=entries, facets=facets, counted=counted)

    def _facets(
        self, book: sqlite3.Connection, where: str, values: tuple[Any, ...]
    ) -> dict[str, list[tuple[str, int]]]:
        if where == "1":
            rows = book.execute("SELECT name, value, entries FROM counts ORDER BY name, entries DESC, value")
        else:
            rows = book.execute(
                "SELECT name, value, COUNT(*) AS entries FROM facets "  # noqa: S608
                f"WHERE n IN (SELECT n FROM entries WHERE {where}) GROUP BY name, value "
                "ORDER BY name, entries DESC, value",
                values,
            )
        found: dict[str, list[tuple[str, int]]] = {}
        sizes: Counter[str] = Counter()
        for name, value, count in rows:
            sizes[name] += 1
            if sizes[name] <= MOST_VALUES:
                found.setdefault(name, []).append((value, count))
        return found

    def neighbours(self, identifier: str) -> tuple[str | None, str | None]:
        """Return the ids of the entries before and after one."""
        with self._open() as book:
            row = book.execute("SELECT n FROM entries WHERE id = ?", (identifier,)).fetchone()
            if row is None:
                return None, None
            ids = dict(book.execute("SELECT n, id FROM entries WHERE n IN (?, ?)", (row[0] - 1, row[0] + 1)))
        return ids.get(row[0] - 1), ids.get(row[0] + 1)

    def place(self, identifier: str) -> int | None:
        """Return the number of an entry, from 1; None if there is none of that id."""
        with self._open() as book:
            row = book.execute("SELECT n FROM entries WHERE id = ?", (identifier,)).fetchone()
        return None if row is None else int(row[0])


def _condition(query: Query) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition on entries, and its values."""
    clauses: list[str] = []
    values: list[Any] = []
    words = re.findall(r"\w+", query.words)
    if words:
        clauses.append("n IN (SELECT rowid FROM texts WHERE texts MATCH ?)")
        values.append(" ".join(f'"{word}"' for word in words))
    for name, wanted in query.facets.items():
        marks = ", ".join("?" * len(wanted))
        clauses.append(f"n IN (SELECT n FROM facets WHERE name = ? AND value IN ({marks}))")  # noqa: S608
        values += [name, *wanted]
    return " AND ".join(clauses) or "1", tuple(values)
