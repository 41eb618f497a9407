"""Logistic regression by maximum a posteriori, for soft outcomes.

Each coefficient has a normal prior around 0, so that the solution is unique and finite even for separated
outcomes or dependent columns. It is found by Newton's method with step halving on the log posterior, which is
concave. An outcome p in [0, 1] counts as p wins and 1 - p losses (a quasi-likelihood: Papke and Wooldridge
1996, J. Appl. Econometrics 11). The robust covariance allows for clusters: it is the jackknife that leaves
out one cluster at a time, by one Newton step. With few clusters, the plain sandwich would be too small
(Lipsitz, Dear and Zhao 1994, Biometrics 50; CR3 of Bell and McCaffrey 2002, Survey Methodology 28).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgen.stats.intervals import Estimate
from edgen.stats.quantiles import t95

Array = NDArray[np.float64]
_STEPS = 100
_HALVINGS = 40
_ENOUGH = 1e-10


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model. `coefficients` (k); `covariance` (k, k), the inverse Hessian; `robust` (k, k), None
    without clusters."""

    coefficients: Array
    covariance: Array
    robust: Array | None


def slope(x: ArrayLike, y: ArrayLike, clusters: ArrayLike, *, prior_sd: float) -> Estimate:
    """Return the coefficient of the second column of `x`, by `fit`, with its 95% interval; a single cluster
    has no interval."""
    fitted, groups = fit(x, y, prior_sd=prior_sd, clusters=clusters), len(np.unique(clusters))
    value, n = float(fitted.coefficients[1]), len(np.asarray(y))
    if fitted.robust is None:
        return Estimate(value=value, low=None, high=None, n=n, scenarios=groups)
    half = t95(groups - 1) * math.sqrt(max(float(fitted.robust[1, 1]), 0.0))
    return Estimate(value=value, low=value - half, high=value + half, n=n, scenarios=groups)


def fit(
    x: ArrayLike,
    y: ArrayLike,
    *,
    prior_sd: float,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Fit:
    """Fit coefficients for rows `x` (n, k) and outcomes `y` (n) in [0, 1].

    `prior_sd`: the prior's standard deviation, finite and positive. `weights` (n): the counts of rows.
    `clusters` (n): the group of each row; `robust` needs at least two groups.
    """
    rows = np.asarray(x, dtype=np.float64)
    outcome = np.asarray(y, dtype=np.float64)
    weight = np.ones(len(outcome)) if weights is None else np.asarray(weights, dtype=np.float64)
    precision = np.full(rows.shape[1], 1.0 / prior_sd**2)
    beta = np.zeros(rows.shape[1])
    value = _log_posterior(rows, outcome, weight, precision, beta)
    for _ in range(_STEPS):
        gradient, hessian = _derivatives(rows, outcome, weight, precision, beta)
        step = np.linalg.solve(hessian, gradient)
        for _ in range(_HALVINGS):
            reached = _log_posterior(rows, outcome, weight, precision, beta + step)
            if reached >= value:
                break
            step = step / 2
        else:
            break
        beta, value = beta + step, reached
        if float(np.max(np.abs(step), initial=0.0)) < _ENOUGH:
            break
    _, hessian = _derivatives(rows, outcome, weight, precision, beta)
    covariance = np.asarray(np.linalg.inv(hessian), dtype=np.float64)
    robust = None
    if clusters is not None:
        p = sigmoid(rows @ beta)
        scores = rows * (weight * (outcome - p))[:, None]
        robust = _jackknife(rows, scores, weight * p * (1.0 - p), np.asarray(clusters), hessian)
    return Fit(beta, covariance, robust)


def sigmoid(logits: Array) -> Array:
    """Return 1 / (1 + exp(-logits)), without overflow."""
    smaller = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1.0, smaller) / (1.0 + smaller)


def _log_posterior(rows: Array, outcome: Array, weight: Array, precision: Array, beta: Array) -> float:
    logits = rows @ beta
    likelihood = weight @ (outcome * logits - np.logaddexp(0.0, logits))
    return float(likelihood - 0.5 * precision @ beta**2)


def _derivatives(
    rows: Array, outcome: Array, weight: Array, precision: Array, beta: Array
) -> tuple[Array, Array]:
    """Return the gradient of the log posterior and the Hessian of its negative."""
    p = sigmoid(rows @ beta)
    gradient = rows.T @ (weight * (outcome - p)) - precision * beta
    hessian = (rows * (weight * p * (1.0 - p))[:, None]).T @ rows + np.diag(precision)
    return gradient, hessian


def _jackknife(
    rows: Array, scores: Array, information: Array, clusters: NDArray[np.generic], hessian: Array
) -> Array | None:
    """Return (G - 1) / G times the sum of squared changes by each cluster; None for fewer than two."""
    groups, member = np.unique(clusters, return_inverse=True)
    if len(groups) < 2:
        return None
    width = rows.shape[1]
    sums, own = np.zeros((len(groups), width)), np.zeros((len(groups), width, width))
    np.add.at(sums, member, scores)
    np.add.at(own, member, information[:, None, None] * rows[:, :, None] * rows[:, None, :])
    changes = np.linalg.solve(hessian - own, sums[:, :, None])[:, :, 0]
    result: Array = changes.T @ changes * ((len(groups) - 1) / len(groups))
    return result
