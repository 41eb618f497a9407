"""Intervals contain their values, at the edges too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.stats.intervals import share
from edgen.stats.quantiles import Z95, t95, wilson


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=2, max_size=60), st.integers(2, 60))
def test_a_share_is_within_its_interval_and_that_within_0_and_1(values: list[float], scenarios: int) -> None:
    found = share(values, [i % scenarios for i in range(len(values))])
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_ten_of_ten() -> None:
    found = share([1] * 10, range(10))
    assert found is not None
    assert found.high == found.value == 1


def test_quantiles_and_wilson_s_interval_are_those_of_the_tables() -> None:
    assert [round(t95(freedom), 3) for freedom in (1, 10, 11, 30, 120)] == [
        12.706,
        2.228,
        2.201,
        2.042,
        1.980,
    ]
    assert wilson(0.8, 10, Z95) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(1.0, 10, Z95)[1] == 1.0
