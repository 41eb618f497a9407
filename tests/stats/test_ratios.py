"""Arms with unequal denominators: no false alarm from a rare event, and no loss of power."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from edgen.evaluation.comparison.metrics import MetricSpec
from edgen.stats.ratios import RatioDifference, compare_paired, compare_unpaired
from edgen.stats.resampling import FEWEST, permutation_test
from tests.dose import dose

pytestmark = pytest.mark.integration

Array = NDArray[np.float64]
SPEC = MetricSpec("m", "m", "number", "top", "bottom", "")
SHARE = MetricSpec("m", "m", "share", "top", "bottom", "")
N, SEEDS = 100, 200


def columns(top: Array, bottom: Array) -> Callable[[str], Array]:
    return {"top": top, "bottom": bottom}.__getitem__


def difference(
    a: tuple[Array, Array], b: tuple[Array, Array], seed: int, spec: MetricSpec = SPEC
) -> RatioDifference:
    rng = np.random.default_rng((seed, 1))
    (found,) = compare_paired(columns(*a), columns(*b), [spec], rng, 499, 1999)
    return found


def rare(rng: np.random.Generator, replicates: int, acceptance: float) -> tuple[Array, Array]:
    """Return the number of rare events in each scenario's accepted conversations, and the number of these."""
    accepted = rng.binomial(replicates, acceptance, N)
    return rng.binomial(accepted, 0.005).astype(float), accepted.astype(float)


@pytest.mark.parametrize(("replicates", "acceptance"), [((2, 2), (0.9, 0.5)), ((2, 1), (1.0, 1.0))])
def test_one_rare_event_is_no_finding(replicates: tuple[int, int], acceptance: tuple[float, float]) -> None:
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        a, b = (rare(rng, r, p) for r, p in zip(replicates, acceptance, strict=True))
        found.append(difference(a, b, seed, SHARE))
    p = np.array([1.0 if one.p is None else one.p for one in found])
    assert np.mean(p < 0.001) == 0
    assert np.mean(p < 0.05) <= 0.07


def test_the_test_finds_what_the_interval_finds_where_one_side_says_more() -> None:
    """Words a turn, of 6 turns and of 12, with a true difference."""
    excluded, tested = 0, 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        talkative = rng.normal(0, 2, N)
        a, b = (
            (turns * (15 + talkative + rng.normal(0, 2, N) + more), np.full(N, float(turns)))
            for turns, more in ((6, 0.0), (12, 0.8))
        )
        found = difference(a, b, seed)
        assert found.low is not None
        assert found.p is not None
        excluded += found.low > 0
        tested += found.p < 0.05
    assert excluded > 0.6 * SEEDS
    assert tested == pytest.approx(excluded, abs=0.05 * SEEDS)


def test_what_each_cluster_adds_is_counted() -> None:
    one, two = np.ones(N), np.full(N, 2.0)
    event = np.zeros(N)
    event[3] = 1
    assert difference((0 * one, two), (0 * one, one), 0, SHARE).changed == 0
    # as many in total, in twice as many conversations
    assert difference((2 * one, two), (one, one), 0).changed == 0
    found = difference((event, one), (np.roll(event, 1), one), 0, SHARE)
    assert (found.changed, found.events, found.value) == (2, 2, 0)
    # nearly all is as rare as nearly none
    found = difference((one - event, one), (one, one), 0, SHARE)
    assert (found.changed, found.events) == (1, 1)


def test_clusters_that_are_not_paired() -> None:
    rng = np.random.default_rng(1)
    long, short = (np.full(n, 6.0) for n in (80, 30))
    sides = [columns(top, np.ones(len(top))) for top in (long, short)]
    (same,) = compare_unpaired(*sides, [SPEC], rng, 99, 99)
    assert (same.n, same.changed, same.low, same.high, same.p) == (30, 0, 0, 0, 1)
    (few,) = compare_unpaired(
        sides[0], columns(short[: FEWEST - 1], np.ones(FEWEST - 1)), [SPEC], rng, 99, 99
    )
    assert (few.n, few.p) == (FEWEST - 1, None)


def unpaired_p(a: Array, b: Array, seed: int) -> float:
    """Return the p-value that two arms with one or several conversations a scenario have the same ratio."""
    return float(permutation_test(a, b, np.random.default_rng(seed), 399)[0])


@pytest.mark.long
@pytest.mark.parametrize(
    ("clusters", "copies", "spread"),
    [((300, 30), (1, 4), (1.0, 1.0)),
     *dose([], [((30, 300), (4, 1), (1.0, 1.0)), ((500, 100), (1, 1), (1.0, 3.0)), ((100, 500), (1, 1), (1.0, 3.0))])],
)  # fmt: skip
def test_arms_that_are_not_paired_may_differ_in_size_and_spread(
    clusters: tuple[int, int], copies: tuple[int, int], spread: tuple[float, float]
) -> None:
    alarms = 0
    for seed in range(100):
        draw = np.random.default_rng((7, seed))
        a, b = (
            np.stack([draw.normal(5.0, sd, (n, many)).sum(axis=1), np.full(n, float(many))], axis=1)
            for n, many, sd in zip(clusters, copies, spread, strict=True)
        )
        alarms += unpaired_p(a, b, seed) < 0.05
    assert alarms <= 12


def test_a_difference_between_arms_that_are_not_paired_is_found() -> None:
    found = 0
    for seed in range(40):
        draw = np.random.default_rng((8, seed))
        a = np.stack([draw.normal(5.0, 3.0, 500), np.ones(500)], axis=1)
        b = np.stack([draw.normal(5.6, 1.0, 100), np.ones(100)], axis=1)
        found += unpaired_p(a, b, seed) < 0.05
    assert found >= 30


def test_one_rare_event_is_no_finding_between_arms_that_are_not_paired() -> None:
    a = np.stack([np.zeros(200), np.ones(200)], axis=1)
    b = np.stack([np.zeros(50), np.ones(50)], axis=1)
    b[3, 0] = 1.0
    assert unpaired_p(a, b, 1) > 0.1
    assert unpaired_p(a, a, 1) == 1.0
