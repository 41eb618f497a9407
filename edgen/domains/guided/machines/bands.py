"""The states of a machine in the order of its course, and the bands of its picture: one for each sub-task."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.domains.guided.machines.model import Machine
from edgen.domains.guided.machines.reach import explore


def order_states(machine: Machine) -> list[str]:
    """Return the states as a walk from the start meets them, the more probable first; then the others."""
    found = dict.fromkeys([machine.initial] if machine.initial in machine.states else [])
    waiting = list(found)
    for name in waiting:  # it grows
        state = machine.states[name]
        targets = sorted(state.transitions, key=lambda one: -state.weight(one))
        for one in (*targets, *(state.lock.otherwise if state.lock else ())):
            if one in machine.states and one not in found:
                found[one] = None
                waiting.append(one)
    return [*found, *(name for name in machine.states if name not in found)]


def divide_into_bands(machine: Machine, order: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the title and the states of each band: a band a sub-task. A state without a gate is in the first
    in which it is reached."""
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
