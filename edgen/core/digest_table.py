"""A map from 64-bit digests to numbers that takes 13 or 27 bytes an entry: for ids of files of any size.

A `dict` of such numbers takes about 130 bytes an entry.
"""

from __future__ import annotations

from array import array

_SHARDS = 256  # a shard that is full grows alone, so that growing needs little memory
_FIRST = 16  # slots of a shard, a power of two


class DigestTable:
    """Digests in [0, 2**64), evenly distributed, with a number each. `numbered` False: without numbers."""

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
        """Add a digest with a number in [0, 2**64). Return None if it is new, else the number that it has, as
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
        """Return a digest's shard, and its slot there; ~slot of the free one for it, -1 without any."""
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
