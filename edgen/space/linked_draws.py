"""The design `even` for dimensions that conditions or exclusions link.

They are drawn in sequence, with separate passes for every combination of previously drawn classes. A class
holds the values that all conditions treat alike. So the values that are possible with a combination are
equally frequent with it.

Exclusions between linked dimensions would make some values rarer. Then the combinations get weights that
bring every value close to its share (iterative proportional fitting: Deming and Stephan, Annals of
Mathematical Statistics 11, 1940). No allowed combination gets less than a quarter of its share without these
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from edgen.core.errors import SpaceError
from edgen.space.cells import AllowedCells
from edgen.space.conditions import list_parents, order_by_dependency
from edgen.space.model import Space

_MOST_COMBINATIONS = 20_000  # combinations of classes that are fitted
_FITTING_STEPS = 300
_CLOSE = 1e-9
_LEAST = 0.25  # minimum share of a combination, as a part of its share before fitting
_MOST_CONTEXTS = 4_096  # contexts whose passes are kept

_Table = dict[tuple[int, ...], float]  # the share of each combination of classes of linked dimensions


class EntryDraws(Protocol):
    """The draws of a dimension's entries."""

    def draw(self, index: int) -> tuple[int, int]:
        """Return the entry of draw `index`, from 0, and the number of earlier draws of its group."""


MakeDraws = Callable[[Sequence[float], Sequence[int] | None, str], EntryDraws]
"""A function for the draws of entries, given the weight of each, the group of each (None: no counting), and a
name that determines the order."""


def group_linked_places(space: Space) -> list[list[int]]:
    """Group the places of the dimensions that conditions or exclusions link, in the order of drawing."""
    order = order_by_dependency(space)
    group = {place: {place} for place in order}
    scopes = [*_list_scopes(space)]
    for scope in scopes:
        joined = set().union(*[group[place] for place in scope])
        group.update(dict.fromkeys(joined, joined))
    ruled = frozenset().union(*scopes)
    chains = {
        id(group[place]): [one for one in order if one in group[place]] for place in order if place in ruled
    }
    return list(chains.values())


def _list_scopes(space: Space) -> Iterator[frozenset[int]]:
    """Yield the places of the dimensions in each condition and exclusion."""
    places = {name: place for place, name in enumerate(space.names)}
    for place, dimension in enumerate(space.dimensions):
        for name in list_parents(dimension):
            yield frozenset({place, places[name]})
    for combination in space.exclude:
        yield frozenset(places[name] for name in combination)


class LinkedDraws:
    """The draws of linked dimensions, one after the other. `places` are the dimensions; `cells` must be
    countable."""

    def __init__(self, space: Space, cells: AllowedCells, places: list[int], make_draws: MakeDraws) -> None:
        self._cells = cells
        self.places = places
        self._make_draws = make_draws
        self._names = [space.names[place] for place in places]
        self._weights = [[entry.weight for entry in space.dimensions[place].entries] for place in places]
        self._class_of = [
            {at: number for number, members in enumerate(cells.classes[place]) for at in members}
            for place in places
        ]
        scopes = [scope for scope in _list_scopes(space) if scope <= {*places}]
        self._splits = [
            any(place in scope and scope & {*places[number + 1 :]} for scope in scopes)
            for number, place in enumerate(places)
        ]
        self._passes: dict[tuple[int | None, ...], EntryDraws] = {}
        self._table: _Table | None = None
        if any({*self._names} & combination.keys() for combination in space.exclude):
            fitted = [
                number for number, place in enumerate(places) if not list_parents(space.dimensions[place])
            ]
            self._table = _fit(self._iterate_combinations(), self._list_class_weights(), fitted)

    def draw(self, index: int, found: list[int]) -> None:
        """Write the place of each dimension's entry in scenario `index` into `found`."""
        # the class of each earlier dimension; None if no later dimension depends on it
        context: tuple[int | None, ...] = ()
        for number, place in enumerate(self.places):
            passes = self._passes.get(context) or self._make_passes(context, found)
            found[place], before = passes.draw(index)
            if self._splits[number]:
                context, index = (*context, self._class_of[number][found[place]]), before
            else:
                context = (*context, None)

    def _make_passes(self, context: tuple[int | None, ...], found: Sequence[int]) -> EntryDraws:
        """Return the passes of the next dimension after the drawn classes. Raises SpaceError if the
        conditions leave no value."""
        number = len(context)
        place, weights = self.places[number], self._weights[number]
        classes = self._cells.classes[place]
        fixed = {one: found[one] for one in self.places[:number]}
        shares = self._find_shares(context)
        allowed = [0.0] * len(weights)
        for one, members in enumerate(classes):
            total = sum(weights[at] for at in members)
            if total and self._cells.is_possible({**fixed, place: members[0]}):
                for at in members:
                    allowed[at] = (
                        weights[at] if shares is None else shares.get(one, 0.0) * weights[at] / total
                    )
        if not any(allowed):
            raise SpaceError("when", "the conditions leave no value that could be drawn.")
        if len(self._passes) >= _MOST_CONTEXTS:
            self._passes.clear()
        groups = [self._class_of[number][at] for at in range(len(weights))] if self._splits[number] else None
        name = f"{self._names[number]}/{context}"
        made = self._passes[context] = self._make_draws(allowed, groups, name)
        return made

    def _find_shares(self, context: tuple[int | None, ...]) -> dict[int, float] | None:
        """Return the fitted share of each class of the next dimension; None without fitting."""
        if self._table is None:
            return None
        shares: dict[int, float] = {}
        for classes, share in self._table.items():
            if all(known in (None, one) for known, one in zip(context, classes, strict=False)):
                shares[classes[len(context)]] = shares.get(classes[len(context)], 0.0) + share
        return shares

    def _list_class_weights(self) -> list[list[float]]:
        """Return the weight of each class of each dimension."""
        return [
            [sum(weights[at] for at in members) for members in self._cells.classes[place]]
            for place, weights in zip(self.places, self._weights, strict=True)
        ]

    def _iterate_combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield every allowed combination of classes."""

        def grow(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if len(chosen) == len(self.places):
                yield chosen
                return
            classes = [self._cells.classes[place] for place in self.places]
            for one in range(len(classes[len(chosen)])):
                grown = (*chosen, one)
                places = {
                    place: classes[number][at]
                    for (number, place), at in zip(enumerate(self.places), grown, strict=False)
                }
                if self._cells.is_possible({place: members[0] for place, members in places.items()}):
                    yield from grow(grown)

        return grow(())


def _fit(
    combinations: Iterator[tuple[int, ...]], weights: Sequence[Sequence[float]], fitted: Sequence[int]
) -> _Table | None:
    """Return shares of the combinations that bring the classes of the fitted dimensions close to their
    weights; None for too many combinations."""
    allowed = list(islice(combinations, _MOST_COMBINATIONS + 1))
    if len(allowed) > _MOST_COMBINATIONS:
        return None
    plain = _compute_plain_shares(allowed, weights)
    table = dict(plain)
    for _ in range(_FITTING_STEPS):
        furthest = 0.0
        for dimension in fitted:
            sums: dict[int, float] = {}
            for classes, share in table.items():
                sums[classes[dimension]] = sums.get(classes[dimension], 0.0) + share
            total = sum(weights[dimension][one] for one in sums)
            ratio = {one: weights[dimension][one] / total / sums[one] for one in sums if sums[one]}
            furthest = max([furthest, *[abs(one - 1) for one in ratio.values()]])
            table = {classes: share * ratio.get(classes[dimension], 0.0) for classes, share in table.items()}
        if furthest < _CLOSE:
            break
    return {classes: max(share, _LEAST * plain[classes]) for classes, share in table.items()}


def _compute_plain_shares(allowed: Sequence[tuple[int, ...]], weights: Sequence[Sequence[float]]) -> _Table:
    """Return the share of each combination if each class is drawn by weight among those that are possible
    with the previous ones."""
    possible: dict[tuple[int, ...], dict[int, float]] = {}
    for classes in allowed:
        for number, one in enumerate(classes):
            possible.setdefault(classes[:number], {})[one] = weights[number][one]
    shares = {}
    for classes in allowed:
        share = 1.0
        for number, one in enumerate(classes):
            total = sum(possible[classes[:number]].values())
            share *= weights[number][one] / total if total else 0.0
        shares[classes] = share
    return shares
