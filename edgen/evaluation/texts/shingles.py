"""The shingles of many texts, as hashes that do not depend on the other texts.

A word is a 64-bit hash, and a shingle a hash of its words' hashes; two different shingles have the same hash
with a probability of 2**-64. So several processes can each take some of the texts. A MinHash signature has
120 values (rensa), of which eight bits each are kept (Li and König 2010, WWW).
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgen.core.digest import hash64
from edgen.core.errors import RunError
from edgen.core.values import Turn
from edgen.evaluation.texts.corpus import CHUNK, Codes, Corpus, Ends, drop_repeats, write_words

SHINGLE = 3  # words of a shingle
BANDS, ROWS = 20, 6
SEED = 42
_AT_ONCE = 1024  # texts whose signatures are computed at once
_BYTES = 8  # bytes of a shingle
_BASE = np.uint64(0x9E3779B97F4A7C15)

Indices = NDArray[np.int64]
Signatures = NDArray[np.uint8]


class Shingles(Protocol):
    """Texts as sets of shingles."""

    @property
    def filled(self) -> Indices:
        """The places of the texts that hold a word."""

    def list_signatures(self) -> Signatures:
        """Return the signatures of the filled texts."""

    def of(self, place: int) -> Codes:
        """Return the different shingles of one text, in order."""


class CorpusShingles:
    """The shingles of a complete corpus. Memory: eight bytes for each distinct word."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._hashes = corpus.hash_words()

    @property
    def filled(self) -> Indices:
        """The places of the texts that hold a word."""
        return np.flatnonzero(np.diff(self._corpus.ends, prepend=0)).astype(np.int64)

    def list_signatures(self) -> Signatures:
        """Return the signatures of the filled texts."""
        from rensa import RMinHash

        found = np.empty((len(self.filled), BANDS * ROWS), dtype=np.uint8)
        done = 0
        for chunk in self._corpus.iterate_chunks():
            codes, sizes = _hash_all_shingles(self._hashes[chunk.ids], chunk.ends)
            offsets = np.concatenate(([0], np.cumsum(sizes[sizes > 0]))).astype(np.uint64)
            for start in range(0, len(offsets) - 1, _AT_ONCE):
                part = offsets[start : start + _AT_ONCE + 1]
                hashes = codes[int(part[0]) : int(part[-1])]
                matrix = RMinHash.digest_matrix_from_flat_token_hashes(
                    hashes, part - part[0], BANDS * ROWS, SEED
                )
                rows = np.array(matrix.to_rows(), dtype=np.uint32)
                found[done : done + len(rows)] = rows & np.uint32(0xFF)
                done += len(rows)
        return found

    def of(self, place: int) -> Codes:
        """Return the different shingles of one text, in order."""
        hashes = self._hashes[self._corpus.read_text(place)]
        return drop_repeats(np.sort(_hash_all_shingles(hashes, np.array([len(hashes)]))[0]))


class ShinglePart(NamedTuple):
    """The shingles of some consecutive texts. `digests`: of the whole texts. `sizes`: the number of distinct
    shingles of each text. `codes`: the shingles, text after text. `signatures`: of the texts that have
    words."""

    digests: Codes
    sizes: Indices
    codes: Codes
    signatures: Signatures

    @classmethod
    def of(cls, corpus: Corpus, digests: array[int]) -> ShinglePart:
        """Return the part for the texts of a corpus."""
        texts = CorpusShingles(corpus)
        each = [texts.of(place) for place in range(len(corpus))]
        sizes = np.array([len(codes) for codes in each], dtype=np.int64)
        codes = np.concatenate([np.empty(0, dtype=np.uint64), *each])
        return cls(np.array(digests, dtype=np.uint64), sizes, codes, texts.list_signatures())


class GatheredShingles:
    """The shingles of texts that other processes read. Add all parts, in order, before using any. Memory: 136
    bytes per text; shingles are in a temporary file, eight bytes each."""

    def __init__(self) -> None:
        self._ends, self._digests, self._signatures = array("q"), array("Q"), bytearray()
        self._file = tempfile.SpooledTemporaryFile(CHUNK * _BYTES, prefix="edgen-")  # noqa: SIM115 - kept open

    def add(self, part: ShinglePart) -> None:
        """Add the next texts. Raises StoppedError if the disk is full."""
        end = self._ends[-1] if self._ends else 0
        self._ends.frombytes((np.cumsum(part.sizes, dtype=np.int64) + end).tobytes())
        self._digests.frombytes(part.digests.tobytes())
        self._signatures += part.signatures.tobytes()
        write_words(self._file, part.codes.data)

    def list_digests(self, count: int) -> Codes:
        """Return the digest of each text. Raises RunError unless there are `count` texts."""
        if len(self._digests) != count:
            raise RunError("The run changed while it was measured. Run the command again.")
        return np.frombuffer(self._digests, dtype=np.uint64)

    @property
    def filled(self) -> Indices:
        """The places of the texts that hold a word."""
        return np.flatnonzero(np.diff(np.frombuffer(self._ends, dtype=np.int64), prepend=0)).astype(np.int64)

    def list_signatures(self) -> Signatures:
        """Return the signatures of the filled texts."""
        return np.frombuffer(self._signatures, dtype=np.uint8).reshape(-1, BANDS * ROWS)

    def of(self, place: int) -> Codes:
        """Return the different shingles of one text, in order."""
        start, end = self._ends[place - 1] if place else 0, self._ends[place]
        self._file.seek(start * _BYTES)
        return np.frombuffer(self._file.read((end - start) * _BYTES), dtype=np.uint64)


def digest_turns(turns: Iterable[Turn]) -> int:
    """Return a 64-bit hash of a text's roles and turns."""
    said = "".join([f"{turn.role} {len(turn.text)} {turn.text}" for turn in turns])
    return hash64(said)


def _hash_all_shingles(hashes: Codes, ends: Ends) -> tuple[Codes, Indices]:
    """Return the shingles of some texts, text after text, and the number of each text's. `hashes`: of the
    words. `ends`: the end of each text in `hashes`.

    A text without words has no shingle. A text of one or two words is one shingle, which no longer text has.
    """
    lengths = np.diff(ends, prepend=0)
    codes, whole = hashes.copy(), np.ones(len(hashes), dtype=bool)
    for k in range(1, SHINGLE):
        codes *= _BASE
        codes[:-k] += hashes[k:]
        last = ends - k
        whole[last[last >= 0]] = False
    for text in np.flatnonzero((lengths > 0) & (lengths < SHINGLE)):
        at = ends[text] - lengths[text]
        whole[at] = True
        codes[at] = _of_short(hashes[at : ends[text]])
    return codes[whole], np.maximum(lengths - SHINGLE + 1, lengths > 0)


def _of_short(hashes: Codes) -> np.uint64:
    """Return the only shingle of a text of one or two words."""
    code = hashes[:1].copy()
    for one in hashes[1:]:
        code = code * _BASE + one
    return np.uint64(~(code * _BASE + np.uint64(len(hashes)))[0])
