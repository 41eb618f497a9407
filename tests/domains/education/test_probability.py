"""The stated probability when preferences match and when they differ, and the difference between the two."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.domains.education.measures.probability import ProbabilityCount
from edgen.evaluation.sample import Sample
from edgen.stats.intervals import difference_of_means
from tests.evaluation.said import HANDS, LECTURE, TALK, lesson, measured, samples


def test_by_kind_with_bins_of_a_tenth() -> None:
    stated = [
        lesson(index=0, likes=LECTURE, has=LECTURE, probability=0.8),
        lesson(index=1, likes=LECTURE, has=LECTURE, probability=1.0),
        lesson(index=2, likes=LECTURE, has=TALK, probability=0.3),
        lesson(index=3, likes=HANDS, has=TALK, probability=0.0),
        lesson(index=4, likes="this and that", has=TALK, probability=0.5),
        lesson(index=5, probability=None),
    ]
    found = measured(ProbabilityCount(), *stated)
    assert found.missing == 1
    assert {name: part.distribution.n for name, part in found.by.items()} == {
        "match": 2, "mismatch": 2, "untold": 1,
    }  # fmt: skip
    assert [bar.count for bar in found.all.distribution.bins] == [1, 0, 0, 1, 0, 1, 0, 0, 1, 1]
    assert found.difference is not None
    assert found.difference.value == pytest.approx(0.9 - 0.15)
    assert (found.difference.n, found.difference.scenarios) == (4, 4)


def test_without_one_of_the_kinds_there_is_no_difference() -> None:
    assert measured(ProbabilityCount()).difference is None
    only = measured(ProbabilityCount(), lesson(likes=LECTURE, has=LECTURE, probability=0.8))
    assert only.difference is None
    assert only.all.mean is not None
    assert only.all.mean.low is None


def test_with_a_conversation_a_scenario_it_is_the_variance_of_two_independent_means() -> None:
    values = np.array([0.1, 0.4, 0.3, 0.2, 0.5, 0.9, 0.7, 0.6, 0.8, 0.65, 0.7, 0.75])
    one = np.array([True] * 5 + [False] * 7)
    found = difference_of_means(values, one, ~one, np.arange(12))
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    first, second = (part.var(ddof=1) / part.size for part in (values[one], values[~one]))
    freedom = (first + second) ** 2 / (first**2 / 4 + second**2 / 6)  # Welch-Satterthwaite degrees of freedom
    assert int(freedom) == 6
    half = 2.446912 * np.sqrt(first + second)  # Student's t at 97.5% with 6 degrees of freedom
    assert found.high - found.value == pytest.approx(half, abs=1e-6)
    assert found.value - found.low == pytest.approx(half, abs=1e-6)


@pytest.mark.parametrize(("few", "told"), [(1, False), (2, False), (4, False), (5, True)])
def test_a_kind_of_few_scenarios_has_no_interval_and_no_difference_is_surer(few: int, told: bool) -> None:
    rng = random.Random(few)
    stated = [lesson(index=i, likes=LECTURE, has=LECTURE, probability=rng.random()) for i in range(few)]
    stated += [lesson(index=9 + i, likes=LECTURE, has=TALK, probability=rng.random()) for i in range(30)]
    found = measured(ProbabilityCount(), *stated)
    match, mismatch = found.by["match"].mean, found.by["mismatch"].mean
    assert match is not None
    assert mismatch is not None
    assert found.difference is not None
    assert (match.low is not None, found.difference.low is not None) == (told, told)
    assert mismatch.low is not None
    if told:
        assert match.high is not None
        assert match.low is not None
        assert found.difference.high is not None
        assert found.difference.low is not None
        assert 0 <= match.low <= match.value <= match.high <= 1
        assert -1 <= found.difference.low <= found.difference.high <= 1
        assert found.difference.high - found.difference.low > 0.8 * (match.high - match.low)


def test_values_that_do_not_vary_tell_nothing_of_how_a_difference_would() -> None:
    stated = [lesson(index=i, likes=LECTURE, has=LECTURE, probability=0.9) for i in range(5)]
    stated += [lesson(index=9 + i, likes=LECTURE, has=TALK, probability=0.2) for i in range(5)]
    found = measured(ProbabilityCount(), *stated).difference
    assert found is not None
    assert (found.value, found.low, found.high) == (pytest.approx(0.7), None, None)


def test_the_interval_covers_the_truth_where_scenarios_are_clusters() -> None:
    covered = 0
    for seed in range(300):
        rng = random.Random(seed)
        values, match, scenarios = [], [], []
        for scenario in range(60):
            fits = rng.random() < 0.4
            shared = rng.gauss(0, 0.1)  # the four conversations of a scenario share it
            for _ in range(4):
                values.append((0.6 if fits else 0.4) + shared + rng.gauss(0, 0.1))
                match.append(fits)
                scenarios.append(scenario)
        one = np.array(match)
        found = difference_of_means(np.array(values), one, ~one, np.array(scenarios))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.2 <= found.high
    assert 0.91 <= covered / 300 <= 0.99


@settings(max_examples=25, deadline=None)
@given(st.lists(samples(), max_size=6))
@pytest.mark.integration
def test_nothing_raises(given_: list[Sample]) -> None:
    found = measured(ProbabilityCount(), *given_)
    assert found.missing + found.all.distribution.n == len(given_)
    assert sum(part.distribution.n for part in found.by.values()) == found.all.distribution.n
    assert sum(bar.count for bar in found.all.distribution.bins) == found.all.distribution.n
