"""Intervals and p-values for differences of ratios, with scenarios as clusters.

A metric of an arm is a ratio of sums over scenarios. Intervals are percentiles of the ratios, or of their
differences, over resampled scenarios (Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapters 8
and 13; a paired scenario is drawn with both arms' results). Over n clusters these are too short, by the
factor sqrt((n - 1) / n) and by normal quantiles in place of Student's. So the percentiles are moved outwards
by as much (the expanded percentile interval: Hesterberg 2015, What Teachers Should Know About the Bootstrap,
The American Statistician 69).

p-values test the hypothesis that the arms are exchangeable. Paired: in each scenario the sign of d = (n_b - R
d_b) / D_b - (n_a - R d_a) / D_a is drawn anew, D being the arms' total denominators and R the ratio of both
arms together, around which the difference is linear (Cochran 1977, Sampling Techniques, chapter 6); the sum
of all d is the difference itself. If the arms have equal denominators, exchanging them in a scenario only
changes the sign of its d, so the test is exact however rare the event (Fisher 1935, The Design of
Experiments; Ernst 2004, Statistical Science 19); otherwise it is approximate. Unpaired: scenarios are
assigned anew to the two arms, and the statistic is the difference over its standard error. p = (1 + hits) /
(1 + draws) counts the observation as one of the draws (Phipson and Smyth 2010, Stat. Appl. Genet. Mol. Biol.
9).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from edgen.stats.quantiles import t95

Floats = NDArray[np.float64]
FEWEST = 5  # minimum clusters of an interval
_RESAMPLES = 1000
_CELLS = 2_000_000  # maximum weights in memory


def bootstrap(columns: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """Return the sums (resamples, k) of columns (clusters, k) over as many clusters, drawn with
    replacement."""
    clusters = len(columns)
    sums = np.empty((resamples, columns.shape[1]))
    for start, count in _iterate_chunks(resamples, clusters):
        drawn = rng.integers(0, clusters, size=(count, clusters), dtype=np.int64)
        drawn += np.arange(count, dtype=np.int64)[:, None] * clusters
        weights = np.bincount(drawn.ravel(), minlength=count * clusters).reshape(count, clusters)
        sums[start : start + count] = weights.astype(np.float64) @ columns
    return sums


def ratios(sums: Floats) -> Floats:
    """Return ratios (resamples, k) of sums (resamples, 2k), which hold k numerators, then k denominators; NaN
    where a denominator is 0."""
    half = sums.shape[1] // 2
    return divide(sums[:, :half], sums[:, half:], np.nan)


def divide(tops: Floats, bottoms: Floats, default: float = 0.0) -> Floats:
    """Return tops / bottoms; `default` where a denominator is not above 0."""
    found: Floats = np.divide(tops, bottoms, out=np.full_like(tops, default), where=bottoms > 0)
    return found


def resample_sums(table: Floats) -> Floats:
    """Return the sums (1 + draws, columns) of a table (clusters, columns): first the observed sums, then
    1,000 seeded bootstraps. With fewer than two clusters, only the observed sums."""
    sums: Floats = table.sum(axis=0, keepdims=True)
    if len(table) < 2:
        return sums
    return np.concatenate([sums, bootstrap(table, np.random.default_rng(0), _RESAMPLES)])


def interval(values: Floats, clusters: int) -> tuple[float, float] | None:
    """Return the 95% expanded percentile interval of one column of draws over this many clusters; None if
    more than 5% of the draws are unknown."""
    known = values[~np.isnan(values)]
    if clusters < FEWEST or len(known) < 0.95 * len(values):
        return None
    tail = NormalDist().cdf(-math.sqrt(clusters / (clusters - 1)) * t95(clusters - 1))
    low, high = np.quantile(known, (tail, 1 - tail))
    return round_number(low), round_number(high)


def sign_flip_test(differences: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Return two-sided p-values (k) of paired differences (clusters, k), by drawing their signs."""
    moved = differences[np.any(differences != 0, axis=1)]
    hits = np.zeros(differences.shape[1])
    if len(moved):
        # tolerance for rounding in another order of summation
        least = np.abs(moved.sum(axis=0)) - 1e-9 * np.abs(moved).sum(axis=0)
        for _, count in _iterate_chunks(draws, len(moved)):
            bits = np.frombuffer(rng.bytes(-(-count * len(moved) // 8)), dtype=np.uint8)
            signs = np.unpackbits(bits, count=count * len(moved)).reshape(count, len(moved)) * 2.0 - 1.0
            hits += (np.abs(signs @ moved) >= least).sum(axis=0)
    found: Floats = np.where(np.any(differences != 0, axis=0), (1 + hits) / (1 + draws), 1.0)
    return found


def permutation_test(a: Floats, b: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Return two-sided p-values (k) of equal ratios in a and b, by assigning clusters to arms anew. `a`, `b`
    (clusters, 2k): k numerators, then k denominators.

    The statistic is the difference over its standard error: the bare difference is misleading if the arms
    differ in number and spread of their clusters (Janssen 1997, Statistics and Probability Letters 36; Chung
    and Romano 2013, Annals of Statistics 41).
    """
    both = np.concatenate([a, b])
    half = both.shape[1] // 2
    bottoms, total = both[:, half:], both.sum(axis=0)
    rest = both[:, :half] - divide(total[:half], total[half:]) * bottoms
    columns = np.hstack([rest, rest**2, bottoms])
    mine = np.zeros(len(both))
    mine[len(a) :] = 1.0
    sizes = (len(a), len(b))
    least = _studentise((mine @ columns)[None, :], columns.sum(axis=0), sizes)[0] * (1 - 1e-9)
    hits = np.zeros(half)
    for _, count in _iterate_chunks(draws, len(both)):
        dealt = rng.permuted(np.broadcast_to(mine, (count, len(both))), axis=1)
        hits += (_studentise(dealt @ columns, columns.sum(axis=0), sizes) >= least).sum(axis=0)
    found: Floats = np.where(np.any(rest != 0, axis=0), (1 + hits) / (1 + draws), 1.0)
    return found


def _studentise(of_b: Floats, total: Floats, sizes: tuple[int, int]) -> Floats:
    """Return the absolute differences (deals, k) of two arms over their standard errors; infinite for a
    standard error of 0. `of_b` (deals, 3k): b's sums of residuals around the pooled ratio, of their squares,
    and of denominators. `total` (3k): the same sums of both arms. `sizes`: the clusters of each arm."""
    apart, variance = np.zeros((2, len(of_b), of_b.shape[1] // 3))
    for sign, sums, size in ((-1.0, total - of_b, sizes[0]), (1.0, of_b, sizes[1])):
        left, squares, bottoms = np.split(sums, 3, axis=1)
        spread = squares - left**2 / size
        spread[spread < 1e-12 * squares] = 0.0  # rounding error of sums in another order
        # Without a denominator there is no ratio: use the maximum distance.
        apart = apart + sign * divide(left, bottoms, sign * np.inf)
        variance = variance + divide(spread, bottoms**2)
    apart = np.abs(apart)
    found = divide(apart, np.sqrt(variance), np.inf)
    found[apart == 0] = 0.0
    return found


def round_number(value: float) -> float:
    """Round to six significant digits, so that results do not depend on the machine's arithmetic."""
    return float(f"{value:.6g}") + 0.0


def _iterate_chunks(total: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield (start, length) of pieces of `total` rows that fit into the limit of cells."""
    step = max(1, _CELLS // max(width, 1))
    for start in range(0, total, step):
        yield start, min(step, total - start)
