"""What is asked about the turns of a run's conversations, or about the conversations themselves.

A task is a turn ("r0@0003") or a conversation ("r0"). The sample is drawn by hash, so that a larger one holds the smaller.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from edgen.config import Job
from edgen.core.digest import hash64
from edgen.core.pair import Candidate, candidate_name
from edgen.core.values import Turn
from edgen.preferences.judge import Judge, JudgeTasks
from edgen.store.run_reader import RunReader

SAMPLE = "sample"  # the fact: conversations of each arm that somebody is asked about; None: all

_AT = "@"  # stands in no candidate's name


class UnitTasks(JudgeTasks):
    """Work on the units of a run, in a sample of the conversations of each arm or in all. A subclass says which units a
    conversation has, and calls `count` once it can."""

    def __init__(self, reader: RunReader, job: Job, asked: Judge) -> None:
        super().__init__(reader, job, asked)
        sample = asked.facts[SAMPLE]
        self._chosen = None if sample is None else choose_conversations(reader, job.seed, sample)
        self._last: tuple[tuple[int, str], Candidate] | None = None

    def tasks_in(self, name: str, turns: Sequence[Turn]) -> list[str]:
        """The tasks of one conversation."""
        raise NotImplementedError

    def count(self, like: UnitTasks | None = None) -> None:
        """Note how many units there are. `like`: work on units of the same kind, whose counts are taken if its sample is
        the same."""
        if like is not None and like._chosen == self._chosen:
            self.planned, self.scenarios = like.planned, like.scenarios
            return
        for index, _ in self.units():
            self.planned += 1
            self.scenarios = index + 1

    def units(self) -> Iterator[tuple[int, str]]:
        """(scenario, task) of all that is asked about."""
        for index, names in self.reader.scenarios():
            own = [name for name in names if self._chosen is None or (index, name) in self._chosen]
            tasks = [task for name in own for task in self.tasks_in(name, self.candidate(index, name).turns)]
            yield from ((index, task) for task in sorted(tasks))

    def candidate(self, index: int, name: str) -> Candidate:
        """A conversation; its turns come one after the other, so that one is kept."""
        if self._last is None or self._last[0] != (index, name):
            self._last = (index, name), self.reader.candidate(index, name)
        return self._last[1]


def name_task(name: str, place: int | None) -> str:
    """The task about a turn of a conversation, or about all of it."""
    return name if place is None else f"{name}{_AT}{place:04}"


def read_task(task: str) -> tuple[str, int | None]:
    """The conversation that a task is about, and the turn; None for all of it."""
    name, _, place = task.partition(_AT)
    return name, int(place) if place else None


def choose_conversations(reader: RunReader, seed: int, sample: int) -> set[tuple[int, str]]:
    """(scenario, name) of `sample` conversations of each arm: the least hashes, of the same scenarios in every arm."""
    chosen: set[tuple[int, str]] = set()
    for arm, view in reader.views.items():
        ranked = (
            (hash64(f"annotate/{seed}/{index}/{replicate}"), index, candidate_name(arm, replicate))
            for index, replicate in view.accepted()
        )
        chosen |= {(index, name) for _, index, name in heapq.nsmallest(sample, ranked)}
    return chosen
