"""The space's cells against the plan: what was planned with each value, what became of it, what is lost.

A cell is one value of each dimension. A value's share of survivors is what was accepted of what was
settled, with the interval of `pairing.intervals` (Wilson's, widened for few scenarios), scenarios as clusters. Whether it is the others' share is
asked by Fisher's exact test over scenarios: is a scenario with this value among those that lost a
conversation as often as the others are? So replicates of one scenario count once. p-values are Holm-
adjusted for all values of all dimensions. A cell is lost where all that was planned with it is settled and
nothing was accepted. Evenness is Pielou's (1966, Journal of Theoretical Biology 13): Shannon's entropy over
its greatest value.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from edgen.model import Scenario
from edgen.pairing.intervals import share
from edgen.quality.model import Fate
from edgen.quality.results import Coverage, Dimension, Heat, Lost, Value
from edgen.quality.significance import fisher, holm, log_factorials
from edgen.space import Space

VALUES, UNSEEN, LOST, HEAT = 200, 50, 50, 30
NAMES = ("topic", "student_preference", "student_reaction", "teacher_preference", "teacher_reaction")
OF_TOPICS = (
    "subject",
    "level",
)  # told of as dimensions are, where a topic has any; a cell does not hang on them
NONE = "(none)"  # of a topic without
_HEATS = (("student_preference", "teacher_preference"), ("student_reaction", "teacher_reaction"))
STATUSES = ("accepted", "rejected", "failed", "pending")
ACCEPTED, PENDING = 0, 3

Ints = NDArray[np.int64]


class _Table:
    """One dimension: its values, and which of them each fate has."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.of_fate = array("I")

    def add(self, value: str) -> None:
        self.of_fate.append(self.places.setdefault(value, len(self.places)))


class CoverageMeasure:
    """Told of every fate; 41 bytes each are kept, and every value once. `space` is None where none is known;
    without a plan nothing is said of survivors."""

    def __init__(self, space: Space | None = None, *, planned: bool = True) -> None:
        self._space = space
        self._planned = planned
        self._tables = {name: _Table() for name in (*NAMES, *OF_TOPICS)}
        self._status, self._scenarios = array("b"), array("q")
        self._reasons: dict[str, int] = {}
        self._reason = array("i")  # -1: none

    def add(self, fate: Fate) -> None:
        for name, table in self._tables.items():
            value = getattr(fate.scenario, name)
            table.add(NONE if value is None else value)
        self._status.append(STATUSES.index(fate.status))
        self._scenarios.append(fate.scenario.index)
        reason = fate.reason
        self._reason.append(-1 if reason is None else self._reasons.setdefault(reason, len(self._reasons)))

    def result(self) -> Coverage:
        status = np.array(self._status)
        tables = {name: np.array(table.of_fate, dtype=np.int64) for name, table in self._tables.items()}
        cells = _ranked({name: tables[name] for name in NAMES}, self._tables)
        counts = _by_status(cells, status)
        lost = (counts[:, ACCEPTED] == 0) & (counts[:, PENDING] == 0)
        return Coverage(
            planned=len(status),
            accepted=int(np.count_nonzero(status == ACCEPTED)),
            reasons=self._why(),
            cells=None
            if self._space is None
            else math.prod(len(set(_values(self._space, n))) for n in NAMES),
            planned_cells=len(counts),
            accepted_cells=int(np.count_nonzero(counts[:, ACCEPTED])),
            lost_cells=int(np.count_nonzero(lost)),
            lost=tuple(self._lost(cells, counts, lost, tables)),
            dimensions=self._dimensions(status, tables),
            heat=tuple(self._heat(row, column, status, tables) for row, column in _HEATS),
        )

    def _why(self) -> dict[str, int]:
        """Reasons, the most frequent first."""
        texts = list(self._reasons)
        return {texts[place]: n for place, n in Counter(self._reason).most_common() if place >= 0}

    def _lost(
        self, cells: Ints, counts: Ints, lost: NDArray[np.bool_], tables: dict[str, Ints]
    ) -> list[Lost]:
        """Examples: those that most was planned of first, then by their first conversation."""
        reasons, texts = np.array(self._reason), list(self._reasons)
        places = np.flatnonzero(lost)
        found = []
        for cell in places[np.argsort(-counts[places].sum(axis=1), kind="stable")][:LOST]:
            fates = np.flatnonzero(cells == cell)
            why = Counter(texts[r] if r >= 0 else "no reason given" for r in reasons[fates])
            values = {name: list(self._tables[name].places)[tables[name][fates[0]]] for name in NAMES}
            found.append(Lost(cell=values, planned=len(fates), reasons=dict(why.most_common())))
        return found

    def _dimensions(self, status: Ints, tables: dict[str, Ints]) -> tuple[Dimension, ...]:
        scenarios = np.array(self._scenarios)
        names = (*NAMES, *(name for name in OF_TOPICS if self._told(name)))
        counts = {name: _by_status(tables[name], status) for name in names}
        p = {name: _p_values(tables[name], len(counts[name]), status, scenarios) for name in names}
        adjusted = iter(holm(list(itertools.chain.from_iterable(p.values()))))
        found = []
        for name in names:
            p_holm = list(itertools.islice(adjusted, len(p[name])))
            found.append(self._dimension(name, tables[name], counts[name], p_holm, status, scenarios))
        return tuple(found)

    def _told(self, name: str) -> bool:
        """Whether any topic has a subject, or a level."""
        known = () if self._space is None else _values(self._space, name)
        return any(value != NONE for value in (*self._tables[name].places, *known))

    def _dimension(
        self, name: str, table: Ints, counts: Ints, p_holm: list[float], status: Ints, scenarios: Ints
    ) -> Dimension:
        names = list(self._tables[name].places)
        known = names if self._space is None else list(dict.fromkeys(_values(self._space, name)))
        accepted = {names[i] for i in np.flatnonzero(counts[:, ACCEPTED])}
        shown = np.argsort(-counts.sum(axis=1), kind="stable")[:VALUES]
        settled = status != PENDING
        rows = np.argsort(table, kind="stable")  # the fates of each value together
        ends = np.cumsum(counts.sum(axis=1))
        values = []
        for i in map(int, shown):
            own = rows[ends[i - 1] if i else 0 : ends[i]]
            own = own[settled[own]]
            came, rejected, failed, pending = map(int, counts[i])
            values.append(
                Value(
                    value=names[i],
                    planned=came + rejected + failed + pending,
                    accepted=came,
                    rejected=rejected,
                    failed=failed,
                    pending=pending,
                    survived=share(status[own] == ACCEPTED, scenarios[own]) if self._planned else None,
                    p_holm=p_holm[i] if p_holm else None,
                )
            )
        unseen = [value for value in names if value not in accepted]
        planned = set(names)
        unplanned = [value for value in known if value not in planned]
        return Dimension(
            name=name,
            size=len(known),
            planned=len(names),
            seen=len(accepted),
            evenness=_evenness(counts[:, ACCEPTED], len(known)),
            values=tuple(values),
            unseen=tuple(unseen[:UNSEEN]),
            unplanned=tuple(unplanned[:UNSEEN]),
        )

    def _heat(self, row: str, column: str, status: Ints, tables: dict[str, Ints]) -> Heat:
        picked, texts = [], []
        for name in (row, column):
            order = np.argsort(-np.bincount(tables[name]), kind="stable")[:HEAT]
            values = list(self._tables[name].places)
            picked.append(order)
            texts.append(tuple(values[i] for i in order))
        planned = _crossed(tables[row], tables[column], picked)
        came = status == ACCEPTED
        accepted = _crossed(tables[row][came], tables[column][came], picked)
        return Heat(
            row_dimension=row,
            column_dimension=column,
            rows=texts[0],
            columns=texts[1],
            planned=planned,
            accepted=accepted,
        )


def accepted_fate(scenario: Scenario) -> Fate:
    """What a file, which knows no plan, tells of a conversation: it is there."""
    return Fate(scenario, 0, "accepted")


def _values(space: Space, name: str) -> list[str]:
    if name in OF_TOPICS:
        return [NONE if getattr(topic, name) is None else getattr(topic, name) for topic in space.topics]
    entries = dict(zip(NAMES, space.dimensions, strict=True))[name]
    return [entry.value for entry in entries]


def _ranked(tables: dict[str, Ints], of: dict[str, _Table]) -> Ints:
    """The cell of each fate, numbered from 0: dimension by dimension, so that numbers stay small."""
    cells = np.zeros(len(next(iter(tables.values()))), dtype=np.int64)
    for name, table in tables.items():
        cells = np.unique(cells * len(of[name].places) + table, return_inverse=True)[1]
    return cells


def _by_status(places: Ints, status: Ints) -> Ints:
    """(places, statuses): how many fates."""
    size = int(places.max()) + 1 if len(places) else 0
    flat = np.bincount(places * len(STATUSES) + status, minlength=size * len(STATUSES))
    return flat.reshape(size, len(STATUSES))


def _p_values(table: Ints, size: int, status: Ints, scenarios: Ints) -> list[float]:
    """For each value: that its scenarios lose conversations as often as the others. None where none was lost.

    A scenario has lost one if any of its conversations is settled and not accepted; those of which none is
    settled are left out.
    """
    settled = status != PENDING
    found, member = np.unique(scenarios[settled], return_inverse=True)
    loses = np.zeros(len(found), dtype=bool)
    loses[member[status[settled] != ACCEPTED]] = True
    if not loses.any():
        return []
    value = np.zeros(len(found), dtype=np.int64)
    value[member] = table[settled]
    sizes, hits = np.bincount(value, minlength=size), np.bincount(value[loses], minlength=size)
    logs, lost, total = log_factorials(len(found)), int(loses.sum()), len(found)
    tested: dict[tuple[int, int], float] = {}  # many values of equal counts have one test
    for n, k in set(zip(sizes.tolist(), hits.tolist(), strict=True)):
        tested[n, k] = fisher(k, n, lost, total, logs)
    return [tested[n, k] for n, k in zip(sizes.tolist(), hits.tolist(), strict=True)]


def _evenness(accepted: Ints, size: int) -> float | None:
    """None for a dimension of one value, or if nothing was accepted."""
    total = int(accepted.sum())
    if size < 2 or total == 0:
        return None
    p = accepted[accepted > 0] / total
    return min(max(0.0, float(-(p @ np.log(p))) / math.log(size)), 1.0)  # 0.0 first: never -0.0


def _crossed(rows: Ints, columns: Ints, picked: list[Ints]) -> tuple[tuple[int, ...], ...]:
    """Fates by the picked values of two dimensions."""
    height, width = map(len, picked)
    if not (height and width):
        return ()
    grid = np.zeros((int(picked[0].max()) + 1, int(picked[1].max()) + 1), dtype=np.int64)
    inside = (rows < grid.shape[0]) & (columns < grid.shape[1])
    np.add.at(grid, (rows[inside], columns[inside]), 1)
    return tuple(tuple(map(int, line)) for line in grid[np.ix_(picked[0], picked[1])])
