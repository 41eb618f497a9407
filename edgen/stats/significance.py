"""Fisher's exact test, and Holm's correction for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIGNIFICANT = 0.05  # level below which an adjusted p-value is marked
_TIE = 1e-7


def log_factorials(most: int) -> NDArray[np.float64]:
    """Return log(n!) for n from 0 to `most`."""
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, most + 1, dtype=np.float64)))))


def fisher(hits: int, size: int, all_hits: int, total: int, logs: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of `hits` in a group of `size`, given `all_hits` of `total`.

    Fisher's exact test (1935, JRSS 98): the total probability, with all margins fixed, of the tables that are
    at most as likely as this one. `logs`: `log_factorials` up to at least `total`.
    """
    low, high = max(0, size + all_hits - total), min(size, all_hits)
    k = np.arange(low, high + 1)
    log_p = (
        _choose(logs, all_hits, k)
        + _choose(logs, total - all_hits, size - k)
        - _choose(logs, total, np.array(size))
    )
    p = np.exp(log_p)
    return min(float(np.sum(p[p <= p[hits - low] * (1 + _TIE)])), 1.0)


def _choose(logs: NDArray[np.float64], n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = logs[n] - logs[k] - logs[n - k]
    return result


def holm(values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for multiple tests (Holm 1979, Scandinavian Journal of Statistics 6): if
    adjusted values below 0.05 count as findings, the probability of any false finding is at most 0.05."""
    adjusted = [0.0] * len(values)
    worst = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        worst = max(worst, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = worst
    return adjusted
