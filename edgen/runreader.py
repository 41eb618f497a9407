"""A run's folder, read: its conversations as candidates, its split, its pairs with their sides.

Nothing is written, and everything is streamed. A run with arms is the runs of its arms, side by side:
their conversations of one scenario are candidates together.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import msgspec

from edgen.config import ARM_STRIDE, Job, load_job
from edgen.errors import RunError
from edgen.ledger import View
from edgen.model import END_MARKER, Scenario, Turn
from edgen.pairing.model import Candidate, Origin, Pair
from edgen.records import Record, record_id
from edgen.rundir import RunDir
from edgen.sampling import Sampler
from edgen.space import load_space
from edgen.splits import choose, group_hash

_record = msgspec.json.Decoder(Record).decode
_pair = msgspec.json.Decoder(Pair).decode


class Lesson(msgspec.Struct, frozen=True):
    """An accepted conversation, with its scenario, its side of the split and its record."""

    candidate: Candidate
    scenario: Scenario
    split: Literal["train", "test"]
    record: dict[str, Any]


class Compared(msgspec.Struct, frozen=True):
    """A line of pairs.jsonl with its two conversations."""

    pair: Pair
    a: Candidate
    b: Candidate
    scenario: Scenario


class RunReader:
    """The run in the folder `path`. Use as a context manager. Raises RunError if there is no run there."""

    def __init__(self, path: Path) -> None:
        self.rundir = RunDir(path)
        if not self.rundir.job.exists():
            raise RunError(f"{path}: there is no run here; `edgen generate JOB -o {path}` makes one.")
        self.job: Job = load_job(self.rundir.job)
        self.name = self.job.name
        self._stack = contextlib.ExitStack()
        with self._stack:
            self._views = {arm: self._stack.enter_context(View(db)) for arm, db in self._ledgers()}
            self._stack = self._stack.pop_all()
        self._arms = list(self.job.arms)
        space = load_space(self.rundir.inputs / "space.yaml")
        self.scenario = Sampler(space, self.job.seed, self.job.design).scenario
        self._side = choose(self._groups(), self.accepted, self.job.split.test)

    def __enter__(self) -> RunReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _ledgers(self) -> Iterator[tuple[str | None, Path]]:
        if not self.job.arms:
            yield None, self.rundir.ledger
            return
        made = [arm for arm in self.job.arms if self.rundir.of(arm).ledger.exists()]
        if not made:
            raise RunError(f"{self.rundir.path}: none of this run's arms was begun; generate it first.")
        for arm in made:
            yield arm, self.rundir.of(arm).ledger

    def _groups(self) -> Iterator[tuple[int, int]]:
        """(group hash, accepted conversations) over all arms, by ascending hash."""
        merged = heapq.merge(*(view.groups() for view in self._views.values()))
        for group, counts in itertools.groupby(merged, key=lambda item: item[0]):
            yield group, sum(count for _, count in counts)

    @property
    def simulated(self) -> bool:
        """Whether a simulator had a part in it."""
        return any(view.simulated for view in self._views.values())

    @property
    def origin(self) -> Origin:
        """What makes this run's conversations of one scenario differ."""
        if self.job.arms:
            return "arms"
        return "branch" if self.job.branch is not None else "replicates"

    @property
    def fingerprints(self) -> list[str]:
        """What the conversations were made under: other fingerprints, other conversations."""
        return [view.plan.fingerprint for view in self._views.values()]

    @property
    def accepted(self) -> int:
        return sum(view.status.accepted for view in self._views.values())

    def scenarios(self) -> Iterator[tuple[int, list[int]]]:
        """Every scenario with accepted conversations, in order, with their numbers, ascending."""
        streams = [self._units(arm, view) for arm, view in self._views.items()]
        for index, units in itertools.groupby(heapq.merge(*streams), key=lambda unit: unit[0]):
            yield index, [number for _, number in units]

    def _units(self, arm: str | None, view: View) -> Iterator[tuple[int, int]]:
        for index, replicate in view.accepted():
            yield index, self._number(arm, replicate)

    def candidate(self, index: int, number: int) -> Candidate:
        """One accepted conversation of a scenario. Raises RunError if there is none of that number."""
        return _candidate(self._record(index, number), number, self._place(number)[0])

    def id_of(self, index: int, number: int) -> str:
        """What the conversation of that number is called."""
        arm, replicate = self._place(number)
        return record_id(self.name if arm is None else f"{self.name}.{arm}", index, replicate)

    def split(self, scenario: Scenario) -> Literal["train", "test"]:
        """The side that everything of a scenario is on."""
        group = group_hash(self.job.split.by, self.job.seed, scenario)
        return "test" if self._side.is_test(group) else "train"

    def lessons(self) -> Iterator[Lesson]:
        """Every accepted conversation, by scenario and number."""
        for index, numbers in self.scenarios():
            scenario = self.scenario(index)
            side = self.split(scenario)
            for number in numbers:
                data = self._record(index, number)
                candidate = _candidate(data, number, self._place(number)[0])
                yield Lesson(candidate, scenario, side, msgspec.json.decode(data))

    def compared(self) -> Iterator[Compared]:
        """Every line of pairs.jsonl with its conversations. Raises RunError if there is none, or if
        the run was generated anew since."""
        for pair in self.pairs():
            yield Compared(pair, *self.sides(pair), self.scenario(pair.scenario))

    def sides(self, pair: Pair) -> tuple[Candidate, Candidate]:
        """The two conversations of a pair. Raises RunError if the run was generated anew since."""
        a, b = (self.candidate(pair.scenario, self._number(x.arm, x.replicate)) for x in (pair.a, pair.b))
        return a, b

    def pairs(self) -> Iterator[Pair]:
        """Every line of pairs.jsonl."""
        path = self.rundir.pairs
        if not path.exists():
            raise RunError(
                f"{path}: there is no such file; `edgen pairs {self.rundir.path} --by oracle` makes it."
            )
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield _pair(line)
                except msgspec.MsgspecError as problem:
                    raise RunError(
                        f"{path}, line {number}: this is no pair ({problem}). Make the file again with "
                        f"`edgen pairs {self.rundir.path}`; what was judged is kept."
                    ) from None

    def describe(self) -> dict[str, Any]:
        """What a card says of the run: its job as resolved, its counts, whether it is simulated."""
        statuses = {arm or self.name: view.status for arm, view in self._views.items()}
        return {
            "job": msgspec.to_builtins(self.job),
            "simulated": self.simulated,
            "accepted": {name: status.accepted for name, status in statuses.items()},
            "rejected": {name: status.rejected for name, status in statuses.items()},
            "failed": {name: status.failed for name, status in statuses.items()},
        }

    def _record(self, index: int, number: int) -> bytes:
        arm, replicate = self._place(number)
        view = self._views.get(arm)
        data = None if view is None else view.record(index, replicate)
        if data is None:
            raise RunError(
                f"{self.rundir.path}: conversation {number} of scenario {index} is not there any more; the run "
                f"was changed since its pairs were made. Make them again with `edgen pairs {self.rundir.path}`."
            )
        return data

    def _number(self, arm: str | None, replicate: int) -> int:
        return replicate if arm is None else self._arms.index(arm) * ARM_STRIDE + replicate

    def _place(self, number: int) -> tuple[str | None, int]:
        if not self._arms:
            return None, number
        return self._arms[number // ARM_STRIDE], number % ARM_STRIDE


def _candidate(data: bytes, number: int, arm: str | None) -> Candidate:
    record = _record(data)
    turns = record.conversation
    if record.ended_by is not None:
        last = turns[-1]
        turns = (*turns[:-1], Turn(last.role, last.text.removesuffix(END_MARKER).rstrip()))
    return Candidate(
        id=record.id,
        scenario=record.provenance.scenario,
        number=number,
        arm=arm,
        replicate=record.provenance.replicate,
        turns=turns,
        probability=record.probability,
        ended_by=record.ended_by,
        branch=record.provenance.branch,
        simulated=record.provenance.simulated,
    )
