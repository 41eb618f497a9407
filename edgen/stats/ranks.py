"""Rank tests for ratings and counts: Mann and Whitney's of two groups, Spearman's of two paired values.

Equal values share the mean of their ranks. Observations of one scenario depend on each other, so tests are
of the scenarios' means. Intervals are clustered by scenario: they use the linearised variance from sums of
influences, with the factor G / (G - 1), and quantiles of Student's t with G - 1 degrees of freedom.
"""

from __future__ import annotations

import functools
import itertools
import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgen.stats.intervals import FEWEST_SCENARIOS
from edgen.stats.quantiles import t95
from edgen.stats.resampling import Floats, round_number

EXACT_GROUPS = 50  # maximum scenarios of both groups for an exact Mann-Whitney p
EXACT_PAIRS = 8  # maximum scenarios for an exact Spearman p


class RankTest(msgspec.Struct, frozen=True, kw_only=True):
    """A value with the two-sided test of no effect."""

    value: float  # the statistic
    low: float | None
    """End of the 95% interval; None for fewer than five scenarios, and if all observations agree."""
    high: float | None
    """End of the 95% interval; None for fewer than five scenarios, and if all observations agree."""
    p: float  # two-sided p-value of no effect
    exact: bool  # p is exact, not approximate
    n: int  # number of observations
    scenarios: int  # number of scenarios


def superiority(
    a: ArrayLike, b: ArrayLike, a_scenarios: ArrayLike, b_scenarios: ArrayLike
) -> RankTest | None:
    """Return the probability that a value of `a` (m) is above one of `b` (n), a tie counting half: Mann and
    Whitney's U over m n (1947, Annals of Mathematical Statistics 18). None if a group is empty.

    p is exact up to EXACT_GROUPS scenarios, beyond by the normal approximation with the corrections for ties
    and continuity; a scenario of both groups counts in each. The interval is that of clustered placements
    (Obuchowski 1997, Biometrics 53; DeLong, DeLong and Clarke-Pearson 1988, Biometrics 44) on the logit
    scale.
    """
    x, y = (np.asarray(one, dtype=np.float64) for one in (a, b))
    if not (x.size and y.size):
        return None
    above, below = _placements(x, y), 1 - _placements(y, x)
    value = float(np.mean(above))
    influence = np.concatenate([(above - value) / x.size, (below - value) / y.size])
    clusters = np.concatenate([np.asarray(a_scenarios), np.asarray(b_scenarios)])
    scale = value * (1 - value)
    span = None
    if scale > 0 and (half := _compute_half_width(influence, clusters, scale)) is not None:
        middle = math.log(value / (1 - value))
        span = (1 / (1 + math.exp(half - middle)), 1 / (1 + math.exp(-half - middle)))
    x, y = _average_scenarios(x, a_scenarios), _average_scenarios(y, b_scenarios)
    exact = x.size + y.size <= EXACT_GROUPS
    p = _test_groups_exactly(x, y) if exact else _test_groups_normally(x, y)
    return _make_rank_test(value, span, p, exact, clusters)


def spearman(x: ArrayLike, y: ArrayLike, scenarios: ArrayLike) -> RankTest | None:
    """Return Spearman's rank correlation (1904, American Journal of Psychology 15) of pairs (n); None for
    fewer than three pairs, and if one side does not vary.

    p is exact up to EXACT_PAIRS scenarios, beyond Student's t with two degrees of freedom fewer than
    scenarios (Pitman 1937, Supplement to the JRSS 4). The interval uses the influence function (Croux and
    Dehon 2010, Statistical Methods & Applications 19) on Fisher's scale.
    """
    a, b = (np.asarray(one, dtype=np.float64) for one in (x, y))
    first, second = _mid_shares(a), _mid_shares(b)
    n = first.size
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    value = _compute_correlation(first, second)
    clusters = np.asarray(scenarios)
    span = None
    if abs(value) < 1 - 1e-12:
        influence = _influence(first, second, value) / n
        if (half := _compute_half_width(influence, clusters, 1 - value**2)) is not None:
            span = (math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half))
    first, second = (_mid_shares(_average_scenarios(one, clusters)) for one in (a, b))
    exact = first.size <= EXACT_PAIRS
    p = _test_pairs_exactly(first, second) if exact else _test_correlation(first, second)
    return _make_rank_test(value, span, p, exact, clusters)


def _make_rank_test(
    value: float, span: tuple[float, float] | None, p: float, exact: bool, clusters: NDArray[np.int64]
) -> RankTest:
    low, high = (None, None) if span is None else map(round_number, span)
    return RankTest(
        value=round_number(value), low=low, high=high, p=round_number(min(p, 1.0)), exact=exact,
        n=clusters.size, scenarios=np.unique(clusters).size,
    )  # fmt: skip


def _average_scenarios(values: Floats, scenarios: ArrayLike) -> Floats:
    """Return the mean value of each scenario."""
    _, member, count = np.unique(np.asarray(scenarios), return_inverse=True, return_counts=True)
    found: Floats = np.bincount(member, weights=values) / count
    return found


def _compute_half_width(influence: Floats, clusters: NDArray[np.int64], scale: float) -> float | None:
    """Return half the width of an estimate's interval, on a scale whose derivative is 1 / `scale`; None with
    too few scenarios."""
    groups, member = np.unique(clusters, return_inverse=True)
    if len(groups) < FEWEST_SCENARIOS:
        return None
    sums = np.bincount(member, weights=influence)
    variance = float(sums @ sums) * len(groups) / (len(groups) - 1)
    return t95(len(groups) - 1) * math.sqrt(variance) / scale


def _placements(values: Floats, among: Floats) -> Floats:
    """Return for each value the share of `among` below it; equal ones count half."""
    there = np.sort(among)
    low, high = np.searchsorted(there, values, "left"), np.searchsorted(there, values, "right")
    found: Floats = (low + high) / (2 * there.size)
    return found


def _mid_shares(values: Floats) -> Floats:
    """Return the ranks of values as shares with mean 0.5; equal values share their middle rank."""
    return _placements(values, values)


def _compute_correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of pairs; 0 if one side does not vary."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return max(-1.0, min(1.0, float(np.corrcoef(first, second)[0, 1])))


def _double_ranks(values: Floats) -> NDArray[np.int64]:
    """Return twice the middle ranks, which are whole numbers."""
    found: NDArray[np.int64] = np.rint(_mid_shares(values) * 2 * values.size).astype(np.int64) + 1
    return found


def _test_groups_exactly(x: Floats, y: Floats) -> float:
    """Return the exact p-value: the share of all assignments to two groups of these sizes with a rank sum at
    least as far from the expected one. Dynamic programming counts the assignments by group size and rank
    sum."""
    ranks = _double_ranks(np.concatenate([x, y]))
    m, total = x.size, int(ranks.sum())
    ways = np.zeros((m + 1, total + 1))
    ways[0, 0] = 1.0
    for rank, count in zip(*np.unique(ranks, return_counts=True), strict=True):
        more = ways.copy()
        for taken in range(1, min(int(count), m) + 1):
            step = taken * int(rank)
            more[taken:, step:] += math.comb(int(count), taken) * ways[: m + 1 - taken, : total + 1 - step]
        ways = more
    expected = m * total  # sums are multiplied by the number of values, so that all are integers
    far = np.abs(np.arange(total + 1) * ranks.size - expected)
    mine = abs(int(ranks[:m].sum()) * ranks.size - expected)
    return float(ways[m, far >= mine].sum() / ways[m].sum())


def _test_groups_normally(x: Floats, y: Floats) -> float:
    m, n, value = x.size, y.size, float(np.mean(_placements(x, y)))
    _, ties = np.unique(np.concatenate([x, y]), return_counts=True)
    tied = float(np.sum(ties.astype(np.float64) ** 3 - ties)) / ((m + n) * (m + n - 1))
    variance = m * n / 12 * (m + n + 1 - tied)
    if variance <= 0:
        return 1.0
    z = max(abs(value - 0.5) * m * n - 0.5, 0.0) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


@functools.cache
def _list_orders(n: int) -> NDArray[np.int64]:
    return np.array(list(itertools.permutations(range(n))), dtype=np.int64)


def _test_pairs_exactly(first: Floats, second: Floats) -> float:
    """Return the share of all orders with at least as strong a rank correlation."""
    one, other = _double_ranks(first), _double_ranks(second)
    n = one.size
    sums = other[_list_orders(n)] @ one
    far = np.abs(sums * n - int(one.sum()) * int(other.sum()))
    return float(np.mean(far >= far[0]))


def _influence(first: Floats, second: Floats, value: float) -> Floats:
    """Return each pair's influence on the correlation of the shares, including its effect on other pairs'
    shares."""
    a, b = (one - 0.5 for one in (first, second))
    together, one, other = (float(np.mean(p * q)) for p, q in ((a, b), (a, a), (b, b)))
    moved_a, moved_b = _mean_above(first, b), _mean_above(second, a)
    cross = a * b + moved_a + moved_b - 3 * together
    own = a * a + 2 * _mean_above(first, a) - 3 * one
    others = b * b + 2 * _mean_above(second, b) - 3 * other
    found: Floats = cross / math.sqrt(one * other) - value / 2 * (own / one + others / other)
    return found


def _mean_above(shares: Floats, weights: Floats) -> Floats:
    """Return for each pair the mean weight of pairs above it; equal ones count half."""
    levels, place = np.unique(shares, return_inverse=True)
    sums = np.bincount(place, weights=weights, minlength=len(levels))
    above = np.cumsum(sums[::-1])[::-1] - sums / 2
    found: Floats = above[place] / shares.size
    return found


def _test_correlation(first: Floats, second: Floats) -> float:
    """Return the two-sided p-value of the correlation of n pairs, by the incomplete beta function
    I(1 - r²; n / 2 - 1, 1 / 2)."""
    return _incomplete_beta(1 - _compute_correlation(first, second) ** 2, first.size / 2 - 1, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 1964,
    26.5.8), to 1e-12."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # Lentz's forward evaluation of a continued fraction (Thompson and Barnett 1986, J. Comput. Phys. 64)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for i in range(1, 400):
        for top in (
            i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i)),
            -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1)),
        ):
            d, c = 1 / (1 + top * d), 1 + top / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction / a
