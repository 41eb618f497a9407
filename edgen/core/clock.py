"""The wall clock for notes. A machine without a battery may report 1970, and a misconfigured one any time."""

from __future__ import annotations

import time

# Seconds since the epoch that Python supports in every calendar and time zone: from year 1 to 9999, without
# two days at each end.
EARLIEST = -62_135_596_800.0 + 2 * 86_400
LATEST = 253_402_300_799.0 - 2 * 86_400


def wall_time() -> float:
    """Return the seconds since the epoch, clamped to these bounds."""
    return min(max(time.time(), EARLIEST), LATEST)
