"""Which of many texts are nearly the same: MinHash to find candidates, the Jaccard index to decide.

A text is the set of its word 3-grams ("shingles": Broder 1997, SEQUENCES; one of fewer than three words is
one shingle). Two texts are nearly the same where these sets have a Jaccard index of at least 0.8. That is the
number at which Lee et al. 2022 (ACL, arXiv 2107.06499) draw the line too, who find candidates by MinHash as
well but decide by edit similarity: deciding by the Jaccard index of 3-grams is edgen's own. Candidates are
texts whose MinHash signatures of 120 values (rensa) agree in one of 20 bands of 6 (Leskovec, Rajaraman and
Ullman 2020, Mining of Massive Datasets, 3.4): 99.8% of the pairs at 0.8 do, and more above. Where very many
texts share a band, each is compared with a few of them, so that the work stays linear.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgen.quality.corpus import NONE, Codes, Corpus, ngrams

THRESHOLD = 0.8
SHINGLE = 3
BANDS, ROWS = 20, 6
SEED = 42
_NEIGHBOURS = 8  # of a text in each band that it shares with more
_TRIES = 8  # candidates of a text that turn out not to be alike, before it is left alone
_SLACK = 0.11  # three standard errors of the share of 120 values that agree, at 0.8
_AT_ONCE = 1024  # texts
_PAIRS_AT_ONCE = 1 << 14
_ODD = np.uint64(0x9E3779B97F4A7C15)

Indices = NDArray[np.int64]
Done = NDArray[np.bool_]
K = TypeVar("K", bound=Hashable)


class Match(NamedTuple):
    """Texts `a` < `b`, by their places, and the Jaccard index of their shingles."""

    a: int
    b: int
    similarity: float


def near_duplicates(texts: Iterable[tuple[K, Sequence[str]]], threshold: float = THRESHOLD) -> set[K]:
    """The keys of the texts, given as words, that have another one at least `threshold` alike."""
    corpus, keys = Corpus(), []
    for key, words in texts:
        keys.append(key)
        corpus.add([words])
    sides = np.zeros(len(keys), dtype=np.int8)
    return {keys[place] for match in matches(corpus, sides, threshold) for place in (match.a, match.b)}


def matches(corpus: Corpus, sides: NDArray[np.int8], threshold: float = THRESHOLD) -> list[Match]:
    """Pairs that are alike, the most alike first: enough of them that every text which has such a one on its
    own side, or on another, is in one of that kind. `sides` says which side of a split each text is on."""
    found: list[Match] = []
    failed: set[tuple[int, int]] = set()
    # has one on its own side, on another; or is left alone
    settled = np.zeros((len(sides), 2), dtype=bool)
    tries = np.zeros(len(sides), dtype=np.int16)

    def done(a: Indices, b: Indices) -> Done:
        kind = (sides[a] != sides[b]).astype(np.int8)
        both: Done = settled[a, kind] & settled[b, kind]
        return both

    for a, b in _candidates(corpus, sides, threshold, done):
        kind = int(sides[a] != sides[b])
        if (settled[a, kind] and settled[b, kind]) or (a, b) in failed:  # which bands bring together again
            continue
        similarity = _jaccard(_of_text(corpus, a), _of_text(corpus, b))
        if similarity >= threshold:
            settled[[a, b], kind] = True
            found.append(Match(a, b, similarity))
        else:
            failed.add((a, b))
            tries[[a, b]] += 1
            settled[[place for place in (a, b) if tries[place] > _TRIES]] = True
    return sorted(found, key=lambda match: (-match.similarity, match.a, match.b))


def _candidates(
    corpus: Corpus, sides: NDArray[np.int8], threshold: float, done: Callable[[Indices, Indices], Done]
) -> Iterator[tuple[int, int]]:
    """Pairs that may be alike and are not `done`, band by band, and all bands anew for the less likely; some more than once.

    No more than the pairs of one band and one distance are held: where all texts are alike, those of all
    bands would be hundreds a text.
    """
    places = np.flatnonzero(np.diff(corpus.ends, prepend=0))  # texts that hold a word
    if len(places) < 2:
        return
    signatures = _signatures(corpus, places)
    for step in (2, 1, 0, -1, -2):
        least = threshold + step * _SLACK / 2
        for first, second in _sharing_a_band(signatures, sides[places]):
            open_ = ~done(places[first], places[second])
            first, second = first[open_], second[open_]
            agreement = _agreement(signatures, first, second)
            likely = np.flatnonzero(agreement >= least)
            for at in likely[np.argsort(-agreement[likely], kind="stable")]:
                yield int(places[first[at]]), int(places[second[at]])


def _sharing_a_band(
    signatures: NDArray[np.uint32], sides: NDArray[np.int8]
) -> Iterator[tuple[Indices, Indices]]:
    """Pairs of rows that share a band: neighbours among all that share it, and among those of one side."""
    for band in range(BANDS):
        key = np.zeros(len(signatures), dtype=np.uint64)
        for value in signatures[:, band * ROWS : (band + 1) * ROWS].T:
            key = (key ^ value) * _ODD
            key ^= key >> np.uint64(29)
        for order in (np.argsort(key, kind="stable"), np.lexsort((sides, key))):
            ordered = key[order]
            for step in range(1, min(_NEIGHBOURS, len(order) - 1) + 1):
                same = np.flatnonzero(ordered[step:] == ordered[:-step])
                if len(same) == 0:
                    break
                one, other = order[same], order[same + step]
                yield np.minimum(one, other), np.maximum(one, other)


def _agreement(signatures: NDArray[np.uint32], first: Indices, second: Indices) -> NDArray[np.float32]:
    """The share of values in which each pair of signatures agrees: an estimate of their Jaccard index."""
    found = np.empty(len(first), dtype=np.float32)
    for start in range(0, len(first), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        found[part] = np.mean(signatures[first[part]] == signatures[second[part]], axis=1)
    return found


def _signatures(corpus: Corpus, places: Indices) -> NDArray[np.uint32]:
    """The MinHash signature of each of these texts, which all hold a word."""
    from rensa import RMinHash

    rows = []
    for start in range(0, len(places), _AT_ONCE):
        texts = [_of_text(corpus, int(place)) for place in places[start : start + _AT_ONCE]]
        offsets = np.cumsum([0, *map(len, texts)]).astype(np.uint64)
        # the numbers are dense; what is hashed is to look like hashes
        hashes = np.concatenate(texts) * _ODD
        hashes ^= hashes >> np.uint64(31)
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, BANDS * ROWS, SEED)
        rows.append(np.array(matrix.to_rows(), dtype=np.uint32))
    return np.concatenate(rows)


def _of_text(corpus: Corpus, place: int) -> Codes:
    """The different shingles of one text."""
    ends = corpus.ends
    ids = corpus.ids[ends[place - 1] if place else 0 : ends[place]]
    n = min(SHINGLE, len(ids))
    if n == 0:
        return np.array([], dtype=np.uint64)
    codes = ngrams(ids, np.array([len(ids)]), n, corpus.types)
    # the one of a text with fewer words is no other's: counted from the end, odd for two words
    return np.unique(codes[codes != NONE]) if n == SHINGLE else ~(codes[:1] * 2 + np.uint64(n - 1))


def _jaccard(a: Codes, b: Codes) -> float:
    """The Jaccard index of two sets of which one at least is not empty, given as sorted arrays."""
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
