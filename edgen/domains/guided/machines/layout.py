"""A layered layout of boxes in columns: transitions lead to the right, and lines cross little and pass no
box.

The steps are Sugiyama's (Sugiyama, Tagawa and Toda 1981, IEEE Trans. SMC 11). Transitions that go back are
set aside. Each box gets a column by the longest way to it. Lines over several columns keep a lane in each.
The order in a column follows the mean place of the neighbours. Heights are as near to the neighbours' as is
possible without overlap (by pooling adjacent violators). The result depends only on the order of the input. A
picture has a band for each sub-task, with its states in the order in which the machine reaches them.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgen.domains.guided.machines.model import Machine
from edgen.domains.guided.machines.reach import explore

LONGEST = 4  # columns that a line may span; a longer one is not drawn
_SWEEPS = 12
_LANE = 10.0  # height of a line's lane
_GAP = 16.0  # between boxes of a column
_LEAN = 0.6

Edge = tuple[str, str]
_Cell = str | tuple[str, str, int]  # a box, or the lane of an edge in a column


@dataclass(frozen=True)
class Box:
    """A box, and the points where its lines leave it: heights from its top, by target."""

    height: float
    ports: Mapping[str, float]


@dataclass
class DiagramLayout:
    """The places of boxes: column (from 0) and top. `lanes`: the heights of a drawn edge in the columns
    between its ends, in order. An edge without `lanes` goes back or too far and has no line."""

    columns: dict[str, int] = field(default_factory=dict)
    tops: dict[str, float] = field(default_factory=dict)
    lanes: dict[Edge, tuple[float, ...]] = field(default_factory=dict)
    height: float = 0.0

    @property
    def width(self) -> int:
        """The number of columns."""
        return max(self.columns.values(), default=-1) + 1


def lay_out(boxes: Mapping[str, Box], edges: Sequence[Edge]) -> DiagramLayout:
    """Return the layout of boxes, which are in the order of their importance, and of the edges between
    them."""
    forward = _drop_back_edges(list(boxes), edges)
    columns = _assign_columns(list(boxes), forward)
    drawn = [(a, b) for a, b in forward if columns[b] - columns[a] <= LONGEST]
    grid = _Grid(boxes, columns, drawn)
    grid.sort()
    tops = grid.place()
    lowest = min(tops.values(), default=0.0)
    layout = DiagramLayout(columns=columns)
    for cell, top in tops.items():
        if isinstance(cell, str):
            layout.tops[cell] = top - lowest
    layout.height = max((layout.tops[name] + box.height for name, box in boxes.items()), default=0.0)
    for a, b in drawn:
        between = range(columns[a] + 1, columns[b])
        layout.lanes[a, b] = tuple(tops[a, b, column] - lowest + _LANE / 2 for column in between)
        layout.height = max([layout.height, *layout.lanes[a, b]])
    return layout


def _drop_back_edges(names: Sequence[str], edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges without those that close a circle in a walk in the order of the names."""
    after: dict[str, list[str]] = defaultdict(list)
    for a, b in dict.fromkeys(edges):
        if a != b:
            after[a].append(b)
    state = dict.fromkeys(names, 0)  # 1: on the current way, 2: done
    back: set[Edge] = set()
    for start in names:
        if state[start]:
            continue
        state[start] = 1
        way = [(start, iter(after[start]))]
        while way:
            name, more = way[-1]
            follower = next(more, None)
            if follower is None:
                state[name] = 2
                way.pop()
            elif state[follower] == 1:
                back.add((name, follower))
            elif state[follower] == 0:
                state[follower] = 1
                way.append((follower, iter(after[follower])))
    return [(a, b) for a in names for b in after[a] if (a, b) not in back]


def _assign_columns(names: Sequence[str], forward: Sequence[Edge]) -> dict[str, int]:
    """Return the column of each box: one after the last box that leads to it. A box without a predecessor
    stands directly before the boxes that it leads to."""
    after, waits = defaultdict(list), dict.fromkeys(names, 0)
    for a, b in forward:
        after[a].append(b)
        waits[b] += 1
    ready = [name for name in names if not waits[name]]
    roots = tuple(ready)
    columns = dict.fromkeys(names, 0)
    for name in ready:  # the list grows
        for one in after[name]:
            columns[one] = max(columns[one], columns[name] + 1)
            waits[one] -= 1
            if not waits[one]:
                ready.append(one)
    for name in roots:
        if after[name]:
            columns[name] = min(columns[one] for one in after[name]) - 1
    return columns


class _Grid:
    """Boxes and lanes in columns. `before` and `after`: for each cell, its neighbours, with the two heights
    (from the tops) that should be level: the neighbour's and its own. These are the middles of boxes, shifted
    towards the port. With the ports themselves everything would slope, since ports are lower than entries."""

    def __init__(self, boxes: Mapping[str, Box], columns: Mapping[str, int], edges: Sequence[Edge]) -> None:
        self.heights: dict[_Cell, float] = {name: box.height for name, box in boxes.items()}
        self.columns: list[list[_Cell]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
        for name in boxes:
            self.columns[columns[name]].append(name)
        self.before: dict[_Cell, list[tuple[_Cell, float, float]]] = defaultdict(list)
        self.after: dict[_Cell, list[tuple[_Cell, float, float]]] = defaultdict(list)
        for a, b in edges:
            previous: _Cell = a
            box = boxes[a]
            leaves = box.height / 2 + (box.ports[b] - sum(box.ports.values()) / len(box.ports)) * _LEAN
            for column in range(columns[a] + 1, columns[b]):
                lane = (a, b, column)
                self.heights[lane] = _LANE
                self.columns[column].append(lane)
                self._link(previous, lane, leaves, _LANE / 2)
                previous, leaves = lane, _LANE / 2
            self._link(previous, b, leaves, boxes[b].height / 2)

    def _link(self, a: _Cell, b: _Cell, leaves: float, reaches: float) -> None:
        self.after[a].append((b, reaches, leaves))
        self.before[b].append((a, leaves, reaches))

    # ---- the order in columns

    def sort(self) -> None:
        """Order each column by its neighbours, forwards and backwards, and keep the order with the fewest
        crossings."""
        best, fewest = [list(column) for column in self.columns], self._count_crossings()
        for sweep in range(_SWEEPS):
            right = sweep % 2 == 0
            for column in self.columns if right else reversed(self.columns):
                self._sort_column(column, self.before if right else self.after)
            if (count := self._count_crossings()) < fewest:
                best, fewest = [list(column) for column in self.columns], count
        self.columns = best

    def _sort_column(
        self, column: list[_Cell], neighbours: Mapping[_Cell, list[tuple[_Cell, float, float]]]
    ) -> None:
        places = self._find_places()
        own = {cell: places[cell] for cell in column}

        def average_neighbours(cell: _Cell) -> float:
            near = neighbours.get(cell)
            return sum(places[one] + port / 1e4 for one, port, _ in near) / len(near) if near else own[cell]

        column.sort(key=lambda cell: (average_neighbours(cell), own[cell]))

    def _find_places(self) -> dict[_Cell, float]:
        """Return the place of each cell in its column, from 0 to 1."""
        return {
            cell: (place + 0.5) / len(column) for column in self.columns for place, cell in enumerate(column)
        }

    def _count_crossings(self) -> int:
        """Return the number of pairs of lines that cross."""
        count = 0
        for column, following in zip(self.columns, self.columns[1:], strict=False):
            place = {cell: number for number, cell in enumerate(following)}
            ends: list[float] = []
            for cell in column:
                own = [place[b] for b, _, _ in sorted(self.after.get(cell, ()), key=lambda one: one[2])]
                for end in own:
                    count += len(ends) - bisect_right(ends, end)
                    insort(ends, end)
        return count

    # ---- heights

    def place(self) -> dict[_Cell, float]:
        """Return the top of each cell."""
        tops: dict[_Cell, float] = {}
        for column in self.columns:
            at = 0.0
            for cell in column:
                tops[cell] = at
                at += self.heights[cell] + _GAP
        for sweep in range(_SWEEPS):
            right = sweep % 2 == 0
            for column in self.columns if right else reversed(self.columns):
                self._level_column(column, tops, both=sweep >= _SWEEPS // 2, right=right)
        return tops

    def _level_column(
        self, column: list[_Cell], tops: dict[_Cell, float], *, both: bool, right: bool
    ) -> None:
        """Move a column's cells so that their lines are level, as far as order and sizes allow."""
        offsets, wanted, weights = [], [], []
        at = 0.0
        for cell in column:
            near = [
                *(self.before[cell] if right or both else ()),
                *(self.after[cell] if both or not right else ()),
            ]
            level = [tops[one] + there - here for one, there, here in near]
            wanted.append((sum(level) / len(level) if level else tops[cell]) - at)
            weights.append(0.2 + len(near) * (1.0 if isinstance(cell, str) else 2.0))
            offsets.append(at)
            at += self.heights[cell] + _GAP
        for cell, offset, top in zip(column, offsets, _pool(wanted, weights), strict=True):
            tops[cell] = top + offset


def _pool(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the rising sequence nearest to `wanted`, by weighted squares: neighbours in the wrong order
    share their mean."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of values
    for value, weight in zip(wanted, weights, strict=True):
        many = 1
        while blocks and blocks[-1][0] > value:
            mean, before, count = blocks.pop()
            value = (mean * before + value * weight) / (before + weight)
            weight += before
            many += count
        blocks.append((value, weight, many))
    return [mean for mean, _, many in blocks for _ in range(many)]


def order_states(machine: Machine) -> list[str]:
    """Return the states in the order of a walk from the start, the more probable first; then the unreached
    ones."""
    found = dict.fromkeys([machine.initial] if machine.initial in machine.states else [])
    waiting = list(found)
    for name in waiting:  # the list grows
        state = machine.states[name]
        targets = sorted(state.transitions, key=lambda one: -state.find_weight(one))
        for one in (*targets, *(state.lock.otherwise if state.lock else ())):
            if one in machine.states and one not in found:
                found[one] = None
                waiting.append(one)
    return [*found, *(name for name in machine.states if name not in found)]


def divide_into_bands(machine: Machine, order: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the title and the states of each band, one per sub-task. A state without a gate is in the first
    band in which it is reached."""
    if not machine.subtasks:
        return [("", list(order))]
    rank = {name: number for number, name in enumerate(machine.subtasks)}
    first: dict[str, int] = {}
    for name, subtask in explore(machine).places:
        number = rank.get(subtask or "", len(rank))
        advanced = machine.states[name].advances is not None
        before = machine.states[name].subtask
        first[name] = min(
            first.get(name, len(rank)), max(0, number - 1) if advanced and before is None else number
        )
    bands: list[tuple[str, list[str]]] = [(name.replace("_", " "), []) for name in machine.subtasks]
    bands.append(("never reached", []))
    for name in order:
        gate = machine.states[name].subtask
        bands[rank[gate] if gate in rank else first.get(name, len(rank))][1].append(name)
    return [band for band in bands if band[1]]
