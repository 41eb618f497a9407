"""The dose of repeated tests: kills at many moments, statistics over many seeds, generated examples.

`make test` runs each of these tests with a small dose. `make test-long` runs them alone (mark `long`), with
the whole. A test that proves nothing in a small dose (a memory's growth, a statistic over many draws) has the
mark `only_long`: `make test` leaves it out. CI runs both with the whole.
"""

from __future__ import annotations

import os
from typing import TypeVar

LONG = os.environ.get("EDGEN_LONG") == "1"
_T = TypeVar("_T")


def dose(small: _T, whole: _T) -> _T:
    """Return the first in `make test`, the second in `make test-long`."""
    return whole if LONG else small
