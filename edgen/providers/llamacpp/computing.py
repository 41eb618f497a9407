"""The time limit of an answer that this process computes: it counts while nothing is computed.

An answer that is cut off would only be computed again. llama.cpp shows no token while it reads a prompt,
which takes minutes on a busy machine, so the CPU time of the process is the sign of its work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from edgen.plugin import CallError, FailureKind, Reply

_WORKING = 0.02  # the least CPU time of a process that computes, as a share of the time
_LOOK = 5.0  # seconds: the longest time between two looks


async def wait_while_computing(
    answer: Coroutine[Any, Any, Reply], patience: float, on_work: Callable[[], None]
) -> Reply:
    """Return the answer, however long it takes, while this process works; call `on_work` at each sign of it.
    Raises CallError after `patience` seconds without work, and the answer's errors."""
    task = asyncio.ensure_future(answer)
    worked, since = time.process_time(), time.monotonic()
    try:
        while not (await asyncio.wait({task}, timeout=min(_LOOK, patience / 4)))[0]:
            works, now = time.process_time(), time.monotonic()
            if works - worked >= _WORKING * (now - since):
                worked, since = works, now
                on_work()
            elif now - since >= patience:
                raise CallError(FailureKind.TIMEOUT, f"the model computed nothing for {patience:g} s")
        return task.result()
    finally:
        task.cancel()
