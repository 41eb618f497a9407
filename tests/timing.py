"""The duration of work, on a machine with other work.

Time is this thread's CPU time. Other work makes that longer as well, by a factor of two or more, since cores
share caches. So where work takes too long, a yardstick of known work is timed next to another measurement, which
is divided by how much slower than usual the yardstick was. One try within the bound is enough: inherently slow
code is slow each time.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable

TRIES = 10
_USUAL = 0.0025  # seconds of the yardstick on a quiet core of 2020
_WORDS = re.compile(r"(\w+)\s+(\w+):")
_TEXT = "some words, then a label: and more of them. " * 600


def thread_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of work in this thread, without collecting other tests' garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        if was_enabled:
            gc.enable()


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of work on a quiet core, by one measurement, and at least a millisecond."""
    before = thread_seconds(_yardstick)
    took = thread_seconds(work)
    slower = max(1.0, (before + thread_seconds(_yardstick)) / 2 / _USUAL)
    return max(took / slower, 0.001)


def takes_under(most: float, work: Callable[[], object], tries: int = TRIES) -> bool:
    """Return whether work takes less than `most` CPU seconds of a quiet core, in one of the tries."""
    # Work that takes less here takes less on a quiet core: the yardstick, which takes longer, is not needed then.
    return any(thread_seconds(work) < most or seconds(work) < most for _ in range(tries))


def takes_at_most(times: float, work: Callable[[], object], other: Callable[[], object]) -> bool:
    """Return whether work takes at most `times` as long as other work, in one of the tries.

    The two are timed one after the other.
    """
    return any(
        max(thread_seconds(work), 0.001) <= times * max(thread_seconds(other), 0.001) for _ in range(TRIES)
    )


def _yardstick() -> int:
    return sum(len(found[1]) for found in _WORDS.finditer(_TEXT)) + sum(ord(each) for each in _TEXT)
