"""How long work takes, on a machine where others work too."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the quickest of several times, and no less than a millisecond: what is slow by chance is
    not slow every time."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return max(best, 0.001)
