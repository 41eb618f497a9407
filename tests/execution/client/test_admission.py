"""Admission: order, rates, pauses, closing, and cancellation at any moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from edgen.config import Limits
from edgen.execution.client.admission import Admission, AdmissionClosed, Ticket
from edgen.execution.client.window import LoadVerdict
from tests.clock import run_virtual

pytestmark = pytest.mark.unit


def gate(in_flight: int = 4, *, requests: float | None = None, tokens: float | None = None) -> Admission:
    return Admission(Limits(in_flight=in_flight, requests_per_minute=requests, tokens_per_minute=tokens))


def now() -> float:
    return asyncio.get_running_loop().time()


def virtual(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test whose body is a coroutine function in virtual time."""

    def run() -> None:
        async def main() -> None:
            await test()

        run_virtual(main())

    run.__name__ = test.__name__
    return run


@virtual
async def test_who_can_go_at_once_does_not_wait_for_the_loop() -> None:
    admission = gate(requests=600, tokens=60_000)
    step = admission.admit(10)
    with pytest.raises(StopIteration) as done:
        step.send(None)
    ticket: Ticket = done.value.value
    assert (admission.running, ticket.tokens) == (1, 10)
    admission.settle(ticket, tokens=10, verdict=LoadVerdict.OK)
    assert admission.running == 0


@virtual
async def test_no_more_than_the_window_at_once() -> None:
    admission = gate(3)
    seen = []

    async def call() -> None:
        ticket = await admission.admit(1)
        seen.append(admission.running)
        await asyncio.sleep(1)
        admission.settle(ticket, tokens=None, verdict=LoadVerdict.OK)

    await asyncio.gather(*(call() for _ in range(20)))
    assert max(seen) == 3
    assert now() == pytest.approx(7)
    assert (admission.running, admission.waiting) == (0, 0)


@virtual
async def test_a_ticket_is_settled_once() -> None:
    admission = gate()
    ticket = await admission.admit(1)
    admission.settle(ticket, tokens=1, verdict=LoadVerdict.OK)
    with pytest.raises(RuntimeError, match="once"):
        admission.settle(ticket, tokens=1, verdict=LoadVerdict.OK)
    assert admission.running == 0


@virtual
async def test_first_come_first_served_whatever_the_size() -> None:
    admission = gate(10_000, tokens=60_000)
    rng = random.Random(5)
    sizes = [rng.choice([1, 50, 900, 1999, 2000, 25_000]) for _ in range(200)]
    order: list[int] = []

    async def call(index: int) -> None:
        ticket = await admission.admit(sizes[index])
        order.append(index)
        await asyncio.sleep(rng.random())
        admission.settle(ticket, tokens=None, verdict=LoadVerdict.OK)

    async with asyncio.TaskGroup() as group:
        for index in range(len(sizes)):
            group.create_task(call(index))
    assert order == list(range(len(sizes)))
    assert now() == pytest.approx(sum(sizes) / 58_000 * 60, rel=0.05)


@virtual
async def test_a_request_larger_than_the_bucket_goes_when_it_is_full() -> None:
    admission = gate(tokens=60_000)
    for _ in range(3):
        ticket = await admission.admit(29_000)
        admission.settle(ticket, tokens=None, verdict=LoadVerdict.OK)
    assert now() == pytest.approx(60, rel=1e-3)


@virtual
async def test_both_rates_hold_over_every_minute() -> None:
    admission = gate(64, requests=600, tokens=120_000)
    rng = random.Random(2)
    admitted: list[tuple[float, int]] = []

    async def caller() -> None:
        while now() < 600:
            ticket = await admission.admit(300)
            used = rng.randint(50, 300)
            admitted.append((now(), used))
            await asyncio.sleep(rng.random())
            admission.settle(ticket, tokens=used, verdict=LoadVerdict.OK)

    await asyncio.gather(*(caller() for _ in range(64)))
    for start in range(540):
        minute = [used for moment, used in admitted if start <= moment < start + 60]
        assert len(minute) <= 600
        assert sum(minute) <= 120_000
    assert len(admitted) >= 0.95 * 6000  # the average call has 175 tokens, so the limit of requests binds


@virtual
async def test_tokens_are_corrected_by_what_was_counted() -> None:
    admission = gate(tokens=60_000)
    ticket = await admission.admit(2000)
    admission.settle(ticket, tokens=0, verdict=LoadVerdict.OK)
    ticket = await admission.admit(2000)
    assert now() == 0
    admission.settle(ticket, tokens=60_000, verdict=LoadVerdict.OK)
    await admission.admit(2000)
    assert now() == pytest.approx(60_000 / 58_000 * 60, rel=1e-3)


def refuse(admission: Admission, *refused: tuple[Ticket, float]) -> None:
    """Refuse calls, each for this many seconds. From the fourth on, no call is admitted."""
    for ticket, seconds in refused:
        admission.settle(ticket, tokens=None, verdict=LoadVerdict.CONGESTED, retry_after=seconds)


@virtual
async def test_the_longest_pause_holds() -> None:
    admission = gate(8)
    calls = [await admission.admit(1) for _ in range(5)]
    assert admission.paused_for == 0
    refuse(admission, *zip(calls, (5, 5, 5, 30, 5), strict=True))
    assert admission.paused_for == pytest.approx(30)
    await admission.admit(1)
    assert now() == pytest.approx(30)
    assert admission.paused_for == 0


@virtual
async def test_a_pause_holds_for_those_who_already_wait() -> None:
    admission = gate(4)
    first = [await admission.admit(1) for _ in range(4)]
    waiting = [asyncio.create_task(admission.admit(1)) for _ in range(2)]
    await asyncio.sleep(1)
    refuse(admission, *((call, 100) for call in first))
    await asyncio.gather(*waiting)
    assert now() == pytest.approx(101)


@virtual
async def test_closing_sends_away_all_who_wait_and_all_who_come() -> None:
    admission = gate(1)
    ticket = await admission.admit(1)
    waiting = [asyncio.create_task(admission.admit(1)) for _ in range(3)]
    await asyncio.sleep(1)
    assert admission.waiting == 3
    admission.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [AdmissionClosed] * 3
    with pytest.raises(AdmissionClosed):
        await admission.admit(1)
    admission.settle(ticket, tokens=None, verdict=LoadVerdict.OK)
    assert (admission.running, admission.waiting, now()) == (0, 0, 1)


@virtual
async def test_a_place_given_to_a_cancelled_waiter_goes_to_the_next() -> None:
    admission = gate(1, tokens=60_000)
    first = await admission.admit(100)
    cancelled, patient = (asyncio.create_task(admission.admit(100)) for _ in range(2))
    await asyncio.sleep(1)
    admission.settle(first, tokens=None, verdict=LoadVerdict.OK)
    assert admission.running == 1  # granted, but its task has not run yet
    cancelled.cancel()
    ticket = await patient
    assert cancelled.cancelled()
    assert (admission.running, admission.waiting, ticket.number) == (1, 0, 3)


@pytest.mark.parametrize("seed", range(40))
def test_cancellation_at_any_moment_loses_no_place_and_no_turn(seed: int) -> None:
    rng = random.Random(seed)

    async def main() -> None:
        admission = gate(
            rng.randint(1, 8),
            requests=rng.choice([None, 600.0, 6000.0]),
            tokens=rng.choice([None, 60_000.0]),
        )
        order: list[int] = []

        async def call(index: int) -> None:
            ticket = await admission.admit(rng.choice([1, 100, 5000]))
            order.append(index)
            verdict = rng.choice([LoadVerdict.OK, LoadVerdict.OK, LoadVerdict.OTHER, LoadVerdict.CONGESTED])
            closed = index % 25 < 5  # for a while every call is refused
            if closed:
                verdict = LoadVerdict.CONGESTED
            try:
                await asyncio.sleep(rng.choice([0, 0.1, 1]))
            finally:
                assert admission.running >= 1
                admission.settle(
                    ticket,
                    tokens=rng.choice([None, 1, 6000]),
                    verdict=verdict,
                    retry_after=rng.random() if closed else None,
                )

        tasks = []
        for index in range(150):
            tasks.append(asyncio.create_task(call(index)))
            if rng.random() < 0.4:
                rng.choice(tasks).cancel()
            if rng.random() < 0.5:
                await asyncio.sleep(rng.choice([0, 0, 0.01, 0.3]))
        async with asyncio.timeout(3600):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert [t for t in tasks if not t.cancelled() and t.exception()] == []
        assert (admission.running, admission.waiting) == (0, 0)
        assert order == sorted(order)
        async with asyncio.timeout(3600):  # admission still works
            admission.settle(await admission.admit(1), tokens=1, verdict=LoadVerdict.OK)

    run_virtual(main())
