"""The window with simulated servers: queues, refusals, and latencies without meaning."""

from __future__ import annotations

import random

import pytest

from edgen.execution.client.window import LoadVerdict, Window
from tests.execution.client.service import Seconds, Service, busy, constant, lognormal, summary


class TestOneStepAtATime:
    """A window of at most 256, driven by hand with all its places in use."""

    def settle(
        self, window: Window, verdict: LoadVerdict, *, number: int = 1, running: int | None = None
    ) -> None:
        window.note_end(number, verdict, 1.0, window.size if running is None else running, admitted=100)

    def test_starts_within_its_bound(self) -> None:
        assert (Window(256).size, Window(5).size, Window(1).size) == (32, 5, 1)

    def test_doubles_in_a_round_trip_until_the_first_complaint(self) -> None:
        window = Window(256)
        for expected in (64, 128, 256, 256):
            for _ in range(window.size):
                self.settle(window, LoadVerdict.OK)
            assert window.size == expected

    def test_decreases_once_for_one_episode(self) -> None:
        window = Window(256)
        for number in range(1, 33):
            self.settle(window, LoadVerdict.CONGESTED, number=number)
        assert window.size == 19  # 0.6 of 32
        self.settle(window, LoadVerdict.CONGESTED, number=101)
        assert window.size == 11

    def test_returns_quickly_and_then_feels_its_way(self) -> None:
        window = Window(256)
        self.settle(window, LoadVerdict.CONGESTED)
        self.settle(window, LoadVerdict.OK, number=100)
        assert window.size == 19, "answers from before the decrease say nothing about it"
        for _ in range(9):
            self.settle(window, LoadVerdict.OK, number=101)
        assert window.size == 28  # 0.85 of 32
        for _ in range(28):
            assert window.size == 28
            self.settle(window, LoadVerdict.OK, number=101)
        assert window.size == 29

    def test_never_below_one(self) -> None:
        window = Window(4)
        for number in range(101, 120):
            window.note_end(number, LoadVerdict.CONGESTED, 1.0, 1, admitted=number)
        assert window.size == 1

    def test_other_failures_change_nothing(self) -> None:
        window = Window(256)
        for _ in range(500):
            self.settle(window, LoadVerdict.OTHER)
        assert window.size == 32

    def test_grows_only_while_it_is_the_limit(self) -> None:
        window = Window(256)
        for _ in range(500):
            self.settle(window, LoadVerdict.OK, running=20)
        assert window.size == 32

    def test_a_complaint_counts_from_what_was_in_use(self) -> None:
        window = Window(256)
        self.settle(window, LoadVerdict.CONGESTED, running=10)
        assert window.size == 6


@pytest.mark.parametrize(
    ("seconds", "seed"), [(constant(2), 0), (lognormal(2, 0.6), 1)], ids=["constant", "lognormal"]
)
def test_a_server_that_queues_is_kept_busy_and_its_queue_short(seconds: Seconds, seed: int) -> None:
    service = Service(seconds, slots=40, rng=_rng(seed))
    seen = summary(busy(service, in_flight=256, until=240), start=60)
    assert seen.rate >= 0.9 * 40 / 2
    assert seen.latency <= 3 * 2  # a window of 256 would make it 12.8
    assert seen.smallest >= 40


@pytest.mark.parametrize(("sigma", "in_flight", "seed"), [(0.6, 256, 0), (0.6, 40, 1), (1.0, 256, 1)])
def test_latencies_that_only_vary_do_not_shrink_it(sigma: float, in_flight: int, seed: int) -> None:
    calls = busy(Service(lognormal(2, sigma), rng=_rng(seed)), in_flight=in_flight, until=100)
    assert max(call.window for call in calls if call.ended < 20) == in_flight
    assert summary(calls, start=20).smallest >= 0.8 * in_flight


@pytest.mark.parametrize(("most", "seed"), [(20, 0), (100, 1)])
def test_a_server_that_refuses_is_met_just_below_its_limit(most: int, seed: int) -> None:
    service = Service(lognormal(2, 0.6), refuse_above=most, rng=_rng(seed))
    seen = summary(busy(service, in_flight=256, until=240), start=60)
    assert seen.refused < 0.1
    assert seen.rate >= 0.85 * most / 2


@pytest.mark.parametrize(("share", "least", "seed"), [(0.01, 40, 0), (0.03, 40, 1), (0.10, 12, 0)])
def test_complaints_that_come_at_any_window_do_not_close_it(share: float, least: int, seed: int) -> None:
    """Additive increase and multiplicative decrease alone would end at 25, 13 and 6."""
    service = Service(lognormal(2, 0.6), refuse_share=share, rng=_rng(seed))
    assert summary(busy(service, in_flight=256, until=140), start=30).window >= least


@pytest.mark.parametrize(("retry_after", "seed"), [(None, 0), (0.0, 1), (1.0, 0)])
def test_one_call_in_twenty_that_fails_at_any_load_costs_little(retry_after: float | None, seed: int) -> None:
    service = Service(lognormal(2, 0.6), refuse_share=0.05, retry_after=retry_after, rng=_rng(seed))
    assert summary(busy(service, in_flight=200, until=140), start=30).rate >= 0.6 * 200 / 2


def test_a_limit_is_found_under_complaints_that_have_nothing_to_do_with_it() -> None:
    service = Service(lognormal(2, 0.6), refuse_above=100, refuse_share=0.03, rng=_rng(0))
    seen = summary(busy(service, in_flight=256, until=240), start=60)
    assert seen.refused < 0.1
    assert seen.rate >= 0.5 * 100 / 2


def test_answers_that_grow_longer_for_good_become_the_measure() -> None:
    service = Service(lognormal(2, 0.6), rng=_rng(0))
    calls = busy(service, in_flight=128, until=700, change=(100, lognormal(10, 0.6)))
    assert min(call.window for call in calls if call.ended > 100) < 100  # the window shrank at first
    assert summary(calls, start=400).smallest >= 0.8 * 128


def _rng(seed: int) -> random.Random:
    return random.Random(seed)
