"""Nearly equal texts among many: MinHash finds candidates, the Jaccard index decides.

A text is the set of its word 3-grams ("shingles": Broder 1997, SEQUENCES); a text of fewer than three words
is one shingle. Two texts are nearly the same if these sets have a Jaccard index of at least 0.8, the
threshold of Lee et al. 2022 (ACL, arXiv 2107.06499) on edit similarity. Candidates are texts whose MinHash
signatures of 120 values (rensa) agree in one of 20 bands of 6 (Leskovec, Rajaraman and Ullman 2020, Mining of
Massive Datasets, 3.4): 99.8% of the pairs at 0.8, more above. Shingles are hashes of words, so several
processes can compute them independently. If very many texts share a band, each is compared with only a few of
them, so the work stays linear. Memory: 120 bytes per text; words are read again for the candidates.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgen.evaluation.texts.corpus import Codes, Corpus
from edgen.evaluation.texts.shingles import BANDS, ROWS, CorpusShingles, Indices, Shingles, Signatures

THRESHOLD = 0.8
_NEIGHBOURS = 8  # maximum neighbours of a text that are compared in a band
_TRIES = 8  # after this many failed candidates, a text is not compared any more
_SLACK = 0.11  # three standard errors of the share of 120 values that agree, at 0.8
_PAIRS_AT_ONCE = 1 << 14

Done = NDArray[np.bool_]
Rows = NDArray[np.int32]


class Match(NamedTuple):
    """Texts `a` < `b`, by their places, and the Jaccard index of their shingles."""

    a: int
    b: int
    similarity: float


def find_matches(texts: Shingles, sides: NDArray[np.int8]) -> list[Match]:
    """Return near-duplicate pairs, the most similar first. Not all pairs: but each text with a near-duplicate
    on its own side of the split is in a pair within the side, and each with one on another side in a pair
    across. `sides`: the side of each text, shape (texts,)."""
    first, second, similar = array("q"), array("q"), array("d")
    failed: set[int] = set()
    # (texts, 2): a pair is known on its own side, on another side; or the text has failed too often
    settled = np.zeros((len(sides), 2), dtype=bool)
    tries = np.zeros(len(sides), dtype=np.int16)

    def are_settled(a: Indices, b: Indices) -> Done:
        kind = (sides[a] != sides[b]).astype(np.int8)
        both: Done = settled[a, kind] & settled[b, kind]
        return both

    for a, b in _list_candidates(texts, sides, are_settled):
        kind = int(sides[a] != sides[b])
        pair = a * len(sides) + b
        if (settled[a, kind] and settled[b, kind]) or pair in failed:  # several bands may yield the same pair
            continue
        similarity = _compute_jaccard(texts.of(a), texts.of(b))
        if similarity >= THRESHOLD:
            settled[[a, b], kind] = True
            first.append(a)
            second.append(b)
            similar.append(similarity)
        else:
            failed.add(pair)
            tries[[a, b]] += 1
            settled[[place for place in (a, b) if tries[place] > _TRIES]] = True
    order = np.lexsort((np.array(second), np.array(first), -np.array(similar)))
    return [Match(first[at], second[at], similar[at]) for at in order]


def walk(corpus: Corpus, keep: Callable[[int, bool], bool]) -> None:
    """Call `keep(place, near)` for each text in order. `near`: it is a near-duplicate of an earlier kept
    text. `keep` returns whether to keep the text.

    The result depends only on the texts and their order: a dropped near-duplicate is represented by its kept
    text.
    """
    texts = CorpusShingles(corpus)
    first, second = _pair_with_earlier(texts, len(corpus))
    starts = np.searchsorted(second, np.arange(len(corpus) + 1))
    stands_for = np.full(len(corpus), -1, dtype=np.int64)  # the kept text that represents each text; -1: none
    for place in range(len(corpus)):
        near = -1
        others = stands_for[first[starts[place] : starts[place + 1]]]
        for other in dict.fromkeys(int(one) for one in others if one >= 0):
            if _compute_jaccard(texts.of(other), texts.of(place)) >= THRESHOLD:
                near = other
                break
        stands_for[place] = place if keep(place, near >= 0) else near


def _pair_with_earlier(texts: Shingles, count: int) -> tuple[Indices, Indices]:
    """Return candidate pairs among `count` texts, as (earlier places, later places), ordered by the later
    place."""
    places = texts.filled
    found = np.empty(0, dtype=np.int64)
    if len(places) < 2:
        return found, found
    signatures = texts.list_signatures()
    for band in range(BANDS):
        shared = [*_find_sharing(_join_band(signatures, band), np.zeros(len(places), dtype=np.int8))]
        of_band = [found]
        for one, other in _pair_neighbours([rows for rows in shared if len(rows[0])]):
            likely = _compute_agreement(signatures, one, other) >= THRESHOLD - _SLACK
            of_band.append(places[other[likely]] * count + places[one[likely]])
        found = np.unique(np.concatenate(of_band))
    return found % count, found // count


def _list_candidates(
    texts: Shingles, sides: NDArray[np.int8], done: Callable[[Indices, Indices], Done]
) -> Iterator[tuple[int, int]]:
    """Yield candidate pairs that are not `done`, band by band, the likeliest first; then all bands again for
    less likely pairs. Pairs may repeat.

    Only the pairs of one band and one distance are in memory: with many similar texts, all bands would have
    hundreds of pairs per text.
    """
    places = texts.filled
    if len(places) < 2:
        return
    signatures = texts.list_signatures()
    shared = [
        rows
        for band in range(BANDS)
        for rows in _find_sharing(_join_band(signatures, band), sides[places])
        if len(rows[0])
    ]
    for step in (2, 1, 0, -1, -2):
        least = THRESHOLD + step * _SLACK / 2
        for first, second in _pair_neighbours(shared):
            open_ = ~done(places[first], places[second])
            first, second = first[open_], second[open_]
            agreement = _compute_agreement(signatures, first, second)
            likely = np.flatnonzero(agreement >= least)
            for at in likely[np.argsort(-agreement[likely], kind="stable")]:
                yield int(places[first[at]]), int(places[second[at]])


def _join_band(signatures: Signatures, band: int) -> Codes:
    """Return the values of one band as one number per text, shape (texts,)."""
    key = np.zeros(len(signatures), dtype=np.uint64)
    for value in signatures[:, band * ROWS : (band + 1) * ROWS].T:
        key = (key << np.uint64(8)) | value
    return key


def _find_sharing(key: Codes, sides: NDArray[np.int8]) -> Iterator[tuple[Rows, Rows]]:
    """Yield (rows, numbers of their keys) of the rows that share a key with another row, ordered by key: once
    with all sides together; if there are several sides, once more ordered by side within keys."""
    order = np.argsort(key, kind="stable")
    new = np.append(True, key[order[1:]] != key[order[:-1]])
    alone = new & np.append(new[1:], True)
    order, group = order[~alone].astype(np.int32), np.cumsum(new[~alone], dtype=np.int32)
    yield order, group
    if np.any(sides != sides[:1]):
        by_side = np.lexsort((sides[order], group))
        yield order[by_side], group  # the order within groups changes, groups do not


def _pair_neighbours(shared: Sequence[tuple[Rows, Rows]]) -> Iterator[tuple[Indices, Indices]]:
    """Yield pairs of rows that are near each other among the rows that share a band."""
    for order, group in shared:
        for step in range(1, min(_NEIGHBOURS, len(order) - 1) + 1):
            same = np.flatnonzero(group[step:] == group[:-step])
            if len(same) == 0:
                break
            one, other = order[same].astype(np.int64), order[same + step].astype(np.int64)
            yield np.minimum(one, other), np.maximum(one, other)


def _compute_agreement(signatures: Signatures, first: Indices, second: Indices) -> NDArray[np.float32]:
    """Return the share of equal values in each pair of signatures, shape (pairs,); it estimates the Jaccard
    index."""
    found = np.empty(len(first), dtype=np.float32)
    for start in range(0, len(first), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        found[part] = np.mean(signatures[first[part]] == signatures[second[part]], axis=1)
    return found


def _compute_jaccard(a: Codes, b: Codes) -> float:
    """Return the Jaccard index of two sets, given as sorted arrays; at least one must not be empty."""
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
