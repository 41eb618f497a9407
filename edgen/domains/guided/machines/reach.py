"""Reachability in a machine: states, their sub-tasks and transitions, and places from which an end can be
reached.

Conditions on the world count as holding if each alone could hold, after any effects of reachable states. So
the result may contain too many states, but a state is reported as unreachable only if it is.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from edgen.domains.guided.machines.model import Condition, Machine, State, Value, Variable

Place = tuple[str, str | None]  # a state, and the current sub-task in it


@dataclass(frozen=True)
class ValueRange:
    """The possible values of a variable. For a number: all between two bounds. Else: `values`; None: any."""

    low: float = -math.inf
    high: float = math.inf
    values: frozenset[Value] | None = None

    def can_hold(self, condition: Condition, variable: Variable) -> bool:
        """Return whether a condition can hold for one of the values."""
        if variable.kind == "number":
            bounds = Condition(at_least=condition.at_least, below=condition.below)
            if condition.one_of:
                return any(
                    isinstance(one, float) and self.low <= one <= self.high and bounds.holds(one)
                    for one in condition.one_of
                )
            low, high = condition.at_least, condition.below
            return (low is None or low <= self.high) and (high is None or self.low < high)
        if condition.at_least is not None or condition.below is not None:
            return False
        return self.values is None or any(condition.holds(one) for one in self.values)


class MachineReach:
    """The reachable part of a machine.

    `places`: states with sub-tasks, numbered in the order of the search. `used`: transitions that can be
    taken, with those of a lock's `otherwise`. `stuck`: places in which nothing is ever offered. `endless`:
    places from which no end can be reached.
    """

    def __init__(self, machine: Machine, ranges: dict[str, ValueRange]) -> None:
        self.machine, self.ranges = machine, ranges
        self.places: dict[Place, int] = {}
        self.used: set[tuple[str, str]] = set()
        self.stuck: set[Place] = set()
        self.endless: set[Place] = set()
        self._after: list[array[int]] = []  # following places of each place, by number
        # States that can ever be said, with their gates.
        self._gates = {
            name: state.subtask
            for name, state in machine.states.items()
            if state.formulations and self.can_hold(state.when)
        }
        self._targets = {
            name: [one for one in state.leads_to if one in self._gates]
            for name, state in machine.states.items()
        }
        self._explore()
        self._find_endless()

    @cached_property
    def states(self) -> set[str]:
        return {state for state, _ in self.places}

    @cached_property
    def subtasks_of(self) -> dict[str, list[str]]:
        """The possible sub-tasks in each state, sorted."""
        found: dict[str, list[str]] = defaultdict(list)
        for state, subtask in self.places:
            found[state] += [] if subtask is None else [subtask]
        return {state: sorted(subtasks) for state, subtasks in found.items()}

    @cached_property
    def subtasks(self) -> set[str | None]:
        return {subtask for _, subtask in self.places}

    def can_hold(self, when: Mapping[str, Condition]) -> bool:
        """Return whether each condition alone can hold; a condition on an unknown variable cannot."""
        world = self.machine.world
        return all(
            name in world and self.ranges[name].can_hold(condition, world[name])
            for name, condition in when.items()
        )

    def _explore(self) -> None:
        """Visit every reachable place."""
        machine = self.machine
        if machine.initial not in machine.states:
            return
        first = (machine.initial, machine.subtasks[0] if machine.subtasks else None)
        self._add_place(first)
        waiting: list[Place] = [first]
        while waiting:
            while waiting:
                waiting += self._list_next_places(waiting.pop())
            waiting = list(self._leave_stuck_places())

    def _add_place(self, place: Place) -> None:
        self.places[place] = len(self._after)
        self._after.append(array("i"))

    def _list_next_places(self, place: Place) -> list[Place]:
        """Return the new places to which a place leads."""
        if self.machine.states[place[0]].is_final:
            return []
        open_ = [name for name in self._targets[place[0]] if self._gates[name] in (None, place[1])]
        if not open_:
            self.stuck.add(place)
        self.used.update((place[0], name) for name in open_)
        return self._add_links(place, open_)

    def _add_links(self, place: Place, names: Sequence[str]) -> list[Place]:
        """Link a place to these states. Return the new places."""
        new: list[Place] = []
        own = self._after[self.places[place]]
        for name in names:
            after = (name, self.machine.states[name].advances or place[1])
            if after not in self.places:
                self._add_place(after)
                new.append(after)
            own.append(self.places[after])
        return new

    def _leave_stuck_places(self) -> Iterator[Place]:
        """Yield the new places that stuck places reach through transitions of earlier states."""
        if not self.stuck:
            return
        earlier = sorted({name for state, _ in self.places for name in self._targets[state]})
        for place in sorted(self.stuck, key=repr):
            del self._after[self.places[place]][:]
            yield from self._add_links(
                place, [name for name in earlier if self._gates[name] in (None, place[1])]
            )

    def _find_endless(self) -> None:
        """Search backwards from all ends; places that are not found are endless."""
        if any(self.can_hold(end.when) for end in self.machine.ends):
            return
        before = [array("i") for _ in self._after]
        for number, after in enumerate(self._after):
            for one in after:
                before[one].append(number)
        states = self.machine.states
        waiting = [number for (name, _), number in self.places.items() if self._can_end(states[name])]
        met = set(waiting)
        while waiting:
            new = {one for one in before[waiting.pop()] if one not in met}
            met |= new
            waiting += new
        self.endless = {place for place, number in self.places.items() if number not in met}

    def _can_end(self, state: State) -> bool:
        return state.end is not None and self.can_hold(state.end.when)


def explore(machine: Machine, drawn: Collection[str] = ()) -> MachineReach:
    """Return the reachable part of a machine. `drawn`: variables with an initial value that the space
    replaces.

    Effects of unreachable states change nothing, so the search is repeated until the result is stable.
    """
    ranges = _compute_ranges(machine, (), drawn)
    while True:
        reach = MachineReach(machine, ranges)
        wider = _compute_ranges(machine, reach.states, drawn)
        if wider == ranges:
            return reach
        ranges = wider


def _compute_ranges(
    machine: Machine, states: Collection[str], drawn: Collection[str]
) -> dict[str, ValueRange]:
    """Return the possible values of each variable, with the effects of these states."""
    new: dict[str, set[Value]] = defaultdict(set)
    signs: dict[str, set[bool]] = defaultdict(set)
    for state in states:
        for effect in machine.states[state].effects:
            for name, value in effect.set.items():
                new[name].add(value)
            for name, number in effect.add.items():
                signs[name].add(number > 0)
    return {
        name: _compute_range(one, new[name], signs[name], name in drawn)
        for name, one in machine.world.items()
    }


def _compute_range(variable: Variable, new: set[Value], signs: set[bool], drawn: bool) -> ValueRange:
    drawn = drawn or variable.initial is None
    if variable.kind != "number":
        if variable.kind == "boolean" and drawn:
            return ValueRange(values=frozenset((True, False)))
        if drawn:
            return ValueRange(values=frozenset(variable.values) if variable.values else None)
        return ValueRange(values=frozenset({*new, *([] if variable.initial is None else [variable.initial])}))
    low = -math.inf if variable.least is None else variable.least
    high = math.inf if variable.most is None else variable.most
    if drawn:
        return ValueRange(low, high)
    numbers = [
        one for one in (*new, variable.initial) if isinstance(one, float) and not isinstance(one, bool)
    ]
    return ValueRange(
        low if False in signs else max(low, min(numbers)), high if True in signs else min(high, max(numbers))
    )
