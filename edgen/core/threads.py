"""Thread work for an event loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def run_in_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a function in a thread and return its result, as `asyncio.to_thread` does, but wait for the thread
    even if cancelled: it may still use what the caller closes afterwards, such as a ledger or a lock."""
    context = contextvars.copy_context()
    # Not a task: the end of a loop cancels tasks, but not threads.
    running = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # retrieve it, so that asyncio does not warn
        raise cancelled
    return running.result()
