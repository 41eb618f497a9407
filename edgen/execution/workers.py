"""Workers that share an iterator of units, and spare ones in place of those whose calls wait for a retry."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

Run = Callable[[Iterator[T]], Coroutine[Any, Any, None]]  # runs units until none is left


class Workers:
    """A set of workers, each a task. It grows by one when a worker's call begins to wait for a retry."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._spare = 0
        self._run_rest: Callable[[], Coroutine[Any, Any, None]]
        self._ended: asyncio.Future[asyncio.Task[None]]

    def note_retry(self) -> None:
        """Start a spare worker, if one is left. Called by a worker."""
        if self._spare:
            self._spare -= 1
            self._start(self._run_rest())

    async def run(self, units: Iterator[T], run: Run[T], at_once: int, spare: int) -> None:
        """Run all units, at most `at_once` at a time, of which `spare` only in place of others. The first
        error of a worker, or its cancellation, cancels the others."""
        # A worker for each of the first units: small runs have far fewer of these than workers.
        first = [*itertools.islice(units, at_once - spare)]
        self._spare = spare if len(first) == at_once - spare else 0
        self._run_rest = lambda: run(units)
        self._ended = asyncio.get_running_loop().create_future()
        for unit in first:
            self._start(run(itertools.chain([unit], units)))
        try:
            if first:
                (await self._ended).result()
        finally:
            self._spare = 0
            rest = [*self._tasks]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        """End the wait at the first error, and when no worker is left."""
        self._tasks.discard(task)
        failed = task.cancelled() or task.exception() is not None
        if (failed or not self._tasks) and not self._ended.done():
            self._ended.set_result(task)
