"""Digests: short names made from a thing's whole content. Equal content gives equal names on any machine.

`DigestTable` holds digests of files of any size in 13 or 27 bytes an entry; a `dict` takes about 130.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.files import open_regular


def compute_sha256(data: str | bytes) -> str:
    """Return 64 hexadecimal digits; for a text, of its UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def compute_sha256_of_file(path: Path) -> str:
    """Return `compute_sha256` of a file's bytes. Raises OSError for a link and for anything but a regular
    file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_SEAL = re.compile(rb',\n  "sha256": "([^"\n]*)"\n}\s*\Z')


def seal(document: bytes) -> bytes:
    """Return a JSON object, indented by two spaces, with the digest of its text as an added last key."""
    body = document.rstrip().removesuffix(b"}").rstrip()
    return body + f',\n  "sha256": "{compute_sha256(body)}"\n}}'.encode()


def is_sealed_as_written(document: bytes) -> bool | None:
    """Return whether a document that `seal` returned is unchanged; None for one without a digest."""
    found = _SEAL.search(document)
    return None if found is None else compute_sha256(document[: found.start()]).encode() == found[1]


def compute_fingerprint(facts: Any, digits: int = 16) -> str:
    """Return hexadecimal digits for plain values or structs; independent of the order of keys."""
    return compute_sha256(msgspec.json.encode(facts, order="deterministic"))[:digits]


def hash64(data: str | bytes) -> int:
    """Return an evenly distributed number in [0, 2**64); for a text, of its UTF-8, lone surrogates
    included."""
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


_SHARDS = 256  # each shard grows separately, so growing needs little memory
_FIRST = 16  # slots of a shard, a power of two


class DigestTable:
    """A table from evenly distributed digests in [0, 2**64) to numbers; with `numbered` False, a set of
    digests."""

    def __init__(self, *, numbered: bool = True) -> None:
        self._numbered = numbered
        self._keys = [array("Q") for _ in range(_SHARDS)]
        self._values = [array("Q") for _ in range(_SHARDS)]
        self._counts = [0] * _SHARDS
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def get(self, digest: int) -> int | None:
        """Return the number of a digest, 0 without numbers; None if it is missing."""
        shard, place = self._find(digest or 1)
        if place < 0:
            return None
        return self._values[shard][place] if self._numbered else 0

    def setdefault(self, digest: int, number: int = 0) -> int | None:
        """Add a digest with a number in [0, 2**64). Return None if the digest is new, else its number, as
        `get` does."""
        digest = digest or 1  # 0 marks a free slot
        shard, place = self._find(digest)
        if place >= 0:
            return self._values[shard][place] if self._numbered else 0
        if 4 * self._counts[shard] >= 3 * len(self._keys[shard]):
            self._grow(shard)
            shard, place = self._find(digest)
        self._put(shard, ~place, digest, number)
        self._counts[shard] += 1
        self._size += 1
        return None

    def _find(self, digest: int) -> tuple[int, int]:
        """Return a digest's shard and slot. For a missing digest, the slot is ~slot of a free one, or -1 if
        the shard has no slots yet."""
        shard = digest & (_SHARDS - 1)
        keys = self._keys[shard]
        if not keys:
            return shard, -1
        last = len(keys) - 1
        place = (digest >> 8) & last
        while (found := keys[place]) != digest:
            if not found:
                return shard, ~place
            place = (place + 1) & last
        return shard, place

    def _put(self, shard: int, place: int, digest: int, number: int) -> None:
        self._keys[shard][place] = digest
        if self._numbered:
            self._values[shard][place] = number

    def _grow(self, shard: int) -> None:
        """Double a shard's slots."""
        keys, values = self._keys[shard], self._values[shard]
        size = max(_FIRST, 2 * len(keys))
        self._keys[shard] = array("Q", bytes(8 * size))
        if self._numbered:
            self._values[shard] = array("Q", bytes(8 * size))
        for old, digest in enumerate(keys):
            if digest:
                self._put(shard, ~self._find(digest)[1], digest, values[old] if self._numbered else 0)
