"""Arms to compare, each a stream of outcomes, and their sums by scenario.

A run is read once. Sums by scenario stay in memory, a few dozen numbers each; texts are read again when
needed.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.core.digest import hash64
from edgen.core.values import ROLES, Turn
from edgen.evaluation.comparison.result import DataFacts
from edgen.evaluation.measure import Measure, add_up
from edgen.evaluation.sample import Sample, Words, cut
from edgen.evaluation.shared import Faults, leave_out
from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.near_duplicates import find_matches
from edgen.evaluation.texts.shingles import CorpusShingles
from edgen.reading.detect import words
from edgen.space import Space
from edgen.stats.union_find import find_roots

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
MOST_COLUMNS = 1_000  # maximum columns of a data set, whose labels may be anything
_TURNS_OF = "turns of "
_encode = msgspec.json.Encoder().encode


class SettledConversation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one settled conversation."""

    scenario: int  # index of the scenario
    replicate: int  # number of the replicate, from 0
    status: str  # accepted, rejected or failed
    reason: str | None = None  # why it was not accepted
    calls: int = 0  # answers in the ledger; tokens and cost are theirs
    tokens: int = 0  # of prompts and answers
    cost: float | None = None  # US dollars; None without a price in the job
    said: Sample | None = None  # its content; None unless it was accepted


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One run, or one data set, in a comparison."""

    label: str  # its name in the comparison
    run: str = ""  # path of the run or the data set
    fingerprint: str = ""  # fingerprint of everything that shapes the run's answers
    scenarios: int  # the end of the planned scenarios' indexes, exclusive
    first: int = 0  # the first planned scenario
    replicates: int = 1  # planned replicates per scenario
    outcomes: Callable[[], Iterable[SettledConversation]]
    """Yields the settled conversations, by scenario and replicate."""
    turns: Callable[[int, int], tuple[Turn, ...]]  # reads an accepted one, by (scenario, replicate)
    draws: str = ""  # identifies the draws of its scenarios: arms with the same value are paired
    roles: tuple[str, ...] = ROLES  # roles that speak; the first one leads
    asking: str = ""  # how the probability is requested
    pending: int = 0  # conversations without an outcome
    simulated: bool = False  # no model wrote it
    earlier: bool = False  # its ledger has answers of an earlier form of the job
    branching: bool = False  # replicates depend on the answers of the first
    measures: tuple[Measure[Any], ...] = ()  # measures with columns to compare
    space: Space | None = None  # the space of the conversations; None if unknown
    marks_ends: bool = True  # whether a data set marks who ends a conversation
    data: Callable[[], DataFacts] | None = None  # facts about a data set, after `outcomes` has ended
    kept: Callable[[int], Iterable[tuple[int, tuple[Turn, ...]]]] | None = None
    """Yields a data set's conversations for measuring variety, from a number of first scenarios."""
    probability_words: str = "probability"  # display name of the probability
    changes: dict[str, str] = field(default_factory=dict)
    """Keys of the job that differ from the baseline's, with their values here."""
    stale_labels: Counter[str] = field(default_factory=Counter)
    """Units left out of layers, after `outcomes` has ended."""


def list_conversations(arm: Arm, scenarios: int, replicates: int) -> Iterator[tuple[int, tuple[Turn, ...]]]:
    """Yield (scenario, turns) of accepted conversations. `scenarios`, `replicates`: only these many first
    ones."""
    if arm.kept is not None:
        yield from arm.kept(scenarios)
        return
    for outcome in arm.outcomes():
        if outcome.scenario >= scenarios:
            return
        if outcome.said is not None and outcome.replicate < replicates:
            yield outcome.scenario, outcome.said.turns


class ArmSums:
    """An arm's numbers as columns of sums by scenario, computed in one pass over its outcomes. A column has a
    place for each settled scenario; `align` gives several arms the same places.

    Columns: `settled`, `accepted`, `rejected_<reason>`, `failed_<reason>`, `calls`, `tokens`, `cost`,
    `repaired`, `repair_<kind>`, `turns`, `words`, `turns of <role>`, `words of <role>`, `probability`,
    `with_probability`, `without_probability`, `ended`, `ended by <role>`; for measures `<measure>: <column>`.
    """

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self._columns: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
        self._rows: dict[int, int] = {}  # row of each settled scenario in the arrays
        self._digests = array("Q")
        self._first: dict[int, int] = {}  # first accepted replicate of each scenario
        self.unpriced = 0  # conversations with answers but without a cost
        self.linked: list[tuple[int, int]] = []  # pairs of scenarios with near-duplicates
        self.faults: Faults = {}  # of plugins' measures that raised and are left out
        for outcome in arm.outcomes():
            self._add(outcome)
        self.align(np.array(sorted(self._rows), dtype=np.int64))

    def align(self, scenarios: Indices) -> None:
        """Give each of these scenarios a place in every column. They ascend, and include all settled ones."""
        self.scenarios = scenarios
        self._places = np.searchsorted(scenarios, np.array(list(self._rows), dtype=np.int64))

    def _add(self, outcome: SettledConversation) -> None:
        i = outcome.scenario
        if i not in self._rows:
            self._rows[i] = len(self._rows)
            self._digests.append(0)
        self._increase("settled", i, 1)
        self._increase("calls", i, outcome.calls)
        self._increase("tokens", i, outcome.tokens)
        if outcome.cost is not None:
            self._increase("cost", i, outcome.cost)
        elif outcome.calls:
            self.unpriced += 1
        if (said := outcome.said) is None:
            self._increase(f"{outcome.status}_{outcome.reason or 'unknown'}", i, 1)
            return
        self._first.setdefault(i, outcome.replicate)
        self._digests[self._rows[i]] ^= hash64(_encode((outcome.replicate, said.turns)))
        words = cut(said.turns)
        for name, amount in (*_count_conversation(said, words), *self._list_measure_values(said, words)):
            if self.arm.data is None or name in self._columns or len(self._columns) < MOST_COLUMNS:
                self._increase(name, i, amount)

    def _increase(self, name: str, scenario: int, amount: float) -> None:
        column, row = self._columns[name], self._rows[scenario]
        if row >= len(column):
            column.extend([0.0] * (row + 1 - len(column)))
        column[row] += amount

    def _list_measure_values(self, said: Sample, words: Words) -> Iterator[tuple[str, float]]:
        """Yield (column, value) of the arm's measures for an accepted conversation."""
        if self.arm.space is None and self.arm.data is None:
            return
        for measure in self.arm.measures:
            if measure.name in self.faults:
                continue
            sums: Iterable[tuple[str, float]] = ()
            try:
                sums = [*add_up(measure, said, words, self.arm.space)]
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                leave_out(measure.name, error, self.faults, f"for conversation {said.id}")
            for name, amount in sums:
                yield f"{measure.name}: {name}", amount

    def find_column(self, name: str) -> Array:
        """Return the sums of a column, at the scenarios' places; 0 where it never occurred."""
        known = self._columns[name]
        found = np.zeros(len(self.scenarios))
        found[self._places[: len(known)]] = known
        return found

    def put(self, name: str, values: Iterable[tuple[int, float]]) -> None:
        """Add (scenario, number) to a column."""
        for scenario, number in values:
            self._increase(name, scenario, number)

    def list_names(self, beginning: str) -> list[str]:
        """Return the sorted names of columns with this beginning and a total other than 0."""
        return sorted(name for name in self._columns if name.startswith(beginning) and self.find_total(name))

    def find_total(self, name: str) -> float:
        return float(self.find_column(name).sum())

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that speak: the arm's, or the roles found in a data set."""
        begun = (name for name, column in self._columns.items() if column)  # look-ups create empty ones
        found = (name.removeprefix(_TURNS_OF) for name in begun if name.startswith(_TURNS_OF))
        return self.arm.roles if self.arm.data is None else tuple(found)

    @property
    def end(self) -> int:
        """The end of the scenarios, exclusive: of the plan, or of a data set."""
        return self.arm.scenarios if self.arm.data is None else len(self._rows)

    @property
    def priced(self) -> bool:
        """True if every answer has a price."""
        return not self.unpriced and bool(self.find_total("calls"))

    @property
    def digests(self) -> NDArray[np.uint64]:
        """A digest of each scenario's accepted conversations, at the scenarios' places; 0 without any."""
        found = np.zeros(len(self.scenarios), dtype=np.uint64)
        found[self._places] = self._digests
        return found

    def read_first_conversation(self, scenario: int) -> tuple[Turn, ...]:
        """Return a scenario's accepted conversation with the lowest replicate. There must be one."""
        return self.arm.turns(scenario, self._first[scenario])


def _count_conversation(said: Sample, words: Words) -> Iterator[tuple[str, float]]:
    """Yield (column, value) for an accepted conversation."""
    yield "accepted", 1
    for turn, cut_words in zip(said.turns, words, strict=True):
        count = len(cut_words)
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
    """Fill the columns `compared` and `near_duplicates`, and set the scenarios that near-duplicates link.
    `scenarios`, `replicates`: only these many first ones are compared."""
    corpus, keys = Corpus(), []
    for scenario, turns in list_conversations(table.arm, scenarios, replicates):
        keys.append(scenario)
        corpus.add([list_conversation_words(turns)])
    found = find_matches(CorpusShingles(corpus), np.zeros(len(keys), dtype=np.int8))
    alike = {place for match in found for place in (match.a, match.b)}
    table.put("compared", ((scenario, 1) for scenario in keys))
    table.put("near_duplicates", ((keys[place], 1) for place in alike))
    table.linked = [(keys[match.a], keys[match.b]) for match in found]


def align(tables: Sequence[ArmSums]) -> None:
    """Give the arms the same places: one for each scenario that is settled in any arm."""
    everywhere = np.unique(np.concatenate([table.scenarios for table in tables]))
    for table in tables:
        table.align(everywhere)


def number_groups(size: int, links: Iterable[tuple[int, int]]) -> NDArray[np.intp]:
    """Return the group number of each of `size` scenarios: linked scenarios form a group."""
    return np.unique(find_roots(size, links), return_inverse=True)[1]


def list_conversation_words(turns: Iterable[Turn]) -> list[str]:
    """Return the words of a conversation as one list."""
    return [word for turn in turns for word in words(turn.text)]
