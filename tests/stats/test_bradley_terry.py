"""Logistic regression and Bradley-Terry strengths against brute force; coverage of intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.preferences.tournament import draw_matches
from edgen.stats.bradley_terry import PRIOR_SD, strengths
from edgen.stats.logistic import fit, sigmoid

Results = list[tuple[int, int, float, float]]


def log_posterior(values: list[float], results: Results) -> float:
    total = -sum(v * v for v in values) / (2 * PRIOR_SD**2)
    for i, j, p, weight in results:
        logit = values[i] - values[j]
        total += weight * (p * logit - math.log1p(math.exp(logit)))
    return total


def climb(results: Results, count: int) -> list[float]:
    """Return the maximum by coordinate search: slow, and independent of Newton's method."""
    values, step = [0.0] * count, 1.0
    best = log_posterior(values, results)
    while step > 1e-7:
        moved = False
        for k, sign in itertools.product(range(count), (1, -1)):
            tried = [v + sign * step * (i == k) for i, v in enumerate(values)]
            reached = log_posterior(tried, results)
            if reached > best:
                values, best, moved = tried, reached, True
        if not moved:
            step /= 2
    return values


@pytest.mark.parametrize(
    "results",
    [
        [(0, 1, 1.0, 2), (1, 2, 1.0, 2), (0, 2, 1.0, 2)],
        [(0, 1, 0.75, 4), (1, 2, 0.25, 2), (2, 3, 0.5, 1), (3, 0, 0.1, 10), (0, 2, 1.0, 3)],
        [(0, 1, 1.0, 1), (0, 1, 0.0, 1), (0, 1, 1.0, 1)],
    ],
)
def test_the_strengths_are_where_the_posterior_is_highest(results: Results) -> None:
    fitted = strengths(results)
    wanted = climb(results, len(fitted))
    assert [fitted[k].value for k in range(len(fitted))] == pytest.approx(wanted, abs=2e-5)


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(7, 12), st.floats(0, 1), st.integers(1, 20)), max_size=25
    ),
)
@settings(deadline=None)
def test_strengths_are_finite_centred_and_turn_with_the_results(results: Results) -> None:
    fitted = strengths(results)
    assert set(fitted) == {name for i, j, _, _ in results for name in (i, j)}
    assert sum(s.value for s in fitted.values()) == pytest.approx(0, abs=1e-4)
    assert all(s.low <= s.value <= s.high and math.isfinite(s.high - s.low) for s in fitted.values())
    turned = strengths([(j, i, 1 - p, n) for i, j, p, n in results])
    assert {k: s.value for k, s in turned.items()} == pytest.approx(
        {k: s.value for k, s in fitted.items()}, abs=3e-6
    )
    mirrored = strengths([(j, i, p, n) for i, j, p, n in results])
    assert {k: -s.value for k, s in mirrored.items()} == pytest.approx(
        {k: s.value for k, s in fitted.items()}, abs=3e-6
    )


def test_more_matches_or_more_verdicts_make_intervals_narrower() -> None:
    played = [(0, 1, 1.0), (1, 2, 0.5), (0, 2, 1.0)]
    once = strengths([(*match, 2) for match in played])
    often = strengths([(*match, 20) for match in played])
    assert all(often[k].high - often[k].low < once[k].high - once[k].low for k in once)
    repeated = strengths([(*match, 2) for match in played] * 10)
    assert all(often[k].value == pytest.approx(repeated[k].value, abs=3e-6) for k in once)


@pytest.mark.parametrize(("spread", "least"), [(1.0, 0.93), (2.0, 0.93), (3.0, 0.86)])
def test_intervals_cover_what_the_docstring_says(spread: float, least: float) -> None:
    rng = np.random.default_rng(20240514)
    for verdicts in (2, 20):
        hits = []
        for trial in range(100):
            for count in (2, 5, 8):
                true = rng.normal(0, spread, count)
                true -= true.mean()
                results = [
                    (a, b, float(rng.binomial(verdicts, sigmoid(true[a] - true[b]))) / verdicts, verdicts)
                    for a, b in draw_matches(range(count), None, 1, trial)
                ]
                fitted = strengths(results)
                hits += [fitted[k].low <= true[k] <= fitted[k].high for k in range(count)]
        assert least <= sum(hits) / len(hits) <= 0.995, (verdicts, sum(hits) / len(hits))


def test_the_order_is_recovered() -> None:
    rng = np.random.default_rng(3)
    true = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    results = [
        (a, b, float(rng.binomial(20, sigmoid(true[a] - true[b]))) / 20, 20)
        for a, b in itertools.combinations(range(5), 2)
    ]
    fitted = strengths(results)
    assert sorted(fitted, key=lambda k: fitted[k].value) == [0, 1, 2, 3, 4]


def test_nobody_has_no_strength() -> None:
    assert strengths([]) == {}


def test_a_regression_finds_what_made_the_data_and_says_how_sure_it_is() -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(200):
        x = np.column_stack([np.ones(300), rng.normal(size=300)])
        y = rng.random(300) < sigmoid(x @ [0.3, -0.8])
        fitted = fit(x, y, prior_sd=10.0)
        half = 1.96 * math.sqrt(fitted.covariance[1, 1])
        covered += abs(fitted.coefficients[1] + 0.8) <= half
    assert 0.90 <= covered / 200 <= 0.99


def test_a_row_with_weight_three_is_three_rows() -> None:
    x, y = [[1.0, 0.2], [1.0, -1.0], [1.0, 2.0]], [1.0, 0.25, 0.5]
    weighted = fit(x, y, prior_sd=2.0, weights=[3, 1, 2])
    repeated = fit([x[i] for i in (0, 0, 0, 1, 2, 2)], [y[i] for i in (0, 0, 0, 1, 2, 2)], prior_sd=2.0)
    assert weighted.coefficients == pytest.approx(repeated.coefficients)
    assert weighted.covariance == pytest.approx(repeated.covariance)


def test_copies_of_the_data_in_the_same_clusters_leave_the_robust_covariance_as_it_is() -> None:
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(400), rng.normal(size=400)])
    y, clusters = rng.random(400) < 0.5, np.repeat(np.arange(100), 4)
    once = fit(x, y, prior_sd=1e6, clusters=clusters)
    twice = fit(np.vstack([x, x]), np.tile(y, 2), prior_sd=1e6, clusters=np.tile(clusters, 2))
    assert once.robust is not None
    assert twice.robust == pytest.approx(once.robust, rel=1e-4)
    assert twice.covariance == pytest.approx(once.covariance / 2, rel=1e-4)
    assert fit(x, y, prior_sd=1.0, clusters=np.zeros(400)).robust is None


def test_where_plain_newton_steps_run_away_the_answer_is_still_the_maximum() -> None:
    x, y = np.array([[60.6, 208.3], [-0.8, 1.4], [7.3, 8.4]]), np.array([0.0, 0.0, 1.0])
    beta = fit(x, y, prior_sd=10.0).coefficients
    gradient = x.T @ (y - sigmoid(x @ beta)) - beta / 100
    assert gradient == pytest.approx([0, 0], abs=1e-6)
    assert np.max(np.abs(beta)) < 50


def test_separated_and_dependent_columns_have_a_finite_answer() -> None:
    fitted = fit([[1.0, 1.0], [-1.0, -1.0], [500.0, 500.0]], [1.0, 0.0, 1.0], prior_sd=10.0)
    assert np.all(np.isfinite(fitted.coefficients))
    assert np.all(np.isfinite(fitted.covariance))
    assert fitted.coefficients[0] == pytest.approx(fitted.coefficients[1])
