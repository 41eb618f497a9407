"""The statistics against values by hand, by enumeration or in closed form."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from edgen.stats.resampling import bootstrap, interval, permutation_test, ratios, sign_flip_test


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_resampled_sums_have_the_mean_and_the_spread_of_the_bootstrap() -> None:
    values = rng().normal(size=(400, 2)) * (1.0, 3.0)
    sums = bootstrap(values, rng(2), 4000)
    assert sums.shape == (4000, 2)
    # The bootstrap's variance of a sum of n: n times the variance of the data.
    spread = np.sqrt(400) * values.std(axis=0)
    assert np.abs(sums.mean(axis=0) - values.sum(axis=0)) == pytest.approx(0, abs=4 * spread.max() / 60)
    assert sums.std(axis=0) == pytest.approx(spread, rel=0.05)


def test_one_draw_of_scenarios_serves_all_columns() -> None:
    column = rng().normal(size=(50, 1))
    sums = bootstrap(np.hstack([column, 2 * column]), rng(), 100)
    assert sums[:, 1] == pytest.approx(2 * sums[:, 0])


def test_a_ratio_without_denominator_is_unknown() -> None:
    assert np.isnan(ratios(np.array([[1.0, 0.0]]))[0, 0])
    assert interval(np.array([np.nan, np.nan, 1.0]), 100) is None


def test_the_percentiles_are_farther_out_the_fewer_the_clusters() -> None:
    """Hesterberg 2015, table 6: alpha/2 of the expanded percentile interval."""
    draws = np.linspace(0, 1, 100_001)
    for clusters, tail in ((5, 0.0010), (10, 0.0086), (20, 0.0159), (40, 0.0203), (10_000, 0.025)):
        found = interval(draws, clusters)
        assert found is not None
        assert found == (pytest.approx(tail, abs=1e-4), pytest.approx(1 - tail, abs=1e-4)), clusters
    assert interval(draws, 4) is None


@pytest.mark.parametrize("clusters", [5, 10, 20])
def test_intervals_over_few_clusters_hold_the_truth(clusters: int) -> None:
    draw = rng(clusters)
    held = 0
    for _ in range(600):
        found = interval(bootstrap(draw.normal(size=(clusters, 1)), draw, 999)[:, 0], clusters)
        assert found is not None
        held += found[0] < 0 < found[1]
    assert 0.92 <= held / 600 <= 0.985


def test_every_cluster_is_drawn_as_often() -> None:
    """A hundred resamples of five clusters, distinguished by their digit."""
    sums = bootstrap(10.0 ** np.arange(5)[:, None], rng(), 400)[:, 0].astype(int)
    drawn = np.array([[value // 10**place % 10 for place in range(5)] for value in sums])
    assert drawn.sum(axis=1) == pytest.approx(5)
    assert drawn.mean(axis=0) == pytest.approx(1, abs=0.2)


def test_a_p_value_is_never_nought() -> None:
    """The observation is one of the draws: (1 + 0) / (1 + 99)."""
    assert sign_flip_test(np.ones((60, 1)), rng(), 99)[0] == pytest.approx(0.01)
    sides = [np.stack([np.full(60, x), np.ones(60)], axis=1) for x in (0.0, 1.0)]
    assert permutation_test(*sides, rng(), 99)[0] == pytest.approx(0.01)


def test_signs_agree_with_all_of_them() -> None:
    d = np.array([1.0, 2.0, 2.0, -1.0, 3.0, 1.0, 4.0, 0.0])
    total = abs(d.sum())
    exact = np.mean([abs(np.dot(s, d)) >= total for s in itertools.product((1, -1), repeat=len(d))])
    found = sign_flip_test(np.stack([d, -d, 0 * d], axis=1), rng(), 40_000)
    assert found[:2] == pytest.approx(exact, abs=0.01)
    assert found[2] == 1.0


def test_labels_agree_with_all_of_them() -> None:
    a, b = np.array([1.0, 2.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0, 2.0, 6.0])
    both = np.concatenate([a, b])

    def apart(chosen: list[int]) -> float:
        """Return the difference over its standard error, of the clusters dealt to b and of the others."""
        b, a = both[chosen], np.delete(both, chosen)
        return float(abs(b.mean() - a.mean()) / np.sqrt(b.var() / len(b) + a.var() / len(a)))

    observed = apart([4, 5, 6, 7, 8])
    every = itertools.combinations(range(9), 5)
    exact = np.mean([apart(list(chosen)) >= observed - 1e-9 for chosen in every])
    columns = [np.stack([x, np.ones_like(x)], axis=1) for x in (a, b)]
    assert permutation_test(*columns, rng(), 40_000) == pytest.approx([exact], abs=0.01)
