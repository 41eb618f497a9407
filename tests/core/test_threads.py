"""Work in threads when its waiting caller is cancelled."""

from __future__ import annotations

import asyncio
import threading

import pytest

from edgen.core.system import run_in_thread


async def test_the_result_and_what_is_raised_are_the_functions() -> None:
    assert await run_in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(divmod, 7, 0)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_caller_goes_on_only_when_the_function_has_ended(times: int, fails: bool) -> None:
    begun, go_on, noted = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go_on.wait(20)
        noted.append("ended")
        if fails:
            raise ValueError

    async def call() -> None:
        try:
            await run_in_thread(work)
        finally:
            noted.append("closed")

    task = asyncio.create_task(call())
    while not begun.is_set():
        await asyncio.sleep(0.001)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.01)
    assert not noted
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert noted == ["ended", "closed"]
