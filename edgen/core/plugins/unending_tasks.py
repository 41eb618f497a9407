"""Tasks of plugins that do not end when they are cancelled. They are named, and edgen does not wait for
them."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, TypeVar

from edgen.core.plugins.faults import find_running_fault
from edgen.core.text import escape_for_terminal

T = TypeVar("T")
CANCELLING = 3.0
"""Seconds that a cancelled task of a plugin may take to end."""
_MOST_THREADS = 10_000
_SAID = "did not end a task within {:g} s after it was cancelled"


class LateError(Exception):
    """A plugin's work took longer than it may."""


async def run_apart(work: Awaitable[T], seconds: float | None = None) -> T:
    """Await a plugin's work in a task of its own, at most for some seconds. A task that is late, or whose
    caller is cancelled, is cancelled and has CANCELLING seconds to end. Raises LateError."""
    task: asyncio.Task[T] = asyncio.create_task(work if isinstance(work, Coroutine) else _await(work))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            await _cancel(task)
    if not done:
        raise LateError
    return task.result()


async def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task; abandon it if it does not end."""
    task.cancel()
    await asyncio.wait({task}, timeout=CANCELLING)
    if not task.done():
        _abandon(task)
    elif not task.cancelled():
        task.exception()  # retrieve it, so that asyncio does not warn


async def _await(work: Awaitable[T]) -> T:
    return await work


async def end_other_tasks() -> None:
    """Cancel all other tasks of the running loop, and abandon those of plugins that do not end. The loop's
    own end would wait for them forever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        _, pending = await asyncio.wait(others, timeout=CANCELLING)
        for task in pending:
            _abandon(task)


def _abandon(task: asyncio.Task[Any]) -> None:
    """Forget a task, and warn of it, if code of a plugin keeps it from ending."""
    faults = (find_running_fault(frame, _SAID.format(CANCELLING)) for frame in _iterate_awaited(task))
    if (fault := next((one for one in faults if one is not None), None)) is not None:
        _warn(str(fault))
        forget_task(task)


def forget_task(task: asyncio.Task[Any]) -> None:
    """Hide a task from the end of its loop."""
    asyncio._unregister_task(task)
    task._log_destroy_pending = False  # type: ignore[attr-defined]


@functools.cache
def _warn(text: str) -> None:
    """Warn, once for each text."""
    logging.getLogger("edgen").warning("edgen: %s", escape_for_terminal(text))


def _iterate_awaited(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    """Yield the frames of a task's coroutine and of those that it awaits, the innermost first."""
    frames: list[FrameType] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        prefix = next((one for one in ("cr", "ag", "gi") if hasattr(awaited, f"{one}_frame")), None)
        if prefix is None:
            break
        frames.append(getattr(awaited, f"{prefix}_frame"))
        inner = "gi_yieldfrom" if prefix == "gi" else f"{prefix}_await"
        awaited = getattr(awaited, inner)
    yield from (one for one in reversed(frames) if one is not None)


class UnawaitedExecutor(ThreadPoolExecutor):
    """The threads of a loop, enough for edgen's own work while each call of a plugin keeps one. The loop's
    end does not wait for them: edgen awaits its own work, and a plugin's may never end."""

    def __init__(self) -> None:
        super().__init__(_MOST_THREADS)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Begin no more work."""
        super().shutdown(wait=False, cancel_futures=True)
