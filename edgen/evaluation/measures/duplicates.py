"""Exact and near-duplicate conversations, within a side of the split and across sides.

Near-duplicates are found by `near_duplicates`, over the words of a conversation; exact duplicates always
count as near, too. The share has no interval: whether a conversation has a near-duplicate depends on all
others, and becomes more likely with more data.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.near_duplicates import THRESHOLD, find_matches
from edgen.evaluation.texts.shingles import CorpusShingles, GatheredShingles, Shingles, digest_turns
from edgen.plugin import Measure, OwnCount, OwnTexts, Sample, Tally, Total, Words
from edgen.plugin.measures import Aggregate, ByKey, Sentence, Shared, TablePanel
from edgen.plugin.statistics import Estimate
from edgen.plugin.texts import percent

EXAMPLES = 10
_SIDES = ("train", "test", "none")


class SimilarPair(msgspec.Struct, frozen=True):
    """Two near-duplicate conversations; `similarity` is the Jaccard index of their shingles."""

    a: str
    b: str
    similarity: float


class Duplicates(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of duplicates."""

    threshold: float  # minimum similarity of near-duplicates, in [0, 1]
    exact: int  # conversations with exactly the text of an earlier one
    near: int  # conversations with a near-duplicate, exact ones included
    share: Estimate | None  # share of near-duplicates
    within: dict[str, int]  # by split: conversations with a near-duplicate in the same split
    across: int  # test conversations with a near-duplicate in train
    examples: tuple[SimilarPair, ...]  # the most similar pairs


class DuplicatesMeasure(OwnCount, OwnTexts, Measure[Duplicates]):
    name = "duplicates"
    definition = (
        "Near: the sets of word 3-grams (Broder 1997) have a Jaccard index of at least 0.8 (the threshold "
        "of Lee et al. 2022, arXiv 2107.06499, for edit similarity); candidates by MinHash in 20 bands of "
        "6, decided by the true index. Exact: the same roles say the same, character for character. The "
        "share has no interval, because conversations depend on each other."
    )
    order = 5
    section = "duplicates"

    compares_all = True
    aggregates = (
        Aggregate(
            "threshold",
            note="Nearly the same: at least {it} of all word 3-grams of two conversations are in both.",
        ),
        Total("exact", label="exactly the same", says="{it:,} as an earlier one"),
        Total("near", label="nearly the same", says="{it:,} = {share}"),
        Tally("within", label="  within", names={"none": "of no split"}),
        Total("across", label="  across", says="{it:,} of test with one in train", if_any=True),
        ByKey(
            "examples",
            most=3,
            each=(Aggregate("similarity", label="  for example", says="{a:id} {b:id} {it:.2f}"),),
        ),
    )
    panels = (
        Sentence(
            "near",
            "{it:conversation} of {share:n} nearly the same as another one (at least {threshold:.0%} alike), {exact:,} "
            "exactly the same as an earlier one.",
            "No conversation is nearly the same as another one (at least {threshold:.0%} alike).",
        ),
        TablePanel(
            "The most alike", "examples", ("one", "another", "alike"), ("{a}", "{b}", "{similarity:.1%}"), style=""
        ),
    )  # fmt: skip

    def start(self, shared: Shared) -> DuplicatesCount:
        return DuplicatesCount(shared.corpus if shared.gathered is None else shared.gathered)

    def examples(self, value: Duplicates) -> Iterator[tuple[str, str]]:
        for pair in value.examples:
            yield pair.a, f"most similar to another: {percent(pair.similarity, 0)} like {pair.b}"


class DuplicatesCount:
    """The running count. `source`: a corpus that is filled with the same conversations elsewhere, or a
    function that returns the shingles gathered by other processes."""

    def __init__(self, source: Corpus | Callable[[], GatheredShingles]) -> None:
        self._source = source
        self._ids, self._id_ends = bytearray(), array("q")
        self._texts, self._sides, self._scenarios = array("Q"), array("b"), array("q")

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        self._ids += sample.id.encode("utf-8", "surrogatepass")
        self._id_ends.append(len(self._ids))
        if isinstance(self._source, Corpus):
            self._texts.append(digest_turns(sample.turns))
        self._sides.append(_SIDES.index(sample.split or "none"))
        self._scenarios.append(sample.scenario.index)

    def result(self) -> Duplicates:
        sides = np.array(self._sides, dtype=np.int8)
        shingles: Shingles
        if isinstance(self._source, Corpus):
            shingles, digests = CorpusShingles(self._source), np.array(self._texts, dtype=np.uint64)
        else:
            shingles = gathered = self._source()
            digests = gathered.list_digests(len(sides))
        texts, group = np.unique(digests, return_inverse=True)
        own, other = _find_exact(group, sides)
        found = find_matches(shingles, sides)
        for match in found:
            (other if sides[match.a] != sides[match.b] else own)[[match.a, match.b]] = True
        near = own | other
        test, train = sides == _SIDES.index("test"), sides == _SIDES.index("train")
        across = test & (np.bincount(group, weights=train)[group] > 0)
        for match in found:
            for one, twin in ((match.a, match.b), (match.b, match.a)):
                across[one] |= test[one] and train[twin]
        return Duplicates(
            threshold=THRESHOLD,
            exact=len(sides) - len(texts),
            near=int(np.count_nonzero(near)),
            share=self._estimate_share(near),
            within={
                name: int(np.count_nonzero(own & (sides == side)))
                for side, name in enumerate(_SIDES)
                if np.any(sides == side)
            },
            across=int(np.count_nonzero(across)),
            examples=tuple(
                SimilarPair(self._find_id(match.a), self._find_id(match.b), match.similarity)
                for match in found[:EXAMPLES]
            ),
        )

    def _find_id(self, place: int) -> str:
        start = self._id_ends[place - 1] if place else 0
        return self._ids[start : self._id_ends[place]].decode("utf-8", "surrogatepass")

    def _estimate_share(self, near: NDArray[np.bool_]) -> Estimate | None:
        if not len(near):
            return None
        scenarios = len({*self._scenarios})
        return Estimate(value=float(np.mean(near)), low=None, high=None, n=len(near), scenarios=scenarios)


def _find_exact(
    group: NDArray[np.intp], sides: NDArray[np.int8]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return, for each conversation, whether its own side has another with the same text, and whether another
    side has one; two arrays of shape (conversations,)."""
    cell = group * len(_SIDES) + sides
    here, everywhere = np.bincount(cell)[cell] if len(cell) else cell, np.bincount(group)[group]
    return here > 1, everywhere > here


MEASURE = DuplicatesMeasure()
