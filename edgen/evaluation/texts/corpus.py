"""The words of all conversations as numbers, in order: the basis of diversity and near-duplicates.

A word's number is its place in the order of first use. Memory: the distinct words, eight bytes per text, and
half a million words; further words are in a temporary file, four bytes each, and are read in chunks.
"""

from __future__ import annotations

import errno
import itertools
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgen.core.digest import hash64
from edgen.core.errors import StoppedError

Ids = NDArray[np.uint32]
Codes = NDArray[np.uint64]
Ends = NDArray[np.int64]

# The number of an n-gram that crosses the end of a text.
NONE = np.iinfo(np.uint64).max

CHUNK = 1 << 19  # words of a chunk, plus the rest of its last text
_AT_ONCE = 1 << 14  # minimum words per write
_BYTES = 4  # of a word's number
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Chunk(NamedTuple):
    """Some consecutive texts. `first`: the place of the first text among all. `ids`: the numbers of their
    words, shape (words,). `ends`: the end of each text in `ids`, shape (texts,)."""

    first: int
    ids: Ids
    ends: Ends


class _Numbers(dict[str, int]):
    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class Corpus:
    """Texts, each a sequence of words. Add all texts before reading any. `types`: the number of distinct
    words."""

    def __init__(self, chunk: int = CHUNK) -> None:
        self._chunk = chunk
        self._numbers = _Numbers()
        self._ends = array("q")
        self._waiting = array("I")
        self._file = tempfile.SpooledTemporaryFile(chunk * _BYTES, prefix="edgen-")  # noqa: SIM115 - kept open

    def add(self, words: Iterable[Sequence[str]]) -> None:
        """Add a text; `words`: its words by turn. Raises StoppedError if the disk is full."""
        ids = array("I", map(self._numbers.__getitem__, itertools.chain.from_iterable(words)))
        self._ends.append(self.tokens + len(ids))
        self._waiting += ids
        if len(self._waiting) >= min(self._chunk, _AT_ONCE):
            self._write()

    def _write(self) -> None:
        """Write the waiting words to the file."""
        write_words(self._file, self._waiting)
        del self._waiting[:]

    def hash_words(self) -> Codes:
        """Return a 64-bit hash of each distinct word, by its number; shape (types,)."""
        return np.fromiter(map(hash64, self._numbers), dtype=np.uint64, count=self.types)

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def types(self) -> int:
        return len(self._numbers)

    @property
    def tokens(self) -> int:
        """The number of words."""
        return self._ends[-1] if self._ends else 0

    @property
    def ends(self) -> Ends:
        """The end of each text among all words, shape (texts,). A view: add nothing while it is in use."""
        return np.frombuffer(self._ends, dtype=np.int64)

    def iterate_chunks(self) -> Iterator[Chunk]:
        """Yield all texts in chunks."""
        ends, first, start = self.ends, 0, 0
        while first < len(ends):
            # the text that fills the chunk
            last = int(np.searchsorted(ends, start + self._chunk))
            behind = min(last + 1, len(ends))
            stop = int(ends[behind - 1])
            yield Chunk(first, self._read_words(start, stop), ends[first:behind] - start)
            first, start = behind, stop

    def read_text(self, place: int) -> Ids:
        """Return the numbers of the words of one text."""
        return self._read_words(self._ends[place - 1] if place else 0, self._ends[place])

    def _read_words(self, start: int, stop: int) -> Ids:
        """Return the words' numbers from one place to another."""
        if self._waiting:
            self._write()
        self._file.seek(start * _BYTES)
        return np.frombuffer(self._file.read((stop - start) * _BYTES), dtype=np.uint32)


def write_words(file: IO[bytes], words: array[int] | memoryview) -> None:
    """Append words to a temporary file. Raises StoppedError if the disk is full."""
    try:
        file.write(words)
        file.flush()
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        raise StoppedError(
            f"{tempfile.gettempdir()}: there is no room left for temporary files, of which measuring needs "
            "four bytes a word, and with --workers eight more. Make room, or name another folder in the "
            "environment variable TMPDIR."
        ) from None


def narrow_codes(codes: Codes, n: int, types: int) -> Codes:
    """Narrow the numbers of n-grams to 32 bits if they fit, which halves the time of sorting; NONE becomes
    the largest 32-bit number."""
    fit = max(types, 1) ** n <= np.iinfo(np.uint32).max
    return codes.astype(np.uint32) if fit else codes


def number_ngrams(ids: Ids, ends: Ends, n: int, types: int) -> Codes:
    """Return a number for the n-gram at each place, shape (words,); `n` is 1 to 3. NONE if the text ends
    before.

    Up to 2.6 million distinct words, equal numbers mean equal n-grams. With more, numbers wrap around at 64
    bits, and two n-grams share a number about as rarely as hashes do.
    """
    codes = ids.astype(np.uint64)
    base = np.uint64(max(types, 1))
    for k in range(1, n):
        codes *= base
        codes[:-k] += ids[k:]
    for k in range(1, n):
        last = ends - k
        codes[last[last >= 0]] = NONE
    return codes


def drop_repeats(ordered: Codes) -> Codes:
    """Return sorted numbers without repeats. numpy's `unique` would import the modules of masked arrays."""
    if len(ordered) < 2:
        return ordered
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
