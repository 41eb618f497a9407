"""95% intervals for means over pairs, where pairs of one scenario are not independent.

The variance is that of a ratio estimator over clusters, by linearisation, with the factor G / (G - 1)
(Cochran 1977, Sampling Techniques). A share in [0, 1] gets Wilson's interval (1927, JASA 22) with the
sample size that would have this variance (compared by Franco, Little, Louis and Slud 2019, J. Survey
Stat. Methodol. 7); a share without any variance counts its scenarios. Normal quantiles: with few
scenarios, say below 30, the intervals are somewhat too narrow.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

Z95 = 1.959963984540054


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """`value` from `n` pairs of `scenarios` scenarios; without two scenarios `low` and `high` are None."""

    value: float
    low: float | None
    high: float | None
    n: int
    scenarios: int


def share(values: ArrayLike, scenarios: ArrayLike) -> Estimate | None:
    """The mean of values in [0, 1] with Wilson's interval; None without values."""
    mean, variance, n, groups = _mean(values, scenarios)
    if n == 0:
        return None
    if groups < 2:
        return _estimate(mean, None, n, groups)
    effective = mean * (1 - mean) / variance if variance > 1e-18 and 0 < mean < 1 else float(groups)
    z2 = Z95 * Z95 / effective
    centre = (mean + z2 / 2) / (1 + z2)
    half = math.sqrt(max(mean * (1 - mean) / effective + z2 / (4 * effective), 0.0)) * Z95 / (1 + z2)
    return _estimate(mean, (max(centre - half, 0.0), min(centre + half, 1.0)), n, groups)


def average(values: ArrayLike, scenarios: ArrayLike) -> Estimate | None:
    """The mean of any values with a normal interval; None without values."""
    mean, variance, n, groups = _mean(values, scenarios)
    if n == 0:
        return None
    half = Z95 * math.sqrt(variance)
    return _estimate(mean, (mean - half, mean + half) if groups >= 2 else None, n, groups)


def scaled(estimate: Estimate | None, factor: float, shift: float = 0.0) -> Estimate | None:
    """The estimate of factor * value + shift, for a factor above 0."""
    if estimate is None:
        return None
    value = estimate.value * factor + shift
    if estimate.low is None or estimate.high is None:
        return _estimate(value, None, estimate.n, estimate.scenarios)
    span = (estimate.low * factor + shift, estimate.high * factor + shift)
    return _estimate(value, span, estimate.n, estimate.scenarios)


def _mean(values: ArrayLike, scenarios: ArrayLike) -> tuple[float, float, int, int]:
    """Mean, its variance, the number of values and of scenarios."""
    y = np.asarray(values, dtype=np.float64)
    if y.size == 0:
        return math.nan, math.nan, 0, 0
    groups, member = np.unique(np.asarray(scenarios), return_inverse=True)
    mean = float(np.mean(y))
    if len(groups) < 2:
        return mean, math.nan, y.size, len(groups)
    residuals = np.bincount(member, weights=y - mean)
    variance = float(residuals @ residuals) * len(groups) / (len(groups) - 1) / y.size**2
    return mean, variance, y.size, len(groups)


def _estimate(value: float, span: tuple[float, float] | None, n: int, scenarios: int) -> Estimate:
    low, high = span if span is not None else (None, None)
    return Estimate(value=value, low=low, high=high, n=n, scenarios=scenarios)
