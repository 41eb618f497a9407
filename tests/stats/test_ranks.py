"""Tests by ranks: published tables, SciPy's figures, and properties of any data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.stats.ranks import EXACT_GROUPS, spearman, superiority

RATINGS = st.lists(st.integers(1, 7), min_size=1, max_size=12)


def groups(u: int, m: int, n: int) -> tuple[list[float], list[float]]:
    """Return two groups of different values with this U of the first."""
    b = list(range(1, n + 1))
    a = []
    for _ in range(m):
        below = min(u, n)
        u -= below
        a.append(below + 0.5 + len(a) / 100)
    return a, [float(one) for one in b]


@pytest.mark.parametrize(
    ("u", "m", "n", "one_sided"),
    [
        # Mann and Whitney 1947, table I, as in Siegel 1956, table J
        (2, 5, 5, 0.016),
        (0, 3, 3, 0.050),
        (3, 4, 4, 0.100),
        (8, 7, 7, 0.019),
        (13, 8, 8, 0.025),
    ],
)
def test_u_is_as_unlikely_as_in_the_published_table(u: int, m: int, n: int, one_sided: float) -> None:
    a, b = groups(u, m, n)
    found = superiority(a, b, range(m), range(m, m + n))
    assert found is not None
    assert found.value == pytest.approx(u / m / n, abs=1e-6)
    assert found.exact
    assert round(found.p / 2, 3) == one_sided


@pytest.mark.parametrize(
    ("order", "two_sided"),
    [
        # all orders of n, as tabled by Olds 1938, Annals of Mathematical Statistics 9
        ([1, 2, 3, 4], 0.0833),
        ([1, 2, 3, 4, 5], 0.0167),
        ([2, 1, 3, 4, 5], 0.0833),
        ([2, 1, 4, 3, 5, 6], 0.0333),
    ],
)
def test_rho_is_as_unlikely_as_in_the_published_table(order: list[int], two_sided: float) -> None:
    found = spearman(range(len(order)), order, range(len(order)))
    assert found is not None
    assert found.exact
    assert round(found.p, 4) == two_sided


A = [7, 5, 6, 4, 7, 3, 6, 6, 5, 7] * 3
B = [2, 5, 3, 4, 6, 1, 4, 5, 3, 4] * 4


def test_what_scipy_finds() -> None:
    """SciPy 1.17.1: mannwhitneyu(A, B, method="asymptotic"), spearmanr, two-sided permutation_test."""
    found = superiority(A, B, range(30), range(30, 70))
    assert found is not None
    assert (found.value, found.p, found.exact) == (0.83, pytest.approx(1.8717586e-06, rel=1e-5), False)
    few = superiority(A[:6], B[:6], range(6), range(6, 12))
    assert few is not None
    assert (few.value, few.p, few.exact) == (pytest.approx(7 / 9), pytest.approx(0.1385281, rel=1e-5), True)
    pairs = spearman(A, B[:30], range(30))
    assert pairs is not None
    assert (pairs.value, pairs.p) == (pytest.approx(0.2857272), pytest.approx(0.1258672, rel=1e-5))
    seven = spearman(A[:7], B[:7], range(7))
    assert seven is not None
    assert (seven.value, seven.p) == (pytest.approx(0.302765), pytest.approx(0.5047619, rel=1e-5))


@given(RATINGS, RATINGS)
def test_groups_that_change_places_change_the_value_and_nothing_else(a: list[int], b: list[int]) -> None:
    places = np.arange(len(a) + len(b))
    one = superiority(a, b, places[: len(a)], places[len(a) :])
    other = superiority(b, a, places[len(a) :], places[: len(a)])
    assert one is not None
    assert other is not None
    assert one.value + other.value == pytest.approx(1, abs=2e-6)
    assert one.p == other.p
    assert 0 < one.p <= 1
    if one.low is not None and one.high is not None:
        assert one.low <= one.value <= one.high
        assert other.low == pytest.approx(1 - one.high, abs=2e-6)


@given(st.lists(st.tuples(st.integers(1, 7), st.integers(0, 5)), min_size=3, max_size=30))
def test_only_the_order_of_values_counts(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    one = spearman(x, y, range(len(x)))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert one is None
        return
    assert one == spearman([math.exp(v) for v in x], [v**3 for v in y], range(len(x)))
    turned = spearman(x, [-v for v in y], range(len(x)))
    assert one is not None
    assert turned is not None
    assert (one.value, one.p) == (pytest.approx(-turned.value, abs=1e-6), pytest.approx(turned.p, rel=1e-5))
    assert one.low is None or one.low <= one.value <= (one.high or 0)


def test_conversations_of_a_scenario_are_no_more_than_the_scenario() -> None:
    """Every observation four times in its scenario: interval and p are as with one of each."""
    a, b = [7, 5, 6, 4, 3, 6], [2, 5, 3, 4, 6, 1]
    once = superiority(a, b, range(6), range(6, 12))
    often = superiority(a * 4, b * 4, [*range(6)] * 4, [*range(6, 12)] * 4)
    assert once is not None
    assert often is not None
    assert (once.low, once.high, once.p) == (often.low, often.high, often.p)
    rho, rhos = spearman(a, b, range(6)), spearman(a * 4, b * 4, [*range(6)] * 4)
    assert rho is not None
    assert rhos is not None
    assert (rho.low, rho.high) == (pytest.approx(rhos.low), pytest.approx(rhos.high))
    assert (rho.p, rho.exact) == (rhos.p, rhos.exact)


def test_conversations_that_resemble_each_other_raise_no_false_alarm() -> None:
    """Four ratings in each of 16 scenarios, near each other within a scenario, and nothing else to find."""
    alarms = np.zeros(2)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scenario = np.repeat(np.arange(16), 4)
        ratings, acts = (np.round(4 + rng.normal(0, 1, 16)[scenario] + rng.normal(0, 0.4, 64)) for _ in "ab")
        after = scenario < 8
        groups = superiority(ratings[after], ratings[~after], scenario[after], scenario[~after])
        pairs = spearman(ratings, acts, scenario)
        assert groups is not None
        assert pairs is not None
        alarms += groups.p < 0.05, pairs.p < 0.05
    assert max(alarms) <= 8
    flat = spearman([1, 7] * 10, range(20), np.repeat(np.arange(10), 2))
    assert flat is not None
    assert flat.p == 1


def test_where_nothing_can_be_told_nothing_is() -> None:
    assert superiority([], [1], [], [0]) is None
    alike = superiority([4] * 40, [4] * 40, range(40), range(40, 80))
    assert alike is not None
    assert (alike.value, alike.low, alike.p) == (0.5, 0.5, 1.0)
    apart = superiority([7] * 3, [1] * 3, range(3), range(3, 6))
    assert apart is not None
    assert (apart.value, apart.low, apart.p) == (1.0, None, 0.1)
    assert spearman([1, 2], [1, 2], range(2)) is None
    assert EXACT_GROUPS < 80
