"""Askers about the turns of a run's conversations, or about whole conversations.

One class declares an asker: `list_places` returns the units of a conversation; `ask` is a generator that asks
about one unit and reads the answers; `keep` returns the record for the ledger. A task is a turn ("r0@0003")
or a conversation ("r0"). The sample is drawn by hash, so a larger sample contains a smaller one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.asking.answering import Answerer
from edgen.asking.asker import PromptAsker
from edgen.config import Job
from edgen.core.digest import hash64
from edgen.core.pair import Candidate, make_candidate_name
from edgen.core.plugins.faults import refuse_value, require_items
from edgen.core.registry import find_plugin
from edgen.core.values import Address, Status, Turn
from edgen.protocols.labelled_units import digest_said
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import SAMPLE
from edgen.store.run_reader import RunReader

_AT = "@"  # occurs in no candidate's name


class AskedUnit(NamedTuple):
    """A unit to ask about: the last one of `turns`, or all of them if `place` is None."""

    address: Address
    turns: Sequence[Turn]
    place: int | None


class UnitAsker(PromptAsker[AskedUnit, Any]):
    """An asker about units of a run, in a sample of each arm's conversations or in all. A subclass has
    `list_places`, `ask` and `keep`, and calls `count` once `list_places` works."""

    drawn_by = "annotate"  # the seed of the draw: askers with the same name ask about the same conversations
    answer_sizes: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """The tokens of an answer relative to the guessed answers: low, expected, high."""

    def __init__(
        self, reader: RunReader, job: Job, answerer: Answerer, called: str, sample: int | None
    ) -> None:
        super().__init__(reader, job, answerer, called)
        self._chosen = (
            None if sample is None else choose_conversations(reader, job.seed, sample, self.drawn_by)
        )
        self._last: tuple[tuple[int, str], Candidate] | None = None

    def list_places(self, index: int, name: str) -> Sequence[int | None]:  # noqa: ARG002
        """Return the units of a conversation: places of turns, or None for all of it."""
        return [None]

    def read_unit(self, index: int, task: str) -> AskedUnit:
        """Return the unit that a task is about."""
        name, place = read_task(task)
        turns = self.find_candidate(index, name).turns
        return AskedUnit(Address(index, task), turns if place is None else turns[: place + 1], place)

    def guess_answers(self, unit: AskedUnit) -> Iterable[str]:
        """Return possible answers about a unit, all equally probable, for the estimate of tokens."""
        raise NotImplementedError

    def list_units(self) -> Iterator[tuple[int, str]]:
        """Yield (scenario, task) of every unit."""
        for index, names in self.reader.scenarios():
            own = [name for name in names if self._chosen is None or (index, name) in self._chosen]
            tasks = (name_task(name, place) for name in own for place in self._list_own_places(index, name))
            yield from ((index, task) for task in sorted(tasks))

    def list_kept(self, ledger: Path, kind: type[Any]) -> Iterator[tuple[Candidate, int | None, Any]]:
        """Yield the conversation, the place and the record, a `kind`, of each unit with an answer about its
        present text (`said`), in the run's order. Memory: one scenario."""
        with LedgerReader(ledger) as view:
            for index, names in self.reader.scenarios():
                outcomes = view.read_outcomes(index).items()
                found = {task: data for task, (status, _, data) in outcomes if status is Status.ACCEPTED}
                for name in names if found else ():
                    for place in self._list_own_places(index, name):
                        if (data := found.get(name_task(name, place))) is None:
                            continue
                        candidate, kept = (
                            self.find_candidate(index, name),
                            msgspec.json.decode(data, type=kind),
                        )
                        if kept.said == digest_said(candidate.turns, place):
                            yield candidate, place, kept

    def _list_own_places(self, index: int, name: str) -> Sequence[int | None]:
        """Return what `list_places` returns. Raises FaultyPluginError if a plugin's asker names no turn."""
        places: Sequence[int | None] = self.list_places(index, name)
        own = getattr(self, "name", "")
        if find_plugin("asker", own) is None:
            return places
        count = len(self.find_candidate(index, name).turns)
        kinds: Any = int | None
        places = require_items(
            "asker", own, places, kinds, "the place of a turn, or None, from `list_places`"
        )
        for place in places:
            if place is not None and not 0 <= place < count:
                refuse_value("asker", own, f"returned {place} from `list_places`; there are {count} turns")
        return places

    def find_candidate(self, index: int, name: str) -> Candidate:
        """Return a conversation. The last one is cached, since its turns follow one another."""
        if self._last is None or self._last[0] != (index, name):
            self._last = (index, name), self.reader.candidate(index, name)
        return self._last[1]


def name_task(name: str, place: int | None) -> str:
    """Return the name of the task about a turn, or about the whole conversation if `place` is None."""
    return name if place is None else f"{name}{_AT}{place:04}"


def read_task(task: str) -> tuple[str, int | None]:
    """Split a task into the conversation and the turn; None for the whole conversation."""
    name, _, place = task.partition(_AT)
    return name, int(place) if place else None


def choose_conversations(
    reader: RunReader, seed: int, sample: int, drawn_by: str = UnitAsker.drawn_by
) -> set[tuple[int, str]]:
    """Return (scenario, name) of `sample` conversations of each arm: those with the lowest hashes. Every arm
    gets the same scenarios."""
    chosen: set[tuple[int, str]] = set()
    for arm, view in reader.views.items():
        ranked = (
            (hash64(f"{drawn_by}/{seed}/{index}/{replicate}"), index, make_candidate_name(arm, replicate))
            for index, replicate in view.list_accepted()
        )
        chosen |= {(index, name) for _, index, name in heapq.nsmallest(sample, ranked)}
    return chosen


def grow_sample(before: Mapping[str, Any] | None, sample: int | None) -> int | None:
    """Return the sample size of an asker that may have started earlier. It only grows, since stored answers
    stay."""
    if before is None or sample is None:
        return sample
    noted: int | None = before[SAMPLE]
    return None if noted is None else max(noted, sample)
