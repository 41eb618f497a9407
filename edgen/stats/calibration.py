"""Calibration: whether events with a stated probability p occur in a share p of cases.

Reliability table and expected calibration error over ten bins of equal width (Naeini, Cooper and Hauskrecht
2015, AAAI), Brier score (Brier 1950, Monthly Weather Review 78): the mean of (p - outcome) squared; a
constant 0.5 scores 0.25.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from edgen.stats.intervals import Estimate, average, share

BINS = 10


def calibration(p: ArrayLike, outcome: ArrayLike, scenarios: ArrayLike) -> dict[str, Any] | None:
    """Return `{"n", "brier", "expected_calibration_error", "bins"}`; None without data.

    `p` (n) in [0, 1] and `outcome` (n), 0 or 1, have one value per case; `scenarios` (n) names the cluster of
    each. A bin is `{"from", "to", "n", "mean", "share"}` with the share of outcomes as an estimate; empty
    bins have n 0.
    """
    said = np.asarray(p, dtype=np.float64)
    came = np.asarray(outcome, dtype=np.float64)
    group = np.asarray(scenarios)
    if said.size == 0:
        return None
    # edges belong to the upper bin, 1 to the last; 0.3 * 10 may be slightly below 3
    bin_of = np.clip(np.floor(said * BINS + 1e-9).astype(np.int64), 0, BINS - 1)
    bins: list[dict[str, Any]] = []
    error = 0.0
    for k in range(BINS):
        inside = bin_of == k
        n = int(np.count_nonzero(inside))
        row: dict[str, Any] = {"from": k / BINS, "to": (k + 1) / BINS, "n": n, "mean": None, "share": None}
        if n:
            row["mean"] = float(np.mean(said[inside]))
            row["share"] = msgspec.to_builtins(share(came[inside], group[inside]))
            error += n / said.size * abs(float(np.mean(came[inside])) - row["mean"])
        bins.append(row)
    return {
        "n": int(said.size),
        "brier": msgspec.to_builtins(_limit_to_0_1(average((said - came) ** 2, group))),
        "expected_calibration_error": error,
        "bins": bins,
    }


def _limit_to_0_1(estimate: Estimate | None) -> Estimate | None:
    """Return the estimate with its interval limited to possible scores."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return estimate
    return msgspec.structs.replace(estimate, low=max(estimate.low, 0.0), high=min(estimate.high, 1.0))
