"""Lines of a file in the order of their scenarios. A binary search finds the lines of a range of
scenarios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import IO

ScenarioOf = Callable[[bytes], int | None]
MOST = 2**40  # larger than any scenario's number


def iterate_lines_between(
    file: IO[bytes], size: int, scenarios: range, scenario_of: ScenarioOf
) -> Iterator[bytes]:
    """Yield the lines of scenarios from a file of `size` bytes. `scenario_of` returns the scenario of a line.

    A line without a scenario belongs to the next line with one. After the last of these, it belongs to the
    range that ends with MOST.
    """
    start = _find(file, size, scenarios.start, scenario_of)
    end = size if scenarios.stop >= MOST else _find(file, size, scenarios.stop, scenario_of)
    _seek(file, start)
    while file.tell() < end and (line := file.readline()):
        yield line


def _find(file: IO[bytes], size: int, scenario: int, scenario_of: ScenarioOf) -> int:
    """Return the first place after which all lines are of this scenario or later ones."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        _seek(file, middle)
        numbers = map(scenario_of, iter(file.readline, b""))
        if next((one for one in numbers if one is not None), math.inf) < scenario:
            low = middle + 1
        else:
            high = middle
    return low


def _seek(file: IO[bytes], place: int) -> None:
    """Go to the first line that begins at or after a place."""
    file.seek(max(place - 1, 0))
    if place:
        file.readline()
