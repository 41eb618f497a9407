"""The statistics against what can be computed by hand, by enumeration or in closed form."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from edgen.comparison.resampling import interval, labels_p, ratios, resampled, signs_p


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_resampled_sums_have_the_mean_and_the_spread_of_the_bootstrap() -> None:
    values = rng().normal(size=(400, 2)) * (1.0, 3.0)
    sums = resampled(values, rng(2), 4000)
    assert sums.shape == (4000, 2)
    # The bootstrap's variance of a sum of n: n times the variance of the data.
    spread = np.sqrt(400) * values.std(axis=0)
    assert np.abs(sums.mean(axis=0) - values.sum(axis=0)) == pytest.approx(0, abs=4 * spread.max() / 60)
    assert sums.std(axis=0) == pytest.approx(spread, rel=0.05)


def test_one_draw_of_scenarios_serves_all_columns() -> None:
    column = rng().normal(size=(50, 1))
    sums = resampled(np.hstack([column, 2 * column]), rng(), 100)
    assert sums[:, 1] == pytest.approx(2 * sums[:, 0])


def test_a_ratio_without_denominator_is_unknown() -> None:
    assert np.isnan(ratios(np.array([[1.0, 0.0]]))[0, 0])
    assert interval(np.array([np.nan, np.nan, 1.0])) is None
    assert interval(np.linspace(0, 1, 1001)) == (0.025, 0.975)


def test_signs_agree_with_all_of_them() -> None:
    d = np.array([1.0, 2.0, 2.0, -1.0, 3.0, 1.0, 4.0, 0.0])
    total = abs(d.sum())
    exact = np.mean([abs(np.dot(s, d)) >= total for s in itertools.product((1, -1), repeat=len(d))])
    found = signs_p(np.stack([d, -d, 0 * d], axis=1), rng(), 40_000)
    assert found[:2] == pytest.approx(exact, abs=0.01)
    assert found[2] == 1.0


def test_labels_agree_with_all_of_them() -> None:
    a, b = np.array([1.0, 2.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0, 2.0, 6.0])
    both = np.concatenate([a, b])
    rest = both - both.mean()
    observed = abs(rest[len(a) :].sum())
    every = itertools.combinations(range(9), 5)
    exact = np.mean([abs(rest[list(chosen)].sum()) >= observed - 1e-9 for chosen in every])
    columns = [np.stack([x, np.ones_like(x)], axis=1) for x in (a, b)]
    assert labels_p(*columns, rng(), 40_000) == pytest.approx([exact], abs=0.01)
