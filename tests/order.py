"""The order of the tests: those that wait stand between those that compute, so that at no time all workers wait.

pytest-xdist gives each worker one stretch of the list. Left in the order of their folders, the tests of `execution`,
which sit out time limits, kills and outages, would all run at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import ROOT

WAITING = "execution"


def spread(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests, file by file as before, the files of `WAITING` evenly between the others."""
    files: dict[bool, dict[Path, list[pytest.Item]]] = {True: defaultdict(list), False: defaultdict(list)}
    for item in items:
        files[item.path.is_relative_to(ROOT / "tests" / WAITING)][item.path].append(item)
    placed = [
        (position / len(group), tests)
        for group in files.values()
        for position, tests in enumerate(group.values())
    ]
    return [item for _, tests in sorted(placed, key=lambda each: each[0]) for item in tests]
