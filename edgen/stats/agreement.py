"""Agreement of sources beyond chance: Cohen's kappa, Krippendorff's alpha, and the MASI distance of sets.

Cohen 1960, Educ. Psychol. Meas. 20; Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Passonneau
2006, LREC. A source counts only on items that it labels; abstentions and ties are missing values. If all
labels are equal, chance cannot be corrected for, and kappa and alpha are None. Intervals of two sources are
expanded 95% percentiles of a seeded bootstrap over whole scenarios (see `edgen.stats.resampling`; Field and
Welsh 2007, J. R. Stat. Soc. B 69). Linear in the labels.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from edgen.stats.resampling import Floats, divide, interval, resample_sums

Ratings = Mapping[str, Sequence[int]]
L = TypeVar("L", bound=Hashable)


def masi(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the distance of two sets, from 0 for equal to 1 for disjoint ones."""
    shared = len(a & b)
    if a == b:
        return 0.0
    weight = 2 / 3 if shared == min(len(a), len(b)) else 1 / 3 if shared else 0.0
    return 1 - shared / len(a | b) * weight


def nominal(a: Hashable, b: Hashable) -> float:
    """Return the distance of two labels: 0 for equal, 1 for different ones."""
    return float(a != b)


def krippendorff(items: Iterable[Sequence[L]], distance: Callable[[L, L], float] = nominal) -> float | None:
    """Return alpha of the labels of items; items with fewer than two labels do not count. None if all labels
    are equal."""
    given: Counter[L] = Counter()
    observed = 0.0
    for labels in items:
        if len(labels) > 1:
            given.update(labels)
            pairs = len(labels) * (len(labels) - 1)
            observed += _sum_distances(Counter(labels), distance) / pairs * len(labels)
    return _alpha(observed, _sum_distances(given, distance), given.total()) if len(given) > 1 else None


def _sum_distances(given: Counter[L], distance: Callable[[L, L], float]) -> float:
    """Return the sum of the distances of all ordered pairs."""
    apart = 0.0
    for one, count in given.items():
        for other, many in given.items():
            apart += float(count * many) * distance(other, one)
    return apart


def alphas(observed: Floats, counts: Floats, distances: Floats) -> Floats:
    """Return alpha of each draw, shape (draws,). `observed` (draws): sum of the items' distances, each
    divided by the item's labels minus 1. `counts` (draws, labels): counts of each label. `distances` (labels,
    labels): between labels. NaN if chance cannot be corrected for."""
    expected = ((counts @ distances) * counts).sum(axis=1)
    known = expected > 0
    found = _alpha(observed, np.where(known, expected, 1.0), np.where(known, counts.sum(axis=1), 2.0))
    return np.where(known, found, np.nan)


def _alpha(observed: Any, expected: Any, n: Any) -> Any:
    return 1.0 - observed / n / (expected / (n * (n - 1)))


def kappas(agreed: Floats, first: Floats, second: Floats) -> Floats:
    """Return Cohen's kappa of each draw, shape (draws,). `agreed` (draws): items with equal labels. `first`,
    `second` (draws, labels): counts of each source's labels. NaN if chance cannot be corrected for."""
    n = first.sum(axis=1, keepdims=True)
    chance = (
        divide(first, np.broadcast_to(n, first.shape)) * divide(second, np.broadcast_to(n, second.shape))
    ).sum(axis=1)
    return correct_for_chance(divide(agreed, n[:, 0], np.nan), chance)


def correct_for_chance(observed: Floats, chance: Floats) -> Floats:
    """Return the agreement beyond chance as a share of the possible; NaN if chance is 1, up to rounding."""
    left = 1 - chance
    return divide(observed - chance, np.where(left > 1e-12, left, 0.0), np.nan)


def agreement(ratings: Ratings, scenarios: Sequence[int]) -> dict[str, Any]:
    """Return `{"n", "alpha", "between": [{"sources", "n", "observed", "kappa", "kappa_interval", "alpha",
    "alpha_interval"}]}`.

    `ratings` holds each source's label of every item: 1, -1, or 0 for none; `scenarios` the scenario of each
    item. The outer n counts the items with at least two labels, and its alpha is over all sources; `between`
    has every pair of sources. An interval is [low, high], None with fewer than five scenarios.
    """
    columns = list(ratings.values())
    shared = [i for i, labels in enumerate(zip(*columns, strict=True)) if sum(map(bool, labels)) >= 2]
    between = []
    for one, other in itertools.combinations(ratings, 2):
        x, y = ratings[one], ratings[other]
        both = [i for i, (a, b) in enumerate(zip(x, y, strict=True)) if a and b]
        between.append({"sources": [one, other], **_compare_sources({one: x, other: y}, both, scenarios)})
    return {"n": len(shared), "alpha": _alpha_of(ratings, shared), "between": between}


def _compare_sources(two: Ratings, items: Sequence[int], scenarios: Sequence[int]) -> dict[str, Any]:
    x, y = two.values()
    found: dict[str, Any] = {
        "n": len(items),
        "observed": sum(x[i] == y[i] for i in items) / len(items) if items else None,
        "kappa": None,
        "kappa_interval": None,
        "alpha": _alpha_of(two, items),
        "alpha_interval": None,
    }
    if found["alpha"] is not None:
        tables = _count_tables(x, y, items, scenarios)
        sums = resample_sums(tables)
        found["kappa"] = float(_kappas(sums[:1])[0])
        for name, values in (("kappa", _kappas(sums[1:])), ("alpha", _alphas(sums[1:]))):
            span = interval(values, len(tables))
            found[f"{name}_interval"] = None if span is None else [*span]
    return found


def _alpha_of(ratings: Ratings, items: Sequence[int]) -> float | None:
    columns = [*ratings.values()]
    return krippendorff([label for labels in columns if (label := labels[i])] for i in items)


def _count_tables(
    x: Sequence[int], y: Sequence[int], items: Sequence[int], scenarios: Sequence[int]
) -> Floats:
    """Return each scenario's counts (scenarios, 4): both say 1, only the first, only the second, neither."""
    groups, member = np.unique([scenarios[i] for i in items], return_inverse=True)
    cell = np.array([2 * (x[i] < 0) + (y[i] < 0) for i in items])
    counts = np.bincount(4 * member + cell, minlength=4 * len(groups))
    return counts.reshape(len(groups), 4).astype(np.float64)


def _kappas(tables: Floats) -> Floats:
    """Return Cohen's kappa of each row of counts (n, 4)."""
    first = np.stack([tables[:, 0] + tables[:, 1], tables[:, 2] + tables[:, 3]], axis=1)
    second = np.stack([tables[:, 0] + tables[:, 2], tables[:, 1] + tables[:, 3]], axis=1)
    return kappas(tables[:, 0] + tables[:, 3], first, second)


def _alphas(tables: Floats) -> Floats:
    """Return Krippendorff's alpha of each row of counts (n, 4), with two labels per item."""
    apart = tables[:, 1] + tables[:, 2]
    given = np.stack([2 * tables[:, 0] + apart, 2 * tables[:, 3] + apart], axis=1)
    return alphas(2 * apart, given, 1.0 - np.eye(2))
