"""The space's cells against the plan: planned conversations with each value, their outcomes, and lost cells.

A cell is one value of each dimension. It is lost if all its planned conversations are settled and none was
accepted. A value's survivors are the accepted share of its settled conversations, with scenarios as clusters.
Fisher's exact test compares how often scenarios with and without the value lost a conversation, so replicates
of one scenario count once. p-values are Holm-adjusted for all values of all dimensions. Sources are in
`CoverageMeasure.definition`; evenness is Pielou's (1966, Journal of Theoretical Biology 13).
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.plugin import Sample, Space, Words
from edgen.plugin.measures import PlannedOutcome
from edgen.plugin.protocols import AllowedCells, SpaceRole, list_layout_roles
from edgen.plugin.spaces import name_field
from edgen.plugin.statistics import Estimate, fisher, holm, log_factorials, share

VALUES, UNSEEN, LOST, HEAT = 200, 50, 50, 30
MOST_TABLES = 4  # maximum tables of two dimensions
NONE = "(none)"  # value of an entry without the field
STATUSES = ("accepted", "rejected", "failed", "pending")
ACCEPTED, PENDING = 0, 3

Ints = NDArray[np.int64]


class ValueCount(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a dimension, and the outcomes of its planned conversations. Files have no plan: all their
    conversations count as planned and accepted."""

    value: str  # name of the value
    planned: int  # conversations
    accepted: int  # conversations
    rejected: int  # conversations
    failed: int  # conversations
    pending: int  # conversations
    survived: Estimate | None  # accepted share of the settled ones
    p_holm: float | None = None  # p that its share is the others', adjusted for all values


class DimensionCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of the space."""

    name: str  # name of the dimension
    size: int  # values in the space
    seen: int  # values of accepted conversations
    evenness: float | None  # entropy of accepted ones over log(size); 1: equally often
    values: tuple[ValueCount, ...]  # the 200 most frequently planned
    unseen: tuple[str, ...]  # at most 50 values that were planned and never accepted
    planned: int = 0  # values with a planned conversation
    unplanned: tuple[str, ...] = ()  # at most 50 values never planned; of files: in no record


class LostCell(msgspec.Struct, frozen=True, kw_only=True):
    """A planned cell without an accepted conversation, and the reasons."""

    cell: dict[str, str]
    planned: int
    reasons: dict[str, int]


class CrossTable(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over two dimensions: rows[i] x columns[j]."""

    row_dimension: str  # name of the rows' dimension
    column_dimension: str  # name of the columns' dimension
    rows: tuple[str, ...]  # at most 30 values, the most often planned
    columns: tuple[str, ...]  # at most 30 values, the most often planned
    planned: tuple[tuple[int, ...], ...]  # conversations by row and column
    accepted: tuple[tuple[int, ...], ...]  # conversations by row and column


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The space's cells against the plan."""

    planned: int  # conversations
    accepted: int  # conversations
    cells: int | None  # cells of the space; None if the space is unknown
    planned_cells: int  # cells with a planned conversation
    accepted_cells: int  # cells with an accepted conversation
    lost_cells: int  # planned cells without an accepted conversation
    lost: tuple[LostCell, ...]  # examples of lost cells
    dimensions: tuple[DimensionCoverage, ...]  # every dimension of the space
    heat: tuple[CrossTable, ...]  # one role's own dimensions by another role's own
    reasons: dict[str, int] = {}  # why conversations were not accepted, with counts


class _Column:
    """One dimension, or one field of its entries: its values, and the value of each outcome."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.known = tuple(dict.fromkeys(known))  # the space's values
        self.places: dict[str, int] = {}
        self._of_outcome = array("I")

    def add(self, value: str, number: int) -> None:
        """Add the value of outcome `number`; skipped outcomes get NONE."""
        if number != len(self._of_outcome):
            self.fill(number)
        self._of_outcome.append(self.places.setdefault(value, len(self.places)))

    def fill(self, count: int) -> None:
        if missing := count - len(self._of_outcome):
            self._of_outcome.extend([self.places.setdefault(NONE, len(self.places))] * missing)

    @cached_property
    def table(self) -> Ints:
        """The place of each outcome's value, shape (outcomes,); call `fill` first."""
        return np.array(self._of_outcome, dtype=np.int64)

    @property
    def says_anything(self) -> bool:
        return any(value != NONE for value in (*self.places, *self.known))


class CoverageCount:
    """The running count. It keeps 9 bytes per planned conversation, 4 more per dimension, and every value
    once. Without a plan (`planned`), all conversations count as planned, and there are no survivors. `roles`:
    the roles, with the dimensions that they see; None: the usual layout's."""

    def __init__(
        self, space: Space | None = None, roles: Sequence[SpaceRole] | None = None, *, planned: bool = True
    ) -> None:
        self._space = space
        self._roles = list_layout_roles() if roles is None else roles
        self._planned = planned
        self._dimensions: defaultdict[str, _Column] = defaultdict(_Column)
        self._fields: defaultdict[str, _Column] = defaultdict(_Column)
        names = space.names if space else ()
        for dimension in space.dimensions if space else ():
            self._dimensions[dimension.name] = _Column(dimension.values)
            for field in dimension.fields:
                said = (_describe_text(entry.fields.get(field)) for entry in dimension.entries)
                self._fields[name_field(dimension.name, field, names)] = _Column(said)
        self._status, self._scenarios = array("b"), array("q")
        self._reasons: dict[str, int] = {}
        self._reason = array("i")  # -1: none

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        if not self._planned:
            self.see_planned(PlannedOutcome(sample.scenario, 0, "accepted"))

    def see_planned(self, outcome: PlannedOutcome) -> None:
        """Count one planned conversation."""
        number, scenario = len(self._status), outcome.scenario
        for name, value in scenario.values.items():
            self._dimensions[name].add(value, number)
        for dimension, fields in scenario.fields.items():
            for field, said in fields.items():
                self._fields[name_field(dimension, field, scenario.values)].add(_describe_text(said), number)
        self._status.append(STATUSES.index(outcome.status))
        self._scenarios.append(scenario.index)
        reason = outcome.reason
        self._reason.append(-1 if reason is None else self._reasons.setdefault(reason, len(self._reasons)))

    def result(self) -> Coverage:
        status = np.array(self._status)
        for column in (*self._dimensions.values(), *self._fields.values()):
            column.fill(len(status))
        cells = self._number_cells()
        counts = _count_by_status(cells, status)
        lost = (counts[:, ACCEPTED] == 0) & (counts[:, PENDING] == 0)
        return Coverage(
            planned=len(status),
            accepted=int(np.count_nonzero(status == ACCEPTED)),
            reasons=self._count_reasons(),
            cells=None if self._space is None else _count_cells(self._space),
            planned_cells=len(counts),
            accepted_cells=int(np.count_nonzero(counts[:, ACCEPTED])),
            lost_cells=int(np.count_nonzero(lost)),
            lost=tuple(self._list_lost_cells(cells, counts, lost)),
            dimensions=self._describe_dimensions(status),
            heat=tuple(
                self._make_cross_table(row, column, status) for row, column in self._pair_dimensions()
            ),
        )

    def _number_cells(self) -> Ints:
        """Return the cell number of each outcome, from 0. Cells are numbered dimension by dimension, so that
        numbers stay small."""
        cells = np.zeros(len(self._status), dtype=np.int64)
        for column in self._dimensions.values():
            cells = np.unique(cells * len(column.places) + column.table, return_inverse=True)[1]
        return cells

    def _pair_dimensions(self) -> list[tuple[str, str]]:
        """Return pairs of dimensions to cross: those only the second role sees with those only the first
        sees, in order; without such, every two dimensions."""
        seen = Counter(name for role in self._roles for name in {*role.sees})
        alone = [[name for name in role.sees if seen[name] == 1] for role in self._roles]
        pairs = list(zip(alone[1], alone[0], strict=False)) if len(alone) > 1 else []
        pairs = [pair for pair in pairs if {*pair} <= self._dimensions.keys()]
        varied = [name for name, column in self._dimensions.items() if len(column.places) > 1]
        return (pairs or list(itertools.combinations(varied, 2)))[:MOST_TABLES]

    def _count_reasons(self) -> dict[str, int]:
        """Count the reasons, the most frequent first."""
        texts = list(self._reasons)
        return {texts[place]: n for place, n in Counter(self._reason).most_common() if place >= 0}

    def _list_lost_cells(self, cells: Ints, counts: Ints, lost: NDArray[np.bool_]) -> list[LostCell]:
        """Return examples of lost cells: by planned conversations, then by their first one."""
        reasons, texts = np.array(self._reason), list(self._reasons)
        places = np.flatnonzero(lost)
        found = []
        for cell in places[np.argsort(-counts[places].sum(axis=1), kind="stable")][:LOST]:
            outcomes = np.flatnonzero(cells == cell)
            why = Counter(texts[r] if r >= 0 else "no reason given" for r in reasons[outcomes])
            first = outcomes[0]
            values = {name: list(one.places)[one.table[first]] for name, one in self._dimensions.items()}
            found.append(LostCell(cell=values, planned=len(outcomes), reasons=dict(why.most_common())))
        return found

    def _describe_dimensions(self, status: Ints) -> tuple[DimensionCoverage, ...]:
        scenarios = np.array(self._scenarios)
        columns = dict(self._dimensions)
        for name, column in self._fields.items():
            if column.says_anything:
                columns.setdefault(name, column)
        counts = {name: _count_by_status(column.table, status) for name, column in columns.items()}
        p = {
            name: _compute_p_values(column.table, len(counts[name]), status, scenarios)
            for name, column in columns.items()
        }
        adjusted = iter(holm(list(itertools.chain.from_iterable(p.values()))))
        return tuple(
            self._describe_dimension(
                name, column, counts[name], [*itertools.islice(adjusted, len(p[name]))], status
            )
            for name, column in columns.items()
        )

    def _iterate_values(
        self, column: _Column, counts: Ints, p_holm: list[float], status: Ints
    ) -> Iterator[ValueCount]:
        """Yield the values with the most planned conversations."""
        names, scenarios = list(column.places), np.array(self._scenarios)
        rows = np.argsort(column.table, kind="stable")  # outcomes grouped by value
        ends = np.cumsum(counts.sum(axis=1))
        for i in map(int, np.argsort(-counts.sum(axis=1), kind="stable")[:VALUES]):
            own = rows[ends[i - 1] if i else 0 : ends[i]]
            own = own[status[own] != PENDING]
            yield ValueCount(
                value=names[i],
                planned=int(counts[i].sum()),
                **dict(zip(STATUSES, map(int, counts[i]), strict=True)),
                survived=share(status[own] == ACCEPTED, scenarios[own]) if self._planned else None,
                p_holm=p_holm[i] if p_holm else None,
            )

    def _describe_dimension(
        self, name: str, column: _Column, counts: Ints, p_holm: list[float], status: Ints
    ) -> DimensionCoverage:
        names = list(column.places)
        known = names if self._space is None else column.known
        accepted = counts[:, ACCEPTED]
        unseen = [value for value, count in zip(names, accepted, strict=True) if not count]
        unplanned = [value for value in known if value not in column.places]
        return DimensionCoverage(
            name=name,
            size=len(known),
            planned=len(names),
            seen=len(names) - len(unseen),
            evenness=_compute_evenness(accepted, len(known)),
            values=tuple(self._iterate_values(column, counts, p_holm, status)),
            unseen=tuple(unseen[:UNSEEN]),
            unplanned=tuple(unplanned[:UNSEEN]),
        )

    def _make_cross_table(self, row: str, column: str, status: Ints) -> CrossTable:
        texts, ranks = [], []
        for one in (self._dimensions[row], self._dimensions[column]):
            order = np.argsort(-np.bincount(one.table), kind="stable")
            values = list(one.places)
            texts.append(tuple(values[i] for i in order[:HEAT]))
            ranks.append(np.argsort(order)[one.table])
        inside = (ranks[0] < HEAT) & (ranks[1] < HEAT)
        planned, accepted = np.zeros((2, len(texts[0]), len(texts[1])), dtype=np.int64)
        for grid, which in ((planned, inside), (accepted, inside & (status == ACCEPTED))):
            np.add.at(grid, (ranks[0][which], ranks[1][which]), 1)
        return CrossTable(
            row_dimension=row,
            column_dimension=column,
            rows=texts[0],
            columns=texts[1],
            planned=tuple(map(tuple, planned.tolist())),
            accepted=tuple(map(tuple, accepted.tolist())),
        )


def _describe_text(said: object) -> str:
    return NONE if said is None else said if isinstance(said, str) else str(said)


def _count_cells(space: Space) -> int | None:
    """Return the number of different scenarios that conditions and exclusions allow; None if too many to
    count."""
    if space.conditional:
        return AllowedCells(space).count
    return math.prod(len({*dimension.values}) for dimension in space.dimensions)


def _count_by_status(places: Ints, status: Ints) -> Ints:
    """Return the numbers of outcomes, shape (places, statuses)."""
    size = int(np.max(places)) + 1 if len(places) else 0
    flat = np.bincount(places * len(STATUSES) + status, minlength=size * len(STATUSES))
    return flat.reshape(size, len(STATUSES))


def _compute_p_values(table: Ints, size: int, status: Ints, scenarios: Ints) -> list[float]:
    """Return each value's p-value that its scenarios lose conversations as often as others; empty if none was
    lost.

    A scenario has lost a conversation if one is settled and not accepted. Scenarios without settled
    conversations are left out.
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
    tested: dict[tuple[int, int], float] = {}  # values with equal counts share a test
    for n, k in set(zip(sizes.tolist(), hits.tolist(), strict=True)):
        tested[n, k] = fisher(k, n, lost, total, logs)
    return [tested[n, k] for n, k in zip(sizes.tolist(), hits.tolist(), strict=True)]


def _compute_evenness(accepted: Ints, size: int) -> float | None:
    """Return the evenness, 0 to 1; None for a dimension with one value, or if nothing was accepted."""
    total = int(accepted.sum())
    if size < 2 or total == 0:
        return None
    p = accepted[accepted > 0] / total
    return min(max(0.0, float(-(p @ np.log(p))) / math.log(size)), 1.0)  # 0.0 first: never -0.0
