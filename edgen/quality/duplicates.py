"""Conversations that are the same, or nearly: within a side of the split and across.

Exact: the same roles say the same, to the letter. Near: see `alike`, over the words of a conversation. Those
that are exactly the same count as near too, whatever they say. Their share has no interval: whether one
conversation has a near-duplicate hangs on all the others, so neither conversations nor scenarios are
independent draws of it, and it rises with the size of the data.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from edgen.model import Turn
from edgen.pairing.intervals import Estimate
from edgen.quality.alike import THRESHOLD, matches, near_duplicates
from edgen.quality.corpus import Corpus
from edgen.quality.model import Sample, Words
from edgen.quality.results import Alike, Duplicates

__all__ = ["DuplicatesMeasure", "near_duplicates"]

EXAMPLES = 10
_SIDES = ("train", "test", "none")


class DuplicatesMeasure:
    """Looks at `corpus`, which somebody else fills with the same conversations."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._ids, self._id_ends = bytearray(), array("q")
        self._texts, self._sides, self._scenarios = array("Q"), array("b"), array("q")

    def add(self, sample: Sample, words: Words) -> None:  # noqa: ARG002 - as every measure
        self._ids += sample.id.encode("utf-8", "surrogatepass")
        self._id_ends.append(len(self._ids))
        self._texts.append(digest(sample.turns))
        self._sides.append(_SIDES.index(sample.split or "none"))
        self._scenarios.append(sample.scenario.index)

    def result(self) -> Duplicates:
        sides = np.array(self._sides, dtype=np.int8)
        texts, group = np.unique(np.array(self._texts, dtype=np.uint64), return_inverse=True)
        own, other = _exact(group, sides)
        # who was told of nothing has nothing to look at, whatever the corpus holds
        found = matches(self._corpus, sides) if len(sides) else []
        for match in found:
            (other if sides[match.a] != sides[match.b] else own)[[match.a, match.b]] = True
        near = own | other
        test, train = sides == _SIDES.index("test"), sides == _SIDES.index("train")
        across = _exact_across(group, test, train)
        for match in found:
            for one, twin in ((match.a, match.b), (match.b, match.a)):
                across[one] |= test[one] and train[twin]
        return Duplicates(
            threshold=THRESHOLD,
            exact=len(sides) - len(texts),
            near=int(np.count_nonzero(near)),
            share=self._share(near),
            within={
                name: int(np.count_nonzero(own & (sides == side)))
                for side, name in enumerate(_SIDES)
                if np.any(sides == side)
            },
            across=int(np.count_nonzero(across)),
            examples=tuple(
                Alike(self._id(match.a), self._id(match.b), match.similarity) for match in found[:EXAMPLES]
            ),
        )

    def _id(self, place: int) -> str:
        start = self._id_ends[place - 1] if place else 0
        return self._ids[start : self._id_ends[place]].decode("utf-8", "surrogatepass")

    def _share(self, near: NDArray[np.bool_]) -> Estimate | None:
        if not len(near):
            return None
        scenarios = len(np.unique(np.array(self._scenarios)))
        return Estimate(value=float(np.mean(near)), low=None, high=None, n=len(near), scenarios=scenarios)


def digest(turns: Iterable[Turn]) -> int:
    """A number of 64 bits for what is said: two that differ share one with a chance of 1 in 2**64."""
    said = "".join([f"{turn.role} {len(turn.text)} {turn.text}" for turn in turns])
    return int.from_bytes(hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _exact(group: NDArray[np.intp], sides: NDArray[np.int8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each text is exactly another's of its own side, and of another side."""
    cell = group * len(_SIDES) + sides
    here, everywhere = np.bincount(cell)[cell] if len(cell) else cell, np.bincount(group)[group]
    return here > 1, everywhere > here


def _exact_across(
    group: NDArray[np.intp], test: NDArray[np.bool_], train: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether each text is of the test side and exactly one of train's."""
    return test & (np.bincount(group, weights=train)[group] > 0)
