"""Scores of rankings: recall at k, mean reciprocal rank, mean average precision.

Each example is given by the ranks (from 1) of its right answers, 0 for a missing one. Recall at k: the share
of examples with a right answer among the first k (R@k in response selection, of 100 candidates; Lowe, Pow,
Serban and Pineau 2015, SIGDIAL). MRR: the mean of 1 / rank of the first right answer, 0 without one (Voorhees
1999, TREC-8). MAP: the mean of average precision, the sum over right answers of the share of right ones up to
their rank, divided by their number (Manning, Raghavan and Schuetze 2008, Introduction to Information
Retrieval, section 8.4). `official` is DSTC7's ranking score: the mean of recall at 10 and MRR.

DSTC7's own program uses the number of a right answer in the truth file instead of its number among those
found, so its MAP depends on the file's order. `map_in_file_order` is that score.

Intervals are expanded 95% percentiles of a seeded bootstrap over examples (`edgen.stats.resampling`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from edgen.plugin.statistics import Estimate, bootstrap, interval, round_number

CUTS = (1, 2, 5, 10, 50, 100)
_OFFICIAL = CUTS.index(10)
_RESAMPLES = 1000


class RankingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of rankings. `recall` is by k. Every estimate is over all examples; those without a ranking
    count as not found."""

    recall: dict[int, Estimate]
    mrr: Estimate
    map: Estimate
    map_in_file_order: Estimate
    official: Estimate


def ranking_figures(places: Sequence[Sequence[int]]) -> RankingFigures:
    """Return the scores of examples, at least one, given the ranks of their right answers in the order of the
    truth."""
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
    """Return an example's contribution to each score."""
    found = sorted(place for place in places if place)
    hits = [float(bool(found) and found[0] <= k) for k in CUTS]
    reciprocal = 1 / found[0] if found else 0.0
    precision = sum(count / place for count, place in enumerate(found, 1)) / len(places)
    in_file_order = sum(count / place for count, place in enumerate(places, 1) if place) / len(places)
    return [*hits, reciprocal, precision, in_file_order, (hits[_OFFICIAL] + reciprocal) / 2]
