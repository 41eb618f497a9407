"""Askers about the turns of a run's conversations, or about the conversations themselves.

One class declares an asker: `places`, the units of a conversation; `ask`, a generator that asks about one
unit and reads the answers; and `keep`, the record in the ledger. A task is a turn ("r0@0003") or a
conversation ("r0"). The sample is drawn by hash, so that a larger one holds the smaller.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from edgen.asking.answering import Answerer
from edgen.asking.asker import PromptAsker
from edgen.config import Job
from edgen.core.digest import hash64
from edgen.core.pair import Candidate, make_candidate_name
from edgen.core.values import Address, Turn
from edgen.store.run_folder import SAMPLE
from edgen.store.run_reader import RunReader

_AT = "@"  # stands in no candidate's name


class AskedUnit(NamedTuple):
    """A unit to ask about: the last of `turns`, or all of them where `place` is None."""

    address: Address
    turns: Sequence[Turn]
    place: int | None


class UnitAsker(PromptAsker[AskedUnit, Any]):
    """An asker about units of a run, in a sample of the conversations of each arm or in all. A subclass has
    `list_places`, `ask` and `keep`, and calls `count` once it can say which units a conversation has."""

    drawn_by = "annotate"  # the name of the draw: askers that share it ask about the same conversations
    answer_sizes: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Low, expected and high: the tokens of an answer, as times those of the guessed ones."""

    def __init__(
        self, reader: RunReader, job: Job, answerer: Answerer, called: str, sample: int | None
    ) -> None:
        super().__init__(reader, job, answerer, called)
        self._chosen = (
            None if sample is None else choose_conversations(reader, job.seed, sample, self.drawn_by)
        )
        self._last: tuple[tuple[int, str], Candidate] | None = None

    def list_places(self, index: int, name: str) -> Sequence[int | None]:  # noqa: ARG002
        """Return what of a conversation is asked about: turns by their places, or None for all of it."""
        return [None]

    def read_unit(self, index: int, task: str) -> AskedUnit:
        """Return the unit that a task is about."""
        name, place = read_task(task)
        turns = self.find_candidate(index, name).turns
        return AskedUnit(Address(index, task), turns if place is None else turns[: place + 1], place)

    def guess_answers(self, unit: AskedUnit) -> Iterable[str]:
        """Return what the answer about a unit may be, where tokens are estimated; all equally probable."""
        raise NotImplementedError

    def list_units(self) -> Iterator[tuple[int, str]]:
        """Yield (scenario, task) of every unit."""
        for index, names in self.reader.scenarios():
            own = [name for name in names if self._chosen is None or (index, name) in self._chosen]
            tasks = (name_task(name, place) for name in own for place in self.list_places(index, name))
            yield from ((index, task) for task in sorted(tasks))

    def find_candidate(self, index: int, name: str) -> Candidate:
        """Return a conversation. The last one is kept, since its turns are asked about one after the
        other."""
        if self._last is None or self._last[0] != (index, name):
            self._last = (index, name), self.reader.candidate(index, name)
        return self._last[1]


def name_task(name: str, place: int | None) -> str:
    """Return the task about a turn of a conversation, or about all of it."""
    return name if place is None else f"{name}{_AT}{place:04}"


def read_task(task: str) -> tuple[str, int | None]:
    """Return the conversation that a task is about, and the turn; None for all of it."""
    name, _, place = task.partition(_AT)
    return name, int(place) if place else None


def choose_conversations(
    reader: RunReader, seed: int, sample: int, drawn_by: str = UnitAsker.drawn_by
) -> set[tuple[int, str]]:
    """Return (scenario, name) of `sample` conversations of each arm: the least hashes, of the same scenarios
    in every arm."""
    chosen: set[tuple[int, str]] = set()
    for arm, view in reader.views.items():
        ranked = (
            (hash64(f"{drawn_by}/{seed}/{index}/{replicate}"), index, make_candidate_name(arm, replicate))
            for index, replicate in view.list_accepted()
        )
        chosen |= {(index, name) for _, index, name in heapq.nsmallest(sample, ranked)}
    return chosen


def grow_sample(before: Mapping[str, Any] | None, sample: int | None) -> int | None:
    """Return the sample of an asker that was at work before: it only grows, since what was asked stays."""
    if before is None or sample is None:
        return sample
    noted: int | None = before[SAMPLE]
    return None if noted is None else max(noted, sample)
