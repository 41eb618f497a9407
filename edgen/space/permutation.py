"""Pseudo-random permutations of any size, computed a point at a time and equal on every machine."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence

ROUNDS = 6  # four rounds make some orders of five or fewer points visibly more frequent than others
MASK = 2**64 - 1


def mix(value: int) -> int:
    """Return `value` mixed to 64 bits: the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    value &= MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


class Permutation:
    """A bijection of [0, size), determined by `ROUNDS` keys of 64 bits each. For shuffling, not for secrets.

    It is a generalised Feistel network over Z_a x Z_b, with a and b near the square root of `size` and a*b
    just above it, and cycle walking for the points in between (Black and Rogaway, "Ciphers with arbitrary
    finite domains", 2002). Each round adds a function of one half to the other half. A round can be reversed
    by subtraction, so the network is a bijection for any `mix`.
    """

    def __init__(self, size: int, keys: Sequence[int]) -> None:
        self.size = size
        self.a = math.isqrt(size - 1) + 1
        self.b = -(-size // self.a)
        self.rounds = tuple(zip(keys[::2], keys[1::2], strict=True))

    def __call__(self, point: int) -> int:
        a, b = self.a, self.b
        while True:
            left, right = divmod(point, b)
            for key, next_key in self.rounds:
                left = (left + mix(right + key)) % a
                right = (right + mix(left + next_key)) % b
            point = left * b + right
            if point < self.size:  # fewer than one point in sqrt(size) needs another round
                return point


def derive_permutation(size: int, name: str, key: bytes) -> Permutation:
    """Return the permutation of [0, size) determined by a name and a key of at most 64 bytes."""
    digest = hashlib.blake2b(name.encode(), digest_size=8 * ROUNDS, key=key).digest()
    return Permutation(size, struct.unpack(f"<{ROUNDS}Q", digest))
