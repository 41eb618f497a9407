"""Writer of an index of conversations (`conversation_index`).

Memory does not grow with the number of entries. Sets of places and numbers are written in blocks and joined
at the end, one facet or one number at a time.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from edgen.store.conversation_index import MOST_LISTED, SPARSE, IndexEntry, explain_errors

_SCHEMA = """
PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16000;
CREATE TABLE entries (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, preview TEXT NOT NULL, status TEXT NOT NULL,
    turns INTEGER, words INTEGER, probability REAL
);
CREATE TABLE bodies (n INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE sketches (hash INTEGER NOT NULL, n INTEGER NOT NULL);
CREATE TABLE facets (
    place INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, entries INTEGER NOT NULL,
    listed INTEGER NOT NULL, sparse INTEGER NOT NULL, places BLOB NOT NULL
);
CREATE TABLE numbers (
    place INTEGER PRIMARY KEY, name TEXT NOT NULL, known INTEGER NOT NULL, low REAL, high REAL,
    places BLOB NOT NULL, sorted BLOB NOT NULL
);
CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE TABLE facet_blocks (facet INTEGER NOT NULL, value INTEGER NOT NULL, places BLOB NOT NULL);
CREATE TABLE number_blocks (number INTEGER NOT NULL, places BLOB NOT NULL, data BLOB NOT NULL);
"""
_INDEXES = """
DROP TABLE facet_blocks;
DROP TABLE number_blocks;
CREATE INDEX entries_by_id ON entries (id);
CREATE INDEX facets_by_value ON facets (name, value);
CREATE INDEX sketches_by_hash ON sketches (hash, n);
CREATE INDEX sketches_by_entry ON sketches (n, hash);
CREATE TABLE finished (entries INTEGER);
INSERT INTO finished SELECT COUNT(*) FROM entries;
ANALYZE entries; ANALYZE facets;
"""
_BLOCK = 1 << 14  # entries whose places are held in memory
_TELL_EVERY = 2_000  # entries
_MOST_VALUES = 20_000  # of a facet; with more values it is no facet
_MOST_NUMBERS = 100
_SKETCH = 4  # hashes of an entry
_MOST_SKETCHED = 3_000  # words of an entry


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """An entry to index."""

    entry: IndexEntry  # as lists show it
    text: str  # searched text
    facets: Mapping[str, Iterable[str]] = {}  # values by facet
    numbers: Mapping[str, float] = {}  # by name, for filters and order
    said: str = ""  # text for the search of near-duplicates; empty: excluded
    body: bytes | None = None  # data stored with the entry


def write_index(path: Path, entries: Iterable[Indexed]) -> Iterator[int]:
    """Write the index of entries, and yield the number of entries so far.

    Replaces an unfinished file. Raises RunError if the file cannot be written, and any error of `entries`.
    """
    with explain_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    with explain_errors(path), contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        path.chmod(0o600)
        connection.executescript(_SCHEMA)
        connection.execute("BEGIN")
        blocks = _Blocks(connection)
        done = 0
        for done, one in enumerate(entries, 1):
            _write_entry(connection, done - 1, one)
            blocks.add(done - 1, one)
            if done % _BLOCK == 0:
                blocks.flush()
            if done % _TELL_EVERY == 0:
                yield done
        blocks.flush()
        blocks.join_facets(done)
        yield done
        blocks.join_numbers()
        connection.execute("COMMIT")
        connection.executescript(_INDEXES)
        yield done


def _write_entry(connection: sqlite3.Connection, n: int, one: Indexed) -> None:
    entry = one.entry
    row = (n, *(getattr(entry, name) for name in IndexEntry.__struct_fields__))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (n + 1, one.text))
    if one.body is not None:
        connection.execute("INSERT INTO bodies VALUES (?, ?)", (n, one.body))
    if one.said:
        connection.executemany(
            "INSERT INTO sketches VALUES (?, ?)", [(value, n) for value in _sketch_text(one.said)]
        )


def _sketch_text(text: str) -> list[int]:
    """Return the smallest hashes of a text's word 3-grams."""
    words = re.findall(r"\w+", text.lower())[:_MOST_SKETCHED]
    grams = zip(words, words[1:], words[2:], strict=False)
    return sorted({zlib.crc32(" ".join(gram).encode("utf-8", "replace")) for gram in grams})[:_SKETCH]


class _Blocks:
    """Sets of places, and numbers, of the entries since the last flush."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._facets: dict[str, dict[str, int] | None] = {}  # the number of each value; None: too many values
        self._places: dict[tuple[str, str], array[int]] = {}
        self._numbers: dict[str, tuple[array[int], array[float]]] = {}
        self._known_numbers: dict[str, int] = {}

    def add(self, n: int, one: Indexed) -> None:
        """Add an entry."""
        for name, values in one.facets.items():
            known = self._facets.setdefault(name, {})
            if known is None:
                continue
            for value in dict.fromkeys(values):
                if value not in known:
                    if len(known) >= _MOST_VALUES:
                        self._facets[name] = None
                        break
                    known[value] = len(known)
                self._places.setdefault((name, value), array("I")).append(n)
        for name, number in one.numbers.items():
            if name not in self._known_numbers and len(self._known_numbers) >= _MOST_NUMBERS:
                continue
            self._known_numbers.setdefault(name, len(self._known_numbers))
            places, held = self._numbers.setdefault(name, (array("I"), array("d")))
            places.append(n)
            held.append(number)

    def flush(self) -> None:
        """Write the collected sets and numbers."""
        names = {name: place for place, name in enumerate(self._facets)}
        rows = [
            (names[name], known[value], places.tobytes())
            for (name, value), places in self._places.items()
            if (known := self._facets[name]) is not None
        ]
        self._connection.executemany("INSERT INTO facet_blocks VALUES (?, ?, ?)", rows)
        kept = [
            (self._known_numbers[name], places.tobytes(), values.tobytes())
            for name, (places, values) in self._numbers.items()
        ]
        self._connection.executemany("INSERT INTO number_blocks VALUES (?, ?, ?)", kept)
        self._places.clear()
        self._numbers.clear()

    def join_facets(self, size: int) -> None:
        """Write each value of each facet with its set of places. The most frequent values are listed."""
        self._connection.execute("CREATE INDEX facet_blocks_by_value ON facet_blocks (facet, value)")
        for place, (name, known) in enumerate(self._facets.items()):
            if known is None:
                continue
            sizes = self._connection.execute(
                "SELECT value, SUM(LENGTH(places)) FROM facet_blocks WHERE facet = ? GROUP BY value", (place,)
            )
            words = list(known)
            counts = Counter({words[value]: length // 4 for value, length in sizes})
            frequent = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
            for rank, (value, count) in enumerate(frequent):
                parts = self._connection.execute(
                    "SELECT places FROM facet_blocks WHERE facet = ? AND value = ? ORDER BY rowid",
                    (place, known[value]),
                )
                data = b"".join(part for (part,) in parts)
                sparse = count <= min(SPARSE, size // 64)  # otherwise a bitmap is read faster
                self._connection.execute(
                    "INSERT INTO facets (name, value, entries, listed, sparse, places) VALUES (?, ?, ?, ?, "
                    "?, ?)",
                    (
                        name,
                        value,
                        count,
                        rank < MOST_LISTED,
                        sparse,
                        data if sparse else _pack_bits(data, size),
                    ),
                )

    def join_numbers(self) -> None:
        """Write, for each number, the places in the order of their values, and the sorted values."""
        for name, number in self._known_numbers.items():
            places, values = array("I"), array("d")
            parts = self._connection.execute(
                "SELECT places, data FROM number_blocks WHERE number = ? ORDER BY rowid", (number,)
            )
            for some, data in parts:
                places.frombytes(some)
                values.frombytes(data)
            order = sorted(range(len(values)), key=values.__getitem__)
            ordered = array("d", map(values.__getitem__, order))
            row = (
                name,
                len(order),
                ordered[0],
                ordered[-1],
                array("I", map(places.__getitem__, order)).tobytes(),
                ordered.tobytes(),
            )
            self._connection.execute(
                "INSERT INTO numbers (name, known, low, high, places, sorted) VALUES (?, ?, ?, ?, ?, ?)", row
            )


def _pack_bits(places: bytes, size: int) -> bytes:
    """Convert a byte for each place to a bitmap."""
    bits = bytearray(size // 8 + 1)
    for place in array("I", places):
        bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)
