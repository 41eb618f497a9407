"""Texts that say the same, or nearly: by the Jaccard index of their word 3-grams."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.reading.detect import words

ALIKE = 0.8  # the Jaccard index from which texts are nearly the same, as in `edgen stats`
Shingles = frozenset[tuple[str, ...]]
_SHINGLE = 3


def are_alike(a: str, b: str) -> bool:
    """Return whether two texts say the same, or nearly."""
    one, other = shingles_of(words(a)), shingles_of(words(b))
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) >= ALIKE


def shingles_of(said: Sequence[str]) -> Shingles:
    """Return the different word 3-grams of a text; of fewer than three words, these themselves."""
    if len(said) < _SHINGLE:
        return frozenset({tuple(said)})
    return frozenset(zip(said, said[1:], said[2:], strict=False))
