"""An index of conversations for pages: full-text search, facets, ranges and orders, in a separate SQLite
file.

The index only saves time. `conversation_index_writer` writes it once, and it is never changed afterwards. A
changed run or file gets a new one. The search is FTS5's (https://sqlite.org/fts5.html). Facets are sets of
places (`bitmaps`), orders are lists of places, so every page costs the same.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import sqlite3
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import compress, islice
from operator import itemgetter
from pathlib import Path

import msgspec

from edgen.core.errors import RunError

MOST_MATCHES = 100_000  # conversations that a search finds at most
MOST_LISTED = 40  # values of a facet, the most frequent ones
SPARSE = 2_000  # larger sets of places are stored as bitmaps, smaller ones as lists
_MOST_SIMILAR = 20  # entries
_CACHED = 64  # most recently used sets of values and ranges


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation as lists show it."""

    id: str  # unique in the run or file
    title: str  # the scenario in a few words
    preview: str  # beginning of the text
    status: str  # status, with the reason unless it was accepted
    turns: int | None = None  # number of turns; None without a conversation
    words: int | None = None  # number of words; None without a conversation
    probability: float | None = None  # of the family's event; None if unknown


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of entries. All words and quoted phrases must occur. Values of one facet are alternatives.
    Ranges of numbers include their ends. `order`: the name of a number, with a minus for largest first; empty
    for the order of the run."""

    words: str = ""
    facets: Mapping[str, tuple[str, ...]] = {}
    ranges: Mapping[str, tuple[float | None, float | None]] = {}
    order: str = ""


class IndexPage(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a page, the number of all matches, and how often each facet's values occur among them. A
    facet with chosen values has the counts without its own choice. `cut`: only the first MOST_MATCHES entries
    with the words are included."""

    total: int
    entries: tuple[IndexEntry, ...]
    facets: dict[str, list[tuple[str, int]]]
    cut: bool


class NumberFacts(msgspec.Struct, frozen=True):
    """A number of conversations: how many conversations have it, and its bounds."""

    known: int
    low: float
    high: float


@contextlib.contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Report a file that cannot be written or read."""
    try:
        yield
    except (OSError, sqlite3.Error) as problem:
        raise RunError(f"{path}: the index of conversations cannot be used ({problem}); remove it.") from None


class ConversationIndex:
    """A finished index. It is thread-safe, since each call opens it anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sets: dict[object, int] = {}

    def is_finished(self) -> bool:
        """Return whether the index was written to its end."""
        with contextlib.suppress(RunError):
            return self.size >= 0
        return False

    @functools.cached_property
    def size(self) -> int:
        """The number of entries."""
        with self._open() as connection:
            return int(connection.execute("SELECT entries FROM finished").fetchone()[0])

    @functools.cached_property
    def numbers(self) -> dict[str, NumberFacts]:
        """The numbers that entries have, by name."""
        with self._open() as connection:
            rows = connection.execute("SELECT name, known, low, high FROM numbers ORDER BY place")
            return {name: NumberFacts(*facts) for name, *facts in rows}

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        with explain_errors(self._path), contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            yield connection

    def find(self, query: Query, page: int, size: int) -> IndexPage:
        """Return one page of the entries that match, pages counted from 0."""
        with self._open() as connection:
            searched, cut = self._search(connection, query.words)
            chosen = {
                name: self._find_chosen(connection, name, values) for name, values in query.facets.items()
            }
            rest = searched
            for name, ends in query.ranges.items():
                rest &= self._select_within(connection, name, *ends)
            matching = functools.reduce(int.__and__, chosen.values(), rest)
            places = self._sort_matching(connection, matching, query.order, page * size, size)
            return IndexPage(
                total=matching.bit_count(),
                entries=self._read_entries(connection, places),
                facets=self._count_facets(connection, rest, chosen, query.facets),
                cut=cut,
            )

    def _search(self, connection: sqlite3.Connection, words: str) -> tuple[int, bool]:
        wanted = [one for one in re.findall(r'"([^"]*)"|(\w+)', words) if re.search(r"\w", "".join(one))]
        if not wanted:
            return make_full_set(self.size), False
        asked = " ".join('"{}"'.format(" ".join(re.findall(r"\w+", "".join(one)))) for one in wanted)

        def search() -> int:
            rows = connection.execute(
                "SELECT rowid FROM texts WHERE texts MATCH ? LIMIT ?", (asked, MOST_MATCHES + 1)
            )
            return from_places(map(itemgetter(0), rows), self.size + 1) >> 1  # rowids begin at 1

        found = self._make_once(("words", asked), search)
        return found, found.bit_count() > MOST_MATCHES

    def _find_chosen(self, connection: sqlite3.Connection, name: str, values: tuple[str, ...]) -> int:
        found = 0
        for value in values:
            found |= self._make_once((name, value), functools.partial(self._set_of, connection, name, value))
        return found

    def _set_of(self, connection: sqlite3.Connection, name: str, value: str) -> int:
        row = connection.execute(
            "SELECT sparse, places FROM facets WHERE name = ? AND value = ?", (name, value)
        ).fetchone()
        if row is None:
            return 0
        return from_places(array("I", row[1]), self.size) if row[0] else int.from_bytes(row[1], "little")

    def _select_within(
        self, connection: sqlite3.Connection, name: str, low: float | None, high: float | None
    ) -> int:
        """Return the entries whose number is within these bounds; entries without the number are excluded."""
        row = connection.execute("SELECT rowid, known FROM numbers WHERE name = ?", (name,)).fetchone()
        if row is None:
            return 0

        def count_within() -> int:
            with connection.blobopen("numbers", "sorted", row[0], readonly=True) as values:
                begin = 0 if low is None else _bisect(values, row[1], lambda value: value < low)
                end = row[1] if high is None else _bisect(values, row[1], lambda value: value <= high)
            return from_places(self._read_order(connection, name)[begin : max(begin, end)], self.size)

        return self._make_once(("within", name, low, high), count_within)

    def _make_once(self, key: object, make: Callable[[], int]) -> int:
        """Return a set from the cache, or make it."""
        found = self._sets.pop(key, None)
        if found is None:
            found = make()
        self._sets[key] = found
        while len(self._sets) > _CACHED:
            self._sets.pop(next(iter(self._sets)), None)
        return found

    def _read_order(self, connection: sqlite3.Connection, name: str) -> array[int]:
        row = connection.execute("SELECT places FROM numbers WHERE name = ?", (name,)).fetchone()
        return array("I", b"" if row is None else row[0])

    def _sort_matching(
        self, connection: sqlite3.Connection, matching: int, order: str, begin: int, count: int
    ) -> list[int]:
        name = order.removeprefix("-")
        if name not in self.numbers:
            return list_some(matching, self.size, begin, count)
        places = self._read_order(connection, name)
        having = make_full_set(self.size)
        if self.numbers[name].known < self.size:
            having = self._make_once(("having", name), lambda: from_places(places, self.size))
        known = having & matching
        walk = places[::-1] if order.startswith("-") else places
        flags = map(list_flags(known, self.size).__getitem__, walk)
        found = list(islice(compress(walk, flags), begin, begin + count))
        if len(found) < count:  # entries without the number come last
            unknown = matching & ~known
            begin = max(0, begin - known.bit_count())
            found += list_some(unknown, self.size, begin, count - len(found))
        return found

    def _read_entries(self, connection: sqlite3.Connection, places: list[int]) -> tuple[IndexEntry, ...]:
        fields = ", ".join(IndexEntry.__struct_fields__)
        marks = ", ".join("?" * len(places))
        rows = connection.execute(f"SELECT n, {fields} FROM entries WHERE n IN ({marks})", places)  # noqa: S608 - ours
        found = {
            n: IndexEntry(**dict(zip(IndexEntry.__struct_fields__, row, strict=True))) for n, *row in rows
        }
        return tuple(found[place] for place in places)

    def _count_facets(
        self,
        connection: sqlite3.Connection,
        rest: int,
        chosen: Mapping[str, int],
        values_chosen: Mapping[str, tuple[str, ...]],
    ) -> dict[str, list[tuple[str, int]]]:
        """Return the counts of listed and of chosen values. `rest`: the entries that match everything but the
        facets."""
        found: dict[str, list[tuple[str, int]]] = {}
        whole = rest == make_full_set(self.size) and not chosen
        columns = f"name, value, entries{'' if whole else ', sparse, places'}"
        rows = [
            row
            for name, values in values_chosen.items()
            for value in values
            for row in connection.execute(
                f"SELECT {columns} FROM facets WHERE name = ? AND value = ? AND NOT listed",  # noqa: S608 - ours
                (name, value),
            )
        ]
        listed = connection.execute(f"SELECT {columns} FROM facets WHERE listed ORDER BY place")  # noqa: S608 - ours
        masks: dict[str, int] = {}
        flags: dict[int, bytes] = {}
        for name, value, count, *places in itertools.chain(listed, rows):
            if not whole:
                if name not in masks:
                    others = (own for other, own in chosen.items() if other != name)
                    masks[name] = functools.reduce(int.__and__, others, rest)
                if places[0]:
                    mask = masks[name]
                    if mask not in flags:  # the same for every facet without a choice
                        flags[mask] = list_flags(mask, self.size)
                    count = sum(map(flags[mask].__getitem__, array("I", places[1])))
                else:
                    count = (int.from_bytes(places[1], "little") & masks[name]).bit_count()
            if count:
                found.setdefault(name, []).append((value, count))
        for values in found.values():
            values.sort(key=lambda one: -one[1])
        return found

    def find_neighbours(self, identifier: str) -> tuple[str | None, str | None]:
        """Return the ids of the previous and the next entry."""
        with self._open() as connection:
            row = connection.execute("SELECT n FROM entries WHERE id = ?", (identifier,)).fetchone()
            if row is None:
                return None, None
            ids = dict(
                connection.execute("SELECT n, id FROM entries WHERE n IN (?, ?)", (row[0] - 1, row[0] + 1))
            )
        return ids.get(row[0] - 1), ids.get(row[0] + 1)

    def read_body(self, identifier: str) -> bytes | None:
        """Return the data stored with an entry; None if there is no such id, or it has no data."""
        with self._open() as connection:
            row = connection.execute(
                "SELECT data FROM entries JOIN bodies USING (n) WHERE id = ? ORDER BY n LIMIT 1",
                (identifier,),
            ).fetchone()
        return None if row is None else bytes(row[0])

    def find_similar(self, identifier: str) -> list[IndexEntry]:
        """Return entries that may be near-duplicates of one, the most similar first: they share at least half
        of the smallest hashes of their word 3-grams (Broder 1997)."""
        with self._open() as connection:
            row = connection.execute("SELECT n FROM entries WHERE id = ?", (identifier,)).fetchone()
            if row is None:
                return []
            own = [one for (one,) in connection.execute("SELECT hash FROM sketches WHERE n = ?", row)]
            shared: dict[int, int] = {}
            for one in own:
                for (other,) in connection.execute(
                    "SELECT n FROM sketches WHERE hash = ? LIMIT 1000", (one,)
                ):
                    shared[other] = shared.get(other, 0) + 1
            shared.pop(row[0], None)
            close = sorted((-count, n) for n, count in shared.items() if count * 2 >= max(len(own), 1))
            return list(self._read_entries(connection, [n for _, n in close[:_MOST_SIMILAR]]))

    def iterate_ids(self) -> Iterator[str]:
        """Yield the ids of all entries, in order."""
        with self._open() as connection:
            yield from (one for (one,) in connection.execute("SELECT id FROM entries ORDER BY n"))


def _bisect(values: sqlite3.Blob, count: int, is_before: Callable[[float], bool]) -> int:
    """Return how many of the sorted values (8 bytes each) satisfy `is_before`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        values.seek(middle * 8)
        if is_before(struct.unpack("=d", values.read(8))[0]):
            low = middle + 1
        else:
            high = middle
    return low


_ZEROS_AND_ONES = bytes.maketrans(b"01", b"\0\1")


def from_places(places: Iterable[int], size: int) -> int:
    """Return the bitmap of these places among `size`."""
    digits = bytearray(b"0" * (size or 1))
    for place in places:
        digits[place] = 49  # "1"
    digits.reverse()
    return int(digits, 2)


def make_full_set(size: int) -> int:
    """Return the bitmap of all places."""
    return (1 << size) - 1


def list_flags(places: int, size: int) -> bytes:
    """Return a byte for each place: 1 if it is in the bitmap, else 0."""
    return format(places, f"0{size or 1}b").encode()[::-1].translate(_ZEROS_AND_ONES)


def list_some(places: int, size: int, begin: int, count: int) -> list[int]:
    """Return `count` places of the bitmap in ascending order, after skipping `begin` of them."""
    return list(islice(compress(range(size), list_flags(places, size)), begin, begin + count))
