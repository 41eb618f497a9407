"""Metrics that are ratios of sums over clusters: values and differences, with intervals and p-values.

`resampling` describes draws and tests. A cluster is a scenario, or a group or block of scenarios.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.stats.resampling import (
    FEWEST,
    Floats,
    bootstrap,
    divide,
    interval,
    permutation_test,
    ratios,
    round_number,
    sign_flip_test,
)

Columns = Callable[[str], Floats]  # maps a column's name to its sums, one per cluster
_TIE = 1e-9  # relative: rounding error of equal numbers


class Ratio(Protocol):
    """A metric: the sum of column `top` over the sum of column `bottom`, over the clusters where column
    `counts` is above 0. A `kind` of "share" lies in [0, 1] and counts events."""

    @property
    def top(self) -> str: ...
    @property
    def bottom(self) -> str: ...
    @property
    def counts(self) -> str: ...
    @property
    def kind(self) -> str: ...


class RatioEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a ratio with its 95% interval (None if unknown). `n`: its denominator."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


class RatioDifference(msgspec.Struct, frozen=True):
    """A difference of two ratios. With too little data, everything but counts is None."""

    value: float | None = None  # the difference
    low: float | None = None  # end of the 95% interval
    high: float | None = None  # end of the 95% interval
    p: float | None = None  # two-sided p-value of no difference
    n: int = 0  # clusters that count
    changed: int = 0  # clusters that contribute to the difference
    events: int | None = None
    """For a share: occurrences of its event on both sides, or of its absence if that is rarer."""


def estimate_ratios(
    columns: Columns, metrics: Sequence[Ratio], rng: np.random.Generator, resamples: int
) -> list[RatioEstimate]:
    """Return each metric over all clusters of one data set."""
    counted = [columns(metric.counts) > 0 for metric in metrics]
    tops, bottoms = _stack_columns(columns, metrics, counted)
    draws = ratios(bootstrap(np.hstack([tops, bottoms])[np.any(counted, axis=0)], rng, resamples))
    found = []
    for k, mask in enumerate(counted):
        value = _divide_or_none(tops[:, k], bottoms[:, k])
        low, high = interval(draws[:, k], int(mask.sum())) or (None, None)
        shown = None if value is None else round_number(value)
        found.append(RatioEstimate(value=shown, low=low, high=high, n=int(bottoms[:, k].sum())))
    return found


def compare_paired(
    a: Columns, b: Columns, metrics: Sequence[Ratio], rng: np.random.Generator, resamples: int, flips: int
) -> list[RatioDifference]:
    """Return each metric of b minus the metric of a, over corresponding clusters that count in both."""
    size = min(len(a(metrics[0].top)), len(b(metrics[0].top)))
    counted = [(a(metric.counts)[:size] > 0) & (b(metric.counts)[:size] > 0) for metric in metrics]
    every = np.any(counted, axis=0)
    if not every.any():
        return [RatioDifference() for _ in metrics]
    tops_a, bottoms_a = _stack_columns(a, metrics, counted)
    tops_b, bottoms_b = _stack_columns(b, metrics, counted)
    draws = ratios(bootstrap(np.hstack([tops_a, tops_b, bottoms_a, bottoms_b])[every], rng, resamples))
    contributions = _compute_contributions(tops_a, bottoms_a, tops_b, bottoms_b)
    p_values = sign_flip_test(contributions, rng, flips)
    changed = (contributions != 0).sum(axis=0)
    found = []
    for k, (metric, mask) in enumerate(zip(metrics, counted, strict=True)):
        tops, bottoms = (tops_a[:, k], tops_b[:, k]), (bottoms_a[:, k], bottoms_b[:, k])
        apart, p = draws[:, len(metrics) + k] - draws[:, k], float(p_values[k])
        found.append(_estimate_difference(metric, tops, bottoms, apart, p, int(mask.sum()), int(changed[k])))
    return found


def compare_unpaired(
    a: Columns, b: Columns, metrics: Sequence[Ratio], rng: np.random.Generator, resamples: int, flips: int
) -> list[RatioDifference]:
    """Return each metric of b minus the metric of a; clusters of both are drawn independently."""
    sides, draws, counts = [], [], []
    for columns in (a, b):
        counted = [columns(metric.counts) > 0 for metric in metrics]
        side = np.hstack(_stack_columns(columns, metrics, counted))[np.any(counted, axis=0)]
        if not len(side):
            return [RatioDifference() for _ in metrics]
        sides.append(side)
        counts.append([int(mask.sum()) for mask in counted])
        draws.append(ratios(bootstrap(side, rng, resamples)))
    p_values = permutation_test(sides[0], sides[1], rng, flips)
    found = []
    for k, metric in enumerate(metrics):
        tops, bottoms = [side[:, k] for side in sides], [side[:, len(metrics) + k] for side in sides]
        top, bottom = np.concatenate(tops)[:, None], np.concatenate(bottoms)[:, None]
        n = min(counts[0][k], counts[1][k])
        changed = min(n, int((_compute_deviations(_pool(top, bottom), top, bottom) != 0).sum()))
        apart, p = draws[1][:, k] - draws[0][:, k], float(p_values[k])
        found.append(_estimate_difference(metric, tops, bottoms, apart, p, n, changed))
    return found


def _stack_columns(
    columns: Columns, metrics: Sequence[Ratio], counted: Sequence[NDArray[np.bool_]]
) -> tuple[Floats, Floats]:
    """Return the numerators and the denominators (clusters, k), 0 for clusters that do not count."""
    mask = np.stack(counted, axis=1)
    tops, bottoms = (
        np.where(mask, np.stack([columns(name)[: len(mask)] for name in names], axis=1), 0.0)
        for names in ([metric.top for metric in metrics], [metric.bottom for metric in metrics])
    )
    return tops, bottoms


def _compute_contributions(tops_a: Floats, bottoms_a: Floats, tops_b: Floats, bottoms_b: Floats) -> Floats:
    """Return each cluster's contribution (clusters, k) to the difference, linearised around the ratio of both
    sides together."""
    pooled = _pool(tops_a + tops_b, bottoms_a + bottoms_b)
    a, b = _compute_deviations(pooled, tops_a, bottoms_a), _compute_deviations(pooled, tops_b, bottoms_b)
    found: Floats = np.where(np.isclose(a, b, rtol=_TIE, atol=0), 0.0, b - a)
    return found


def _pool(tops: Floats, bottoms: Floats) -> Floats:
    """Return the ratios (k) of sums over clusters (clusters, k)."""
    return divide(tops.sum(axis=0), bottoms.sum(axis=0))


def _compute_deviations(pooled: Floats, tops: Floats, bottoms: Floats) -> Floats:
    """Return each cluster's effect (clusters, k) on its side's deviation from the pooled ratio."""
    expected = pooled * bottoms
    rest = np.where(np.isclose(tops, expected, rtol=_TIE, atol=0), 0.0, tops - expected)
    return divide(rest, bottoms.sum(axis=0))


def _count_events(metric: Ratio, tops: Sequence[Floats], bottoms: Sequence[Floats]) -> int | None:
    """Return the occurrences of a share's event on both sides, or of its absence if that is rarer; None for
    other kinds."""
    if metric.kind != "share":
        return None
    there, every = sum(float(top.sum()) for top in tops), sum(float(bottom.sum()) for bottom in bottoms)
    return int(min(there, every - there))


def _estimate_difference(
    metric: Ratio,
    tops: Sequence[Floats],
    bottoms: Sequence[Floats],
    draws: Floats,
    p: float,
    n: int,
    changed: int,
) -> RatioDifference:
    """Return the second side minus the first. `draws` are differences of resampled clusters."""
    events = _count_events(metric, tops, bottoms)
    one, other = map(_divide_or_none, tops, bottoms)
    value = None if one is None or other is None else round_number(other - one)
    if value is None or n < FEWEST:
        return RatioDifference(value, n=n, changed=changed, events=events)
    if not changed:
        return RatioDifference(0.0, 0.0, 0.0, 1.0, n, 0, events)
    low, high = interval(draws, n) or (None, None)
    return RatioDifference(value, low, high, round_number(p), n, changed, events)


def _divide_or_none(top: Floats, bottom: Floats) -> float | None:
    below = float(bottom.sum())
    return float(top.sum()) / below if below else None
