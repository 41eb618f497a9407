"""How far sources agree beyond chance: Cohen's kappa and Krippendorff's alpha, by nltk.

Cohen 1960, Educ. Psychol. Meas. 20; Krippendorff 2011, Computing Krippendorff's Alpha-Reliability
(nominal data). Only items that a source labels count for it: what it abstains from or finds tied is
missing. Where all labels are the same there is no chance to correct for, and both are None. Intervals
of two sources are percentiles of a seeded bootstrap that draws whole scenarios (Field and Welsh 2007,
J. R. Stat. Soc. B 69), at 95%. Linear in the labels: 10,000 pairs by three sources take half a second.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Triple = tuple[str, int, int]
Ratings = Mapping[str, Sequence[int]]
Floats = NDArray[np.float64]

_RESAMPLES = 500
_AT_ONCE = 50  # resamples, so that memory stays at some bytes a scenario
_MOST_UNDEFINED = 0.05  # of the resamples; with more there is no interval


def agreement(ratings: Ratings, scenarios: Sequence[int]) -> dict[str, Any]:
    """`{"n", "alpha", "between": [{"sources", "n", "observed", "kappa", "kappa_interval", "alpha",
    "alpha_interval"}]}`.

    `ratings` holds a label an item for each source: 1, -1, or 0 where there is none; `scenarios` the
    scenario of each item. The outer n counts the items with two labels or more, and its alpha is over all
    sources; `between` has every two. An interval is [low, high], None with fewer than two scenarios.
    """
    columns = list(ratings.values())
    shared = [i for i, labels in enumerate(zip(*columns, strict=True)) if sum(map(bool, labels)) >= 2]
    between = []
    for one, other in itertools.combinations(ratings, 2):
        x, y = ratings[one], ratings[other]
        both = [i for i, (a, b) in enumerate(zip(x, y, strict=True)) if a and b]
        between.append({"sources": [one, other], **_between({one: x, other: y}, both, scenarios)})
    return {"n": len(shared), "alpha": _alpha(ratings, shared), "between": between}


def _between(two: Ratings, items: Sequence[int], scenarios: Sequence[int]) -> dict[str, Any]:
    x, y = two.values()
    found: dict[str, Any] = {
        "n": len(items),
        "observed": sum(x[i] == y[i] for i in items) / len(items) if items else None,
        "kappa": None,
        "kappa_interval": None,
        "alpha": _alpha(two, items),
        "alpha_interval": None,
    }
    if found["alpha"] is not None:
        found["kappa"] = float(_task(two, items).kappa_pairwise(*two))
        tables = _tables(x, y, items, scenarios)
        found["kappa_interval"], found["alpha_interval"] = _intervals(tables)
    return found


def _alpha(ratings: Ratings, items: Sequence[int]) -> float | None:
    if len({label for _, _, label in _triples(ratings, items)}) < 2:
        return None
    return float(_task(ratings, items).alpha())


def _task(ratings: Ratings, items: Sequence[int]) -> Any:
    from nltk.metrics.agreement import AnnotationTask  # type: ignore[import-untyped]

    return AnnotationTask(data=_triples(ratings, items))


def _triples(ratings: Ratings, items: Sequence[int]) -> Iterator[Triple]:
    return ((name, i, labels[i]) for name, labels in ratings.items() for i in items if labels[i])


def _tables(x: Sequence[int], y: Sequence[int], items: Sequence[int], scenarios: Sequence[int]) -> Floats:
    """Each scenario's counts (scenarios, 4): both say 1, only the first, only the second, neither."""
    groups, member = np.unique([scenarios[i] for i in items], return_inverse=True)
    cell = np.array([2 * (x[i] < 0) + (y[i] < 0) for i in items])
    counts = np.bincount(4 * member + cell, minlength=4 * len(groups))
    return counts.reshape(len(groups), 4).astype(np.float64)


def _intervals(tables: Floats) -> tuple[list[float] | None, list[float] | None]:
    """The intervals of kappa and of alpha."""
    groups = len(tables)
    if groups < 2:
        return None, None
    rng = np.random.default_rng(0)
    drawn = np.concatenate(
        [
            rng.multinomial(groups, np.full(groups, 1 / groups), _AT_ONCE) @ tables
            for _ in range(_RESAMPLES // _AT_ONCE)
        ]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return _percentiles(_kappas(drawn)), _percentiles(_alphas(drawn))


def _percentiles(values: Floats) -> list[float] | None:
    defined = values[np.isfinite(values)]
    if len(defined) < (1 - _MOST_UNDEFINED) * len(values):
        return None
    return [float(v) for v in np.percentile(defined, [2.5, 97.5])]


def _kappas(tables: Floats) -> Floats:
    """Cohen's kappa of each row of counts (n, 4)."""
    n = tables.sum(axis=1)
    first, second = tables[:, 0] + tables[:, 1], tables[:, 0] + tables[:, 2]
    chance = (first * second + (n - first) * (n - second)) / n**2
    result: Floats = ((tables[:, 0] + tables[:, 3]) / n - chance) / (1 - chance)
    return result


def _alphas(tables: Floats) -> Floats:
    """Krippendorff's alpha of each row of counts (n, 4): two labels an item."""
    n = tables.sum(axis=1)
    ones = 2 * tables[:, 0] + tables[:, 1] + tables[:, 2]
    expected = 2 * ones * (2 * n - ones) / (2 * n * (2 * n - 1))
    result: Floats = 1 - (tables[:, 1] + tables[:, 2]) / n / expected
    return result
