"""Token buckets: the limit holds in every minute, and nearly all of it is used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.execution.client.token_bucket import Bucket

pytestmark = pytest.mark.unit


def greedy(bucket: Bucket, amounts: list[float], pauses: list[float]) -> list[tuple[float, float]]:
    """Take each amount as soon as possible, after its pause; return (moment, amount)."""
    now = 0.0
    taken = []
    for amount, pause in zip(amounts, pauses, strict=True):
        now = max(now + pause, bucket.find_ready_time(amount))
        bucket.take(amount, now)
        taken.append((now, amount))
    return taken


def most_in_a_minute(taken: list[tuple[float, float]]) -> float:
    """Return the largest sum over [t, t + 60)."""
    most = running = 0.0
    start = 0
    for moment, amount in taken:
        running += amount
        while taken[start][0] <= moment - 60:
            running -= taken[start][1]
            start += 1
        most = max(most, running)
    return most


@pytest.mark.parametrize("per_minute", [0.5, 1, 2, 7, 60, 600, 10_000])
def test_requests_keep_to_the_limit_and_use_it(per_minute: float) -> None:
    count = int(per_minute * 5) + 2
    taken = greedy(Bucket(per_minute, burst_seconds=2, unit=1), [1] * count, [0] * count)
    assert most_in_a_minute(taken) <= max(1, per_minute)
    assert (count - 1) / taken[-1][0] * 60 >= 0.96 * per_minute


@given(
    st.sampled_from([3, 60, 600]),
    st.lists(st.sampled_from([0, 0, 0, 0.01, 0.5, 3, 40]), min_size=1, max_size=300),
)
def test_requests_keep_to_the_limit_however_they_come(per_minute: int, pauses: list[float]) -> None:
    taken = greedy(Bucket(per_minute, burst_seconds=2, unit=1), [1] * len(pauses), pauses)
    assert most_in_a_minute(taken) <= per_minute


@given(
    st.lists(
        st.tuples(st.integers(1, 1000), st.sampled_from([0, 0, 0, 0.01, 0.5, 3, 40])),
        min_size=1,
        max_size=300,
    )
)
def test_tokens_keep_to_the_limit(takings: list[tuple[int, float]]) -> None:
    amounts, pauses = (list(column) for column in zip(*takings, strict=True))
    bucket = Bucket(30_000, burst_seconds=2)
    assert bucket.capacity == 1000
    assert most_in_a_minute(greedy(bucket, amounts, pauses)) <= 30_000


@given(st.lists(st.integers(1, 8000), min_size=1, max_size=200))
def test_takings_above_the_burst_exceed_it_by_no_more_than_their_excess(amounts: list[int]) -> None:
    taken = greedy(Bucket(30_000, burst_seconds=2), list(amounts), [0] * len(amounts))
    assert most_in_a_minute(taken) <= 30_000 + max(0, max(amounts) - 1000)


def test_what_is_given_back_can_be_taken_and_what_is_used_on_top_is_owed() -> None:
    bucket = Bucket(60_000, burst_seconds=2)  # holds 2,000, refills 58,000 a minute
    bucket.take(2000, 0)
    assert bucket.find_ready_time(1000) == pytest.approx(1000 / 58_000 * 60, rel=1e-3)
    bucket.give_back(1500)
    assert bucket.find_ready_time(1000) <= 0
    bucket.give_back(-58_000)
    assert bucket.find_ready_time(500) == pytest.approx(57_000 / 58_000 * 60, rel=1e-3)


def test_it_never_holds_more_than_its_burst() -> None:
    bucket = Bucket(60_000, burst_seconds=2)
    bucket.take(10, 0)
    bucket.give_back(1_000_000)
    bucket.take(2000, 100)
    assert bucket.find_ready_time(1) > 100
