"""The cells of a space that its conditions and exclusions allow: their number, and the cell of each rank.

The product is never built. Dimensions without linking conditions multiply. In linked dimensions, values that
all conditions treat alike form a class. Classes are counted by variable elimination along a tree of the
dimensions, and descending that tree finds the cell of a rank (bucket elimination: Dechter, "Bucket
elimination: a unifying framework for reasoning", Artificial Intelligence 113, 1999). If counting needs more
than MAX_STATES states, nothing is counted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from edgen.space.model import Combination, Dimension, Entry, Space

MAX_STATES = 2**20  # states; the rules are checked for each

Allows = Callable[[Sequence[int]], bool]  # takes the chosen class of each dimension


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on a choice. `scope`: the places of the dimensions that it links."""

    scope: frozenset[int]
    allows: Allows


@dataclass(slots=True)
class _Node:
    """A dimension in the tree. `separator`: the dimensions above on which the part below depends."""

    dimension: int
    separator: tuple[int, ...]
    rules: list[Rule]
    below: list[_Node] = field(default_factory=list)
    counted: dict[tuple[int, ...], list[int]] = field(default_factory=dict)


class AllowedCells:
    """The allowed cells of a space. `count` is their number; None if they are too many to count, and then no
    cell has a rank.

    `classes`: for each dimension, groups of entries (by place) that all conditions treat alike. `unfit`:
    entries of a further dimension that must not fit any cell.
    """

    def __init__(self, space: Space, unfit: Sequence[Entry] = ()) -> None:
        self.dimensions = space.dimensions
        self.places = {dimension.name: place for place, dimension in enumerate(self.dimensions)}
        self._named = _find_named_values(space, unfit)
        self.classes = [self._list_classes(dimension) for dimension in self.dimensions]
        self._samples = [
            [dimension.entries[places[0]] for places in classes]
            for dimension, classes in zip(self.dimensions, self.classes, strict=True)
        ]
        rules = [
            *self._list_condition_rules(),
            *map(self._make_exclusion_rule, [*space.exclude, *[one.when for one in unfit]]),
        ]
        linked = frozenset().union(*[rule.scope for rule in rules])
        self._free = [place for place in range(len(self.dimensions)) if place not in linked]
        self._sizes = [(place, len(self.dimensions[place].entries)) for place in self._free]
        self._class_of = {
            one: {place: number for number, places in enumerate(self.classes[one]) for place in places}
            for one in sorted(linked)
        }
        self._possible: dict[frozenset[tuple[int, int]], bool] = {}
        self._chosen = [0] * len(self.dimensions)
        self._roots = self._build_tree(rules, set(linked))
        self.count: int | None = None
        if self._roots is not None:
            self.count = math.prod(size for _, size in self._sizes) * math.prod(
                self._count_cells(root)[-1] for root in self._roots
            )

    def positions(self, rank: int) -> list[int]:
        """Return the place of each dimension's entry in the cell of this rank, counted from 0."""
        positions = [0] * len(self.dimensions)
        for place, size in self._sizes:
            rank, positions[place] = divmod(rank, size)
        for root in self._roots or ():
            rank, within = divmod(rank, self._count_cells(root)[-1])
            self._descend(root, within, positions)
        return positions

    @property
    def linked(self) -> bool:
        """True if conditions or exclusions rule out any cell."""
        return bool(self._roots) or self._roots is None

    def is_possible(self, places: Mapping[int, int]) -> bool:
        """Return whether an allowed cell has these entries. `places`: the place of an entry, by dimension."""
        fixed = {one: self._class_of[one][place] for one, place in places.items() if one in self._class_of}
        key = frozenset(fixed.items())
        if key not in self._possible:
            if len(self._possible) >= MAX_STATES:
                self._possible.clear()
            self._possible[key] = all(self._reaches(root, fixed, {}) for root in self._roots or ())
        return self._possible[key]

    def example(self, places: Mapping[int, int]) -> list[int]:
        """Return the first allowed cell with these entries, as the place of each dimension's entry. Call it
        only if `is_possible(places)`."""
        found = [places.get(one, 0) for one in range(len(self.dimensions))]
        fixed = dict(places)
        for one in self._class_of:
            if one not in fixed:
                firsts = (classes[0] for classes in self.classes[one])
                found[one] = fixed[one] = next(at for at in firsts if self.is_possible({**fixed, one: at}))
        return found

    def _reaches(self, node: _Node, fixed: Mapping[int, int], known: dict[tuple[int, ...], bool]) -> bool:
        key = node.dimension, *[self._chosen[place] for place in node.separator]
        if key not in known:
            row = self._count_cells(node)
            wanted = fixed.get(node.dimension)
            known[key] = False
            for number in range(len(row)) if wanted is None else (wanted,):
                if row[number] > (row[number - 1] if number else 0):
                    self._chosen[node.dimension] = number
                    if all(self._reaches(below, fixed, known) for below in node.below):
                        known[key] = True
                        break
        return known[key]

    def counts_by_entry(self) -> list[list[int]]:
        """Return the number of allowed cells with each entry, by dimension."""
        assert self.count is not None
        counts = [[self.count // len(one.entries)] * len(one.entries) for one in self.dimensions]
        for place in self._class_of:
            for number, places in enumerate(self.classes[place]):
                count = math.prod(size for _, size in self._sizes)
                for root in self._roots or ():
                    count *= self._count_with(root, (place, number), {})
                for at in places:
                    counts[place][at] = count // len(places)
        return counts

    def _count_with(self, node: _Node, fixed: tuple[int, int], known: dict[tuple[int, ...], int]) -> int:
        key = node.dimension, *[self._chosen[place] for place in node.separator]
        if key not in known:
            row = self._count_cells(node)
            total = 0
            for number, places in enumerate(self.classes[node.dimension]):
                wanted = node.dimension != fixed[0] or number == fixed[1]
                if wanted and row[number] > (row[number - 1] if number else 0):
                    self._chosen[node.dimension] = number
                    total += len(places) * math.prod(
                        self._count_with(one, fixed, known) for one in node.below
                    )
            known[key] = total
        return known[key]

    def _list_classes(self, dimension: Dimension) -> list[list[int]]:
        """Group the places of the entries that all conditions treat alike."""
        named = self._named.get(dimension.name, [])
        found: dict[object, list[int]] = {}
        for place, entry in enumerate(dimension.entries):
            when = tuple(sorted((name, tuple(sorted(values))) for name, values in entry.when.items()))
            alike = when, tuple([entry.value in values for values in named])
            found.setdefault(alike, []).append(place)
        return list(found.values())

    def _list_condition_rules(self) -> Iterable[Rule]:
        """Yield a rule for each pair of dimensions of which one has conditions on the other."""
        for place, samples in enumerate(self._samples):
            for name in dict.fromkeys(name for sample in samples for name in sample.when):
                other = self.places[name]
                anything = frozenset(range(len(self.classes[other])))
                fits = [
                    self._find_classes(name, sample.when[name]) if name in sample.when else anything
                    for sample in samples
                ]
                yield Rule(
                    frozenset({place, other}),
                    lambda chosen, place=place, other=other, fits=fits: chosen[other] in fits[chosen[place]],  # type: ignore[misc]
                )

    def _make_exclusion_rule(self, exclude: Combination) -> Rule:
        hits = [(self.places[name], self._find_classes(name, values)) for name, values in exclude.items()]
        return Rule(
            frozenset(place for place, _ in hits),
            lambda chosen: not all(chosen[place] in numbers for place, numbers in hits),
        )

    def _find_classes(self, name: str, values: Iterable[str]) -> frozenset[int]:
        """Return the classes of a dimension whose entries have one of these values."""
        wanted, samples = frozenset(values), self._samples[self.places[name]]
        return frozenset(number for number, sample in enumerate(samples) if sample.value in wanted)

    def _build_tree(self, rules: Sequence[Rule], waiting: set[int]) -> list[_Node] | None:
        """Return the roots of the tree in which dimensions are chosen; None if it has too many states.

        The dimension with the fewest dependencies is eliminated first and is lowest.
        """
        scopes = [(rule.scope, rule) for rule in rules]
        pending: list[_Node] = []  # nodes without a parent so far
        sizes = [len(classes) for classes in self.classes]
        work = 0
        while waiting:
            linked = {scope for scope, _ in scopes}
            around = {place: _find_linked_places(place, linked, pending) for place in waiting}
            place = min(waiting, key=lambda one: (math.prod(sizes[p] for p in around[one]), one))
            own = [rule for scope, rule in scopes if place in scope]
            work += math.prod(sizes[p] for p in around[place]) * max(1, len(own))
            if work > MAX_STATES:
                return None
            waiting.remove(place)
            node = _Node(place, tuple(sorted(around[place] - {place})), own)
            scopes = [(scope, rule) for scope, rule in scopes if place not in scope]
            node.below = [one for one in pending if place in one.separator]
            pending = [one for one in pending if place not in one.separator] + [node]
        return pending

    def _count_cells(self, node: _Node) -> list[int]:
        """Return running sums, by class of the node's dimension, of the number of cells in this part of the
        tree, given the choices above."""
        chosen = self._chosen
        key = tuple([chosen[place] for place in node.separator])
        row = node.counted.get(key)
        if row is None:
            counts = []
            for number, places in enumerate(self.classes[node.dimension]):
                chosen[node.dimension] = number
                count = len(places)
                if not all(rule.allows(chosen) for rule in node.rules):
                    count = 0
                for below in node.below if count else ():
                    count *= self._count_cells(below)[-1]
                counts.append(count)
            row = node.counted[key] = list(accumulate(counts))
        return row

    def _descend(self, node: _Node, rank: int, positions: list[int]) -> None:
        row = self._count_cells(node)
        number = bisect_right(row, rank)
        rank -= row[number - 1] if number else 0
        self._chosen[node.dimension] = number
        places = self.classes[node.dimension][number]
        rank, within = divmod(rank, len(places))
        positions[node.dimension] = places[within]
        for below in node.below:
            rank, inner = divmod(rank, self._count_cells(below)[-1])
            self._descend(below, inner, positions)


def _find_linked_places(place: int, scopes: Iterable[frozenset[int]], pending: Sequence[_Node]) -> set[int]:
    """Return the dimensions on which a choice in dimension `place` depends, including that dimension."""
    separators = [node.separator for node in pending if place in node.separator]
    return {place}.union(*[scope for scope in scopes if place in scope], *separators)


def _find_named_values(space: Space, unfit: Sequence[Entry]) -> dict[str, list[frozenset[str]]]:
    """Return the sets of values that conditions and exclusions name, by dimension."""
    named: dict[str, dict[frozenset[str], None]] = {}
    entries = [*unfit, *[entry for dimension in space.dimensions for entry in dimension.entries]]
    for combination in (*[entry.when for entry in entries if entry.when], *space.exclude):
        for name, values in combination.items():
            named.setdefault(name, {})[frozenset(values)] = None
    return {name: list(sets) for name, sets in named.items()}
