"""Workers: how many begin, when a spare one does, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from edgen.execution.online_scheduler import Workers

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


async def test_a_cancelled_worker_ends_the_run() -> None:
    shop = Shop()
    running = asyncio.create_task(shop.workers.run(iter(range(10)), shop.run, 5, 3))
    await settle()
    own = {asyncio.current_task(), running}
    next(task for task in asyncio.all_tasks() if task not in own).cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == {asyncio.current_task()}
