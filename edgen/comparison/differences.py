"""Values and differences of ratio metrics, with intervals and p-values, from columns of sums by cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.comparison.arms import Array
from edgen.comparison.metrics import Spec
from edgen.comparison.model import ArmValue
from edgen.comparison.resampling import FEWEST, interval, labels_p, ratios, resampled, rounded, signs_p

Columns = Callable[[str], Array]  # a column's name to its sums, a cluster each


class Found(msgspec.Struct, frozen=True):
    """A difference before p-values are adjusted; see `model.Difference`."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int = 0
    changed: int = 0


def values(
    columns: Columns, specs: Sequence[Spec], rng: np.random.Generator, resamples: int
) -> list[ArmValue]:
    """Each metric of one arm, over all of its clusters."""
    counted = [columns(spec.counts) > 0 for spec in specs]
    every = np.any(counted, axis=0)
    tops, bottoms = _stacked(columns, specs, counted)
    draws = ratios(resampled(np.hstack([tops, bottoms])[every], rng, resamples))
    found = []
    for k, mask in enumerate(counted):
        value = _ratio(tops[:, k], bottoms[:, k])
        span = interval(draws[:, k]) if value is not None and mask.sum() >= FEWEST else None
        low, high = span or (None, None)
        found.append(ArmValue(value=value, low=low, high=high, n=int(bottoms[:, k].sum())))
    return found


def paired(
    a: Columns, b: Columns, specs: Sequence[Spec], rng: np.random.Generator, resamples: int, flips: int
) -> list[Found]:
    """Each metric of b minus that of a, over the clusters that count in both and have one place in both."""
    size = min(len(a(specs[0].top)), len(b(specs[0].top)))
    counted = [(a(spec.counts)[:size] > 0) & (b(spec.counts)[:size] > 0) for spec in specs]
    every = np.any(counted, axis=0)
    if not every.any():
        return [Found() for _ in specs]
    tops_a, bottoms_a = _stacked(a, specs, counted)
    tops_b, bottoms_b = _stacked(b, specs, counted)
    sums = resampled(np.hstack([tops_a, tops_b, bottoms_a, bottoms_b])[every], rng, resamples)
    draws = ratios(sums)
    changed = (tops_a != tops_b) | (bottoms_a != bottoms_b)
    p_values = signs_p(_linear(tops_a, bottoms_a, tops_b, bottoms_b), rng, flips)
    found = []
    for k, mask in enumerate(counted):
        n, moved = int(mask.sum()), int(changed[:, k].sum())
        one, other = _ratio(tops_a[:, k], bottoms_a[:, k]), _ratio(tops_b[:, k], bottoms_b[:, k])
        difference = draws[:, len(specs) + k] - draws[:, k]
        found.append(_found(one, other, difference, float(p_values[k]), n, moved))
    return found


def unpaired(
    a: Columns, b: Columns, specs: Sequence[Spec], rng: np.random.Generator, resamples: int, flips: int
) -> list[Found]:
    """Each metric of b minus that of a, the clusters of each drawn by themselves."""
    sides, draws, counts = [], [], []
    for columns in (a, b):
        counted = [columns(spec.counts) > 0 for spec in specs]
        side = np.hstack(_stacked(columns, specs, counted))[np.any(counted, axis=0)]
        if not len(side):
            return [Found() for _ in specs]
        sides.append(side)
        counts.append([int(mask.sum()) for mask in counted])
        draws.append(ratios(resampled(side, rng, resamples)))
    p_values = labels_p(sides[0], sides[1], rng, flips)
    found = []
    for k in range(len(specs)):
        one, other = (_ratio(side[:, k], side[:, len(specs) + k]) for side in sides)
        n = min(counts[0][k], counts[1][k])
        found.append(_found(one, other, draws[1][:, k] - draws[0][:, k], float(p_values[k]), n, n))
    return found


def _stacked(
    columns: Columns, specs: Sequence[Spec], counted: Sequence[NDArray[np.bool_]]
) -> tuple[Array, Array]:
    """The numerators and the denominators (clusters, k), 0 where a cluster does not count."""
    size = len(counted[0])
    tops = [np.where(mask, columns(spec.top)[:size], 0.0) for spec, mask in zip(specs, counted, strict=True)]
    bottoms = [
        np.where(mask, columns(spec.bottom)[:size], 0.0) for spec, mask in zip(specs, counted, strict=True)
    ]
    return np.stack(tops, axis=1), np.stack(bottoms, axis=1)


def _linear(tops_a: Array, bottoms_a: Array, tops_b: Array, bottoms_b: Array) -> Array:
    """The paired differences (clusters, k) around the ratio of both sides together."""
    tops, bottoms = (tops_a + tops_b).sum(axis=0), (bottoms_a + bottoms_b).sum(axis=0)
    pooled = np.divide(tops, bottoms, out=np.zeros_like(tops), where=bottoms != 0)
    found: Array = (tops_b - pooled * bottoms_b) - (tops_a - pooled * bottoms_a)
    return found


def _found(one: float | None, other: float | None, draws: Array, p: float, n: int, changed: int) -> Found:
    if one is None or other is None:
        return Found(n=n, changed=changed)
    difference = rounded(other - one)
    if n < FEWEST:
        return Found(difference, n=n, changed=changed)
    if not changed:
        return Found(0.0, 0.0, 0.0, 1.0, n, 0)
    low, high = interval(draws) or (None, None)
    return Found(difference, low, high, rounded(p), n, changed)


def _ratio(top: Array, bottom: Array) -> float | None:
    below = float(bottom.sum())
    return rounded(float(top.sum()) / below) if below else None
