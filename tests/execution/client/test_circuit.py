"""The circuit: what opens it, how it closes again, and the throughput of services that close at intervals."""

from __future__ import annotations

import asyncio
import random

import pytest

from edgen.config import Limits
from edgen.execution.client.admission import Admission
from edgen.execution.client.circuit import Circuit
from edgen.execution.client.window import LoadVerdict
from tests.clock import run_virtual
from tests.dose import dose
from tests.execution.client.service import Seconds, Service, busy, constant, lognormal, summary

WINDOW = 64


class TestOneStepAtATime:
    """The circuit, driven by hand: refusals take a tenth of a second and ask for two seconds."""

    def opened(self) -> Circuit:
        circuit = Circuit()
        for number in range(11, 15):
            circuit.note_refusal(number, 0.1, 1.0, 2.0)
        assert circuit.state == "open"
        return circuit

    def test_four_neighbours_that_are_refused_open_it(self) -> None:
        circuit = Circuit()
        assert [circuit.note_refusal(number, 0.1, 1.0, 2.0) for number in (11, 15, 14, 12)] == [False] * 3 + [
            True
        ]
        assert (circuit.state, circuit.until, circuit.refused_since) == ("open", 3.0, 1.0)

    def test_refusals_with_work_between_them_do_not(self) -> None:
        circuit = Circuit()
        assert not any(circuit.note_refusal(number, 0.1, 1.0, 2.0) for number in range(10, 1000, 2))
        assert circuit.state == "closed"

    def test_an_answer_to_a_later_call_makes_refusals_forgotten(self) -> None:
        circuit = Circuit()
        for number in range(1, 400, 4):
            assert not any(circuit.note_refusal(number + i, 0.1, 1.0, 2.0) for i in range(3))
            circuit.note_answer(number + 3, 1.0, 1.0, number + 3, WINDOW)
            assert circuit.refused_since is None

    def test_answers_to_calls_from_before_do_not(self) -> None:
        circuit = Circuit()
        for number in range(11, 15):
            circuit.note_answer(number - 10, 1.0, 1.0, number, WINDOW)
            circuit.note_refusal(number, 0.1, 1.0, 2.0)
        assert circuit.state == "open"
        circuit.note_answer(10, 1.0, 1.0, 14, WINDOW)
        assert circuit.state == "open"

    def test_the_longest_of_several_waits_holds(self) -> None:
        circuit = self.opened()
        circuit.note_refusal(15, 0.1, 1.5, 60.0)
        circuit.note_refusal(16, 0.1, 1.6, 2.0)
        assert circuit.find_allowed_time(2.0, WINDOW) == 61.5

    def test_one_probe_then_nobody_until_it_is_answered(self) -> None:
        circuit = self.opened()
        assert circuit.find_allowed_time(3.0, WINDOW) == 3.0
        circuit.note_sent(15, 3.0)
        assert circuit.state == "half-open"
        assert circuit.find_allowed_time(3.1, WINDOW) == pytest.approx(3.4)  # four times the slowest refusal
        circuit.note_answer(15, 0.32, 3.32, 15, WINDOW)
        assert (circuit.state, circuit.refused_since) == ("closed", None)
        went = []
        for number in range(16, 15 + WINDOW):
            went.append(max(3.32, circuit.find_allowed_time(3.32, WINDOW)))
            circuit.note_sent(number, went[-1])
        assert went[0] == 3.32
        assert went[-1] == pytest.approx(3.32 + 0.32, abs=0.02)  # over one answer's time, not all at once
        assert circuit.find_allowed_time(3.4, WINDOW) == float("-inf")

    def test_a_probe_that_is_refused_opens_it_again(self) -> None:
        circuit = self.opened()
        circuit.find_allowed_time(3.0, WINDOW)
        circuit.note_sent(15, 3.0)
        assert circuit.note_refusal(15, 0.1, 3.1, 2.0)
        assert (circuit.state, circuit.until, circuit.refused_since) == ("open", 5.1, 1.0)

    def test_where_no_time_is_asked_for_it_waits_longer_each_time_until_an_answer(self) -> None:
        circuit = Circuit()
        now, number, waits = 1.0, 11, []
        for _ in range(3):
            circuit.note_refusal(number, 0.1, now, 0.0)
            number += 1
        for _ in range(7):
            assert circuit.note_refusal(number, 0.1, now, 0.0)
            waits.append(circuit.until - now)
            now, number = circuit.until, number + 1
            assert circuit.find_allowed_time(now, WINDOW) == now
            circuit.note_sent(number, now)
        assert waits == [1, 2, 4, 8, 16, 30, 30]
        circuit.note_answer(number, 0.3, now + 0.3, number, WINDOW)
        for again in range(number + 1, number + 5):
            circuit.note_refusal(again, 0.1, now, 0.0)
        assert circuit.until == now + 1

    def test_refusals_that_come_late_say_nothing_about_the_probe(self) -> None:
        circuit = self.opened()
        circuit.find_allowed_time(3.0, WINDOW)
        circuit.note_sent(15, 3.0)
        assert not circuit.note_refusal(9, 2.5, 3.1, 2.0)
        assert circuit.state == "half-open"
        circuit.note_answer(15, 0.32, 3.32, 15, WINDOW)
        assert not any(circuit.note_refusal(number, 2.5, 3.2, 2.0) for number in (5, 6, 7, 8))
        assert circuit.state == "closed"

    def test_probes_that_outlast_refusals_double_until_a_window_is_out(self) -> None:
        circuit = self.opened()
        now, went = 3.0, []
        for number in range(15, 500):
            now = max(now, circuit.find_allowed_time(now, WINDOW))
            if circuit.state == "closed":
                break
            circuit.note_sent(number, now)
            went.append(now)
        assert len(went) == WINDOW
        assert [sum(moment <= 3.0 + steps * 0.4 + 1e-9 for moment in went) for steps in range(7)] == [
            1, 2, 4, 8, 16, 32, 64,
        ]  # fmt: skip


SHUT = (30.0, 20.0)  # seconds: the last 10 of every 30


@pytest.mark.parametrize(("sigma", "seed"), [(0.05, 0), (0.6, 1)])
@pytest.mark.long
@pytest.mark.parametrize("latency", dose([0.5, 5], [0.1, 0.5, 2, 5]))
def test_a_service_that_closes_now_and_then_is_used_while_it_is_open(
    latency: float, sigma: float, seed: int
) -> None:
    service = Service(lognormal(latency, sigma), shut=SHUT, retry_after=2, rng=random.Random(seed))
    minutes, in_flight = (1, 50) if latency < 0.5 else (2, 50 if latency < 2 else 200)
    calls = busy(service, in_flight=in_flight, until=60 * minutes)
    answers = sum(call.verdict is LoadVerdict.OK for call in calls)
    assert answers >= 0.8 * in_flight / latency * 40 * minutes
    assert len(calls) - answers < 0.03 * len(calls)


@pytest.mark.parametrize("latency", [0.5, 2])
def test_one_that_does_not_say_when_to_come_back_is_used_too(latency: float) -> None:
    service = Service(lognormal(latency, 0.3), shut=(15.0, 10.0), retry_after=0.0, rng=random.Random(1))
    calls = busy(service, in_flight=100, until=120)
    answers = sum(call.verdict is LoadVerdict.OK for call in calls)
    assert answers >= 0.7 * 100 / latency * 80
    assert len(calls) - answers < 0.05 * len(calls)


@pytest.mark.parametrize("latency", [0.5, 2, 5])
def test_even_where_all_calls_come_as_one(latency: float) -> None:
    """Answers with equal latency to the microsecond keep 100 calls in step: a closing refuses
    a whole step."""
    calls = busy(Service(constant(latency), shut=SHUT, retry_after=2), in_flight=100, until=120)
    answers = sum(call.verdict is LoadVerdict.OK for call in calls)
    assert answers >= 0.8 * 100 / latency * 80
    assert len(calls) - answers <= 175


@pytest.mark.parametrize("seconds", [constant(2), lognormal(2, 0.6)], ids=["constant", "lognormal"])
def test_a_night_of_it_does_not_shrink_the_window(seconds: Seconds) -> None:
    calls = busy(Service(seconds, shut=SHUT, retry_after=2), in_flight=40, until=1200)
    late = [call for call in calls if call.ended > 900 and call.verdict is LoadVerdict.OK]
    assert len(late) >= 0.85 * 20 * 300 * 2 / 3


@pytest.mark.parametrize("retry_after", [0, 2])
@pytest.mark.parametrize("most", [20, 100])
def test_a_service_that_takes_so_many_is_no_closed_one(most: int, retry_after: float) -> None:
    service = Service(lognormal(2, 0.6), refuse_above=most, retry_after=retry_after)
    seen = summary(busy(service, in_flight=256, until=240), start=60)
    assert seen.refused < 0.1
    assert seen.rate >= 0.8 * most / 2


@pytest.mark.parametrize("share", [0.01, 0.03, 0.10])
def test_refusals_at_random_cost_no_more_for_their_retry_after(share: float) -> None:
    windows = []
    for retry_after in (None, 2.0):
        service = Service(lognormal(2, 0.6), refuse_share=share, retry_after=retry_after)
        windows.append(summary(busy(service, in_flight=256, until=100), start=30).window)
    assert windows[1] >= 0.75 * windows[0]


def test_the_gate_says_how_it_stands() -> None:
    async def main() -> None:
        gate = Admission(Limits(in_flight=8))
        assert (gate.circuit, gate.refused_for) == ("closed", 0.0)
        for _ in range(4):
            ticket = await gate.admit(0)
            await asyncio.sleep(0.5)
            gate.settle(ticket, tokens=None, verdict=LoadVerdict.CONGESTED, retry_after=3.0)
        assert (gate.circuit, gate.paused_for, gate.refused_for) == ("open", 3.0, 1.5)
        waiting = [asyncio.create_task(gate.admit(0)) for _ in range(8)]
        await asyncio.sleep(3.0)
        assert (gate.circuit, gate.paused_for, gate.running) == ("half-open", 0.0, 1)
        gate.settle(await waiting[0], tokens=None, verdict=LoadVerdict.OK)
        assert (gate.circuit, gate.refused_for, gate.waiting) == ("closed", 0.0, 8 - 1 - gate.running)
        gate.close()
        await asyncio.gather(*waiting, return_exceptions=True)

    run_virtual(main())
