"""Workers that share an iterator of units, and spare ones in place of those whose calls wait for a retry."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

Run = Callable[[Iterator[T]], Coroutine[Any, Any, None]]  # runs units until none is left


class Workers:
    """A set of workers, each a task. It grows by one when a worker's call begins to wait for a retry."""

    def __init__(self) -> None:
        self._retries = asyncio.Semaphore(0)  # released for each retry, and at the end
        self._closed = False
        self._tasks: list[asyncio.Task[None]] = []

    def note_retry(self) -> None:
        """Start a spare worker, if one is left."""
        self._retries.release()

    def close(self) -> None:
        """Start no more workers. Called when no unit is left, or the run is stopped."""
        if not self._closed:
            self._closed = True
            self._retries.release()

    async def run(self, units: Iterator[T], run: Run[T], at_once: int, spare: int) -> None:
        """Run all units, at most `at_once` at a time, of which `spare` only in place of others. The first
        error of a worker cancels the others."""
        # A worker for each of the first units: small runs have far fewer of these than workers.
        first = [*itertools.islice(units, at_once - spare)]
        workers = [run(itertools.chain([unit], units)) for unit in first]
        if spare and len(first) == at_once - spare:
            workers.append(self._run_spare(partial(run, units), spare))
        try:
            await self._run_together(*workers)
        except BaseException:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            raise

    def _run_together(self, *work: Coroutine[Any, Any, None]) -> asyncio.Future[list[None]]:
        tasks = [asyncio.create_task(one) for one in work]
        self._tasks += tasks
        return asyncio.gather(*tasks)

    async def _run_spare(self, run: Callable[[], Coroutine[Any, Any, None]], most: int) -> None:
        """Wait for a retry; then run units, and wait for the next one with one worker less."""
        if not most:
            return
        await self._retries.acquire()
        if not self._closed:
            await self._run_together(run(), self._run_spare(run, most - 1))
