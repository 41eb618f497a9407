"""The virtual clock: waiting costs no time, keeps its order, and real sockets and threads work."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.clock import run_virtual


def test_hours_pass_at_once_and_in_order() -> None:
    async def main() -> tuple[list[int], float]:
        order: list[int] = []

        async def sleeper(hours: int) -> None:
            await asyncio.sleep(hours * 3600)
            order.append(hours)

        await asyncio.gather(*(sleeper(hours) for hours in (5, 1, 48, 3)))
        return order, asyncio.get_running_loop().time()

    started = time.perf_counter()
    order, now = run_virtual(main())
    assert order == [1, 3, 5, 48]
    assert now == pytest.approx(48 * 3600)
    assert time.perf_counter() - started < 600  # of two days


def test_timeouts_are_virtual() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(120):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == pytest.approx(120)


@pytest.mark.integration
def test_real_sockets_answer_before_time_jumps() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        await asyncio.sleep(30)
        writer.write(b"LATER\n")
        writer.close()

    async def main() -> tuple[bytes, bytes, float]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server, asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            lines = await reader.readline(), await reader.readline()
            writer.close()
        return *lines, asyncio.get_running_loop().time()

    first, second, now = run_virtual(main())
    assert (first, second) == (b"HELLO\n", b"LATER\n")
    assert now == pytest.approx(30, abs=1)


def test_the_clock_stands_still_for_a_thread() -> None:
    async def main() -> float:
        async with asyncio.timeout(1):
            await asyncio.to_thread(time.sleep, 0.05)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 0
