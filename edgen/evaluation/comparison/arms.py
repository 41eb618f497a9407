"""What is compared: arms, each a run seen as a stream of outcomes, and their numbers by scenario.

A run is read once. What stays in memory are sums by scenario, a few dozen numbers each; texts are asked
for again where they are needed.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.core.digest import hash64
from edgen.core.links import roots
from edgen.core.values import ROLES, Turn
from edgen.evaluation.measure import Measure
from edgen.evaluation.sample import Sample
from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.near_duplicates import matches
from edgen.reading.detect import words
from edgen.space import Space

Array = NDArray[np.float64]
_encode = msgspec.json.Encoder().encode


class SettledConversation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one conversation that is settled.

    `calls`, `tokens` and `cost` (US dollars, None where the job had no price) are of all answers that it has
    in the ledger. `said` is what was said, None unless it was accepted.
    """

    scenario: int
    replicate: int
    status: str
    reason: str | None = None
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    said: Sample | None = None


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One run, and how it can be compared.

    `outcomes` gives what is settled, by scenario and replicate; `turns` one accepted conversation.
    `replicates` and the scenarios from `first` on and below `scenarios` are those planned. `draws` names what its scenarios are drawn by: arms that
    share it are paired. `roles` speak, the first one leads. `asking` says how the probability is asked for. `earlier`: its ledger
    holds answers of an earlier form of the job; `branching`: replicates rest on the answers of the first. `measures` are
    those that have something to compare in conversations about `space`. `stale_labels` counts units that are left out of
    layers, once `outcomes` were told to their end.
    """

    label: str
    run: str = ""
    fingerprint: str = ""
    scenarios: int
    first: int = 0
    replicates: int = 1
    outcomes: Callable[[], Iterable[SettledConversation]]
    turns: Callable[[int, int], tuple[Turn, ...]]
    draws: str = ""
    roles: tuple[str, ...] = ROLES
    asking: str = ""
    pending: int = 0
    simulated: bool = False
    earlier: bool = False
    branching: bool = False
    measures: tuple[Measure[Any], ...] = ()
    space: Space | None = None
    changes: dict[str, str] = field(default_factory=dict)
    stale_labels: Counter[str] = field(default_factory=Counter)


class ArmSums:
    """An arm's numbers, each a column of sums by scenario, made in one pass over its outcomes.

    Columns: `settled`, `accepted`, `rejected_<reason>`, `failed_<reason>`, `calls`, `tokens`, `cost`,
    `repaired`, `repair_<kind>`, `turns`, `words`, `turns of <role>`, `words of <role>`, `probability`,
    `with_probability`, `without_probability`, `ended`, `ended by <role>`; and of measures `<measure>: <column>`.
    """

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self._columns: defaultdict[str, array[float]] = defaultdict(self._column)
        self._digests = array("Q", bytes(8 * arm.scenarios))
        self._first = array("q", [-1]) * arm.scenarios
        self.unpriced = 0  # conversations that were answered and have no cost
        self.linked: list[tuple[int, int]] = []  # scenarios with conversations that are nearly the same
        for outcome in arm.outcomes():
            self._add(outcome)

    def _column(self) -> array[float]:
        return array("d", bytes(8 * self.arm.scenarios))

    def _add(self, outcome: SettledConversation) -> None:
        columns, i = self._columns, outcome.scenario
        columns["settled"][i] += 1
        columns["calls"][i] += outcome.calls
        columns["tokens"][i] += outcome.tokens
        if outcome.cost is not None:
            columns["cost"][i] += outcome.cost
        elif outcome.calls:
            self.unpriced += 1
        if (said := outcome.said) is None:
            columns[f"{outcome.status}_{outcome.reason or 'unknown'}"][i] += 1
            return
        if self._first[i] < 0:
            self._first[i] = outcome.replicate
        self._digests[i] ^= hash64(_encode((outcome.replicate, said.turns)))
        for name, amount in (*_count_conversation(said), *self._measured(said)):
            columns[name][i] += amount

    def _measured(self, said: Sample) -> Iterator[tuple[str, float]]:
        """What an accepted conversation adds to the columns of measures."""
        if self.arm.space is None:
            return
        for measure in self.arm.measures:
            for name, amount in measure.sums(said, self.arm.space):
                yield f"{measure.name}: {name}", amount

    def column(self, name: str) -> Array:
        """The sums of one number by scenario (scenarios planned); zeros where it never occurred."""
        return np.frombuffer(self._columns[name], dtype=np.float64)

    def put(self, name: str, values: Iterable[tuple[int, float]]) -> None:
        """Add (scenario, number) to a column."""
        column = self._columns[name]
        for scenario, number in values:
            column[scenario] += number

    def names(self, beginning: str) -> list[str]:
        """The columns that begin so and hold anything, sorted."""
        return sorted(name for name in self._columns if name.startswith(beginning) and self.total(name))

    def total(self, name: str) -> float:
        return float(self.column(name).sum())

    @property
    def priced(self) -> bool:
        """Whether every answer has a price."""
        return not self.unpriced and bool(self.total("calls"))

    @property
    def digests(self) -> NDArray[np.uint64]:
        """By scenario, what stands for all that its accepted conversations say; 0 where there is none."""
        return np.frombuffer(self._digests, dtype=np.uint64)

    def first(self, scenario: int) -> tuple[Turn, ...]:
        """The accepted conversation of a scenario that has the lowest number. There must be one."""
        return self.arm.turns(scenario, self._first[scenario])


def _count_conversation(said: Sample) -> Iterator[tuple[str, float]]:
    """What an accepted conversation adds to which column."""
    yield "accepted", 1
    for turn in said.turns:
        count = len(words(turn.text))
        yield "turns", 1
        yield f"turns of {turn.role}", 1
        yield "words", count
        yield f"words of {turn.role}", count
    if said.probability is None:
        yield "without_probability", 1
    else:
        yield "with_probability", 1
        yield "probability", said.probability
    if said.ended_by is not None:
        yield "ended", 1
        yield f"ended by {said.ended_by}", 1
    if said.repairs:
        yield "repaired", 1
    for kind in said.repairs:
        yield f"repair_{kind}", 1


def count_near_duplicates(table: ArmSums, scenarios: int, replicates: int) -> None:
    """Fill the columns `compared` and `near_duplicates`: of the accepted conversations of the first so many scenarios
    and replicates, those with another one that is nearly the same; and say which scenarios these link."""
    corpus, keys = Corpus(), []
    for outcome in table.arm.outcomes():
        if outcome.scenario >= scenarios:
            break
        if outcome.said is not None and outcome.replicate < replicates:
            keys.append(outcome.scenario)
            corpus.add([conversation_words(outcome.said.turns)])
    found = matches(corpus, np.zeros(len(keys), dtype=np.int8))
    alike = {place for match in found for place in (match.a, match.b)}
    table.put("compared", ((scenario, 1) for scenario in keys))
    table.put("near_duplicates", ((keys[place], 1) for place in alike))
    table.linked = [(keys[match.a], keys[match.b]) for match in found]


def groups(size: int, links: Iterable[tuple[int, int]]) -> NDArray[np.intp]:
    """For each of `size` scenarios the number of its group: those that links lead to from one another."""
    return np.unique(roots(size, links), return_inverse=True)[1]


def conversation_words(turns: Iterable[Turn]) -> list[str]:
    """The words of a conversation, one after the other."""
    return [word for turn in turns for word in words(turn.text)]
