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
_TIE = 1e-9  # relative: what arithmetic leaves of numbers that are the same


class Found(msgspec.Struct, frozen=True):
    """A difference before p-values are adjusted; see `model.Difference`."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int = 0
    changed: int = 0
    events: int | None = None


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
        low, high = interval(draws[:, k], int(mask.sum())) or (None, None)
        shown = None if value is None else rounded(value)
        found.append(ArmValue(value=shown, low=low, high=high, n=int(bottoms[:, k].sum())))
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
    linear = _linear(tops_a, bottoms_a, tops_b, bottoms_b)
    p_values = signs_p(linear, rng, flips)
    changed = (linear != 0).sum(axis=0)
    found = []
    for k, mask in enumerate(counted):
        n, moved = int(mask.sum()), int(changed[k])
        events = _events(specs[k], (tops_a[:, k], tops_b[:, k]), (bottoms_a[:, k], bottoms_b[:, k]))
        one, other = _ratio(tops_a[:, k], bottoms_a[:, k]), _ratio(tops_b[:, k], bottoms_b[:, k])
        difference = draws[:, len(specs) + k] - draws[:, k]
        found.append(_found(one, other, difference, float(p_values[k]), (n, moved, events)))
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
    for k, spec in enumerate(specs):
        tops, bottoms = [side[:, k] for side in sides], [side[:, len(specs) + k] for side in sides]
        one, other = map(_ratio, tops, bottoms)
        n = min(counts[0][k], counts[1][k])
        top, bottom = np.concatenate(tops)[:, None], np.concatenate(bottoms)[:, None]
        changed = min(n, int((_around(_pooled(top, bottom), top, bottom) != 0).sum()))
        events = _events(spec, tops, bottoms)
        difference = draws[1][:, k] - draws[0][:, k]
        found.append(_found(one, other, difference, float(p_values[k]), (n, changed, events)))
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
    """What each cluster (clusters, k) adds to the difference, around the ratio of both sides together."""
    pooled = _pooled(tops_a + tops_b, bottoms_a + bottoms_b)
    a, b = _around(pooled, tops_a, bottoms_a), _around(pooled, tops_b, bottoms_b)
    found: Array = np.where(np.isclose(a, b, rtol=_TIE, atol=0), 0.0, b - a)
    return found


def _pooled(tops: Array, bottoms: Array) -> Array:
    """The ratios (k) of sums over clusters (clusters, k)."""
    return _over(tops.sum(axis=0), bottoms.sum(axis=0))


def _around(pooled: Array, tops: Array, bottoms: Array) -> Array:
    """By how much each cluster (clusters, k) moves its side's ratio away from the pooled one."""
    expected = pooled * bottoms
    rest = np.where(np.isclose(tops, expected, rtol=_TIE, atol=0), 0.0, tops - expected)
    return _over(rest, bottoms.sum(axis=0))


def _over(tops: Array, bottoms: Array) -> Array:
    found: Array = np.divide(tops, bottoms, out=np.zeros_like(tops), where=bottoms != 0)
    return found


def _events(spec: Spec, tops: Sequence[Array], bottoms: Sequence[Array]) -> int | None:
    """How often what a share is of occurred on both sides, or did not, whichever is the rarer."""
    if spec.kind != "share":
        return None
    there, every = sum(float(top.sum()) for top in tops), sum(float(bottom.sum()) for bottom in bottoms)
    return int(min(there, every - there))


def _found(
    one: float | None, other: float | None, draws: Array, p: float, counts: tuple[int, int, int | None]
) -> Found:
    n, changed, events = counts
    if one is None or other is None:
        return Found(n=n, changed=changed, events=events)
    if n < FEWEST:
        return Found(rounded(other - one), n=n, changed=changed, events=events)
    if not changed:
        return Found(0.0, 0.0, 0.0, 1.0, n, 0, events)
    low, high = interval(draws, n) or (None, None)
    return Found(rounded(other - one), low, high, rounded(p), n, changed, events)


def _ratio(top: Array, bottom: Array) -> float | None:
    below = float(bottom.sum())
    return float(top.sum()) / below if below else None
