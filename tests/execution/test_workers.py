"""Workers: how many begin, when a spare one does, and how they end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.execution.online_scheduler import Workers
from tests.dose import dose

pytestmark = pytest.mark.unit


class Shop:
    """Units whose work waits until it is let go. `begun`: the units so far."""

    def __init__(self) -> None:
        self.workers = Workers()
        self.begun: list[int] = []
        self.open = asyncio.Event()

    async def run(self, units: Iterator[int]) -> None:
        for unit in units:
            self.begun.append(unit)
            await self.open.wait()

    async def run_failing(self, units: Iterator[int]) -> None:
        for unit in units:
            self.begun.append(unit)
            if unit == 2:
                raise ZeroDivisionError
            await self.open.wait()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_spare_worker_begins_for_each_retry_and_no_more_than_there_are() -> None:
    shop = Shop()
    running = asyncio.create_task(shop.workers.run(iter(range(10)), shop.run, 5, 3))
    await settle()
    assert shop.begun == [0, 1]
    shop.workers.note_retry()
    await settle()
    assert shop.begun == [0, 1, 2]
    for _ in range(5):
        shop.workers.note_retry()
    await settle()
    assert shop.begun == [0, 1, 2, 3, 4]
    shop.open.set()
    await running
    assert shop.begun == [*range(10)]


@pytest.mark.parametrize("count", [0, 1, 2, 9])
async def test_all_units_are_run_without_a_retry(count: int) -> None:
    shop = Shop()
    shop.open.set()
    await shop.workers.run(iter(range(count)), shop.run, 5, 3)
    assert sorted(shop.begun) == [*range(count)]


async def test_an_error_of_a_spare_worker_ends_the_others_at_once() -> None:
    shop = Shop()
    running = asyncio.create_task(shop.workers.run(iter(range(10)), shop.run_failing, 5, 3))
    await settle()
    shop.workers.note_retry()
    with pytest.raises(ZeroDivisionError):
        await running
    assert shop.begun == [0, 1, 2]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_after_the_end_none_begins() -> None:
    shop = Shop()
    running = asyncio.create_task(shop.workers.run(iter(range(10)), shop.run, 5, 3))
    await settle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    shop.workers.note_retry()
    await settle()
    assert shop.begun == [0, 1]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_workers_run_several_rounds_of_units() -> None:
    shop = Shop()
    shop.open.set()
    for start in (0, 10, 20):
        await asyncio.wait_for(shop.workers.run(iter(range(start, start + 10)), shop.run, 5, 3), 10)
    assert sorted(shop.begun) == [*range(30)]


@settings(max_examples=dose(60, 600), deadline=None)
@given(
    count=st.integers(0, 30), places=st.integers(1, 4), spare=st.integers(0, 4), seed=st.integers(0, 10**6)
)
def test_each_unit_is_run_once_whatever_waits_and_fails(
    count: int, places: int, spare: int, seed: int
) -> None:
    """Units retry at random, and one may fail or be cancelled: none runs twice, none is left out unless one
    fails, workers are as many as there may be, and no task is left over."""
    rng = random.Random(seed)
    at_once = places + spare
    failing = rng.choice([None, None, rng.randrange(30)])
    cancels = rng.random() < 0.5
    begun: list[int] = []
    running = retries = most = 0

    async def run(units: Iterator[int]) -> None:
        nonlocal running, retries, most
        for unit in units:
            begun.append(unit)
            running += 1
            most = max(most, running)
            assert running <= places + min(spare, retries)
            try:
                for _ in range(rng.randrange(4)):
                    await asyncio.sleep(0)
                    if rng.random() < 0.3:
                        retries += 1
                        workers.note_retry()
                if unit == failing and cancels:
                    raise asyncio.CancelledError
                if unit == failing:
                    raise ZeroDivisionError
            finally:
                running -= 1

    async def run_rounds() -> None:
        for start in (0, count):  # two rounds of units, as with a top-up
            nonlocal retries
            retries = 0
            try:
                await asyncio.wait_for(
                    workers.run(iter(range(start, start + count)), run, at_once, spare), 30
                )
            except (ZeroDivisionError, asyncio.CancelledError):
                assert failing in begun
            else:
                assert sorted(unit for unit in begun if unit >= start) == [*range(start, start + count)]
        workers.note_retry()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    workers = Workers()
    asyncio.run(run_rounds())
    assert len(begun) == len({*begun})
    assert most <= at_once
    assert running == 0


async def test_a_cancelled_worker_ends_the_run() -> None:
    shop = Shop()
    running = asyncio.create_task(shop.workers.run(iter(range(10)), shop.run, 5, 3))
    await settle()
    own = {asyncio.current_task(), running}
    next(task for task in asyncio.all_tasks() if task not in own).cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == {asyncio.current_task()}
