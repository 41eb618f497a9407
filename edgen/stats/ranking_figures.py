"""Rankings against the right answers: recall at k, mean reciprocal rank, mean average precision.

Of each example there are the places (from 1) at which its right answers stand in the ranking, 0 for one that is not in
it. Recall at k: the share of examples with a right answer among the first k (what response selection calls R@k, of
100 candidates; Lowe, Pow, Serban and Pineau 2015, SIGDIAL). MRR: the mean of 1 / place of the first right answer, 0
without one (Voorhees 1999, TREC-8). MAP: the mean of average precision, the sum over right answers of the share of
right ones down to their place, divided by how many there are (Manning, Raghavan and Schuetze 2008, Introduction to
Information Retrieval, section 8.4). `official` is DSTC7's order of merit: the mean of recall at 10 and MRR.

DSTC7's own program takes the number of a right answer in the truth file for its number among those found; so its MAP
depends on the order of the file. `map_in_file_order` is that figure.

Intervals are expanded percentiles of a seeded bootstrap over examples (`edgen.stats.resampling`), at 95%.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from edgen.stats.intervals import Estimate
from edgen.stats.resampling import bootstrap, interval, round_number

CUTS = (1, 2, 5, 10, 50, 100)
_OFFICIAL = CUTS.index(10)
_RESAMPLES = 1000


class RankingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`recall` by k. Every estimate is over all examples; those without a ranking count as not found."""

    recall: dict[int, Estimate]
    mrr: Estimate
    map: Estimate
    map_in_file_order: Estimate
    official: Estimate


def ranking_figures(places: Sequence[Sequence[int]]) -> RankingFigures:
    """The figures of examples, at least one; each has the places of its right answers, in the order of the truth."""
    table = np.array([_row(one) for one in places], dtype=np.float64)
    n = len(table)
    means = table.mean(axis=0)
    drawn = bootstrap(table, np.random.default_rng(0), _RESAMPLES) / n if n > 1 else None
    estimates = []
    for column, mean in enumerate(means):
        low, high = (None if drawn is None else interval(drawn[:, column], n)) or (None, None)
        estimates.append(Estimate(value=round_number(float(mean)), low=low, high=high, n=n, scenarios=n))
    recall = dict(zip(CUTS, estimates, strict=False))
    mrr, mean_precision, in_file_order, official = estimates[len(CUTS) :]
    return RankingFigures(
        recall=recall, mrr=mrr, map=mean_precision, map_in_file_order=in_file_order, official=official
    )


def _row(places: Sequence[int]) -> list[float]:
    """What an example adds to each figure."""
    found = sorted(place for place in places if place)
    hits = [float(bool(found) and found[0] <= k) for k in CUTS]
    reciprocal = 1 / found[0] if found else 0.0
    precision = sum(count / place for count, place in enumerate(found, 1)) / len(places)
    in_file_order = sum(count / place for count, place in enumerate(places, 1) if place) / len(places)
    return [*hits, reciprocal, precision, in_file_order, (hits[_OFFICIAL] + reciprocal) / 2]
