"""Which tasks of a run still wait for answers, in little memory: they are as many as the run has conversations."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator

from edgen.core.values import TaskId


class WaitingTasks:
    """A list of (scenario, task)."""

    def __init__(self, units: Iterable[tuple[int, TaskId]]) -> None:
        self._scenarios = array("q")
        self._tasks: list[TaskId] = []
        for scenario, task in units:
            self._scenarios.append(scenario)
            # The same few names come with every scenario: one object for each is enough.
            self._tasks.append(sys.intern(task) if isinstance(task, str) else task)

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[tuple[int, TaskId]]:
        return zip(self._scenarios, self._tasks, strict=True)

    def __setitem__(self, place: int, unit: tuple[int, TaskId]) -> None:
        self._scenarios[place], self._tasks[place] = unit

    def cut(self, count: int) -> None:
        """Keep the first `count` alone."""
        del self._scenarios[count:], self._tasks[count:]
