"""States of a machine that guided conversations visit, transitions that they take, and states never reached.

Memory: a number for each taken transition, at most MOST.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from edgen.domains.guided.events import GuidedEvents
from edgen.domains.guided.machines.model import Machine
from edgen.plugin import Measure, OwnCount, Sample, Words
from edgen.plugin.measures import Aggregate, ArmResult, Drawing, Shared, TablePanel, label_with_arm

MOST = 100_000  # transitions that are counted
DRAWN = 150  # states of a machine that the report draws


class States(msgspec.Struct, frozen=True, kw_only=True):
    """Visits of a machine's states and transitions."""

    visited: dict[str, int]  # visits of each state, the most frequent first
    taken: tuple[tuple[str, str, int], ...]
    """How often each transition (from, to) was taken, the most frequent first."""
    states: int | None = None  # the machine's states that can be said; None without the machine
    never: tuple[str, ...] = ()  # of these, the ones never visited
    transitions: int | None = None  # the machine's transitions to states that can be said; None if unknown
    covered: int = 0  # of these, the ones taken
    returned: int = 0  # choices that went back to a transition of an earlier state

    @property
    def choices(self) -> int:
        """The number of visits to states."""
        return sum(self.visited.values())

    @property
    def seen(self) -> int:
        """The number of visited states; with the machine: only of its own."""
        return len(self.visited) if self.states is None else self.states - len(self.never)

    @property
    def used(self) -> int:
        """The number of taken transitions; with the machine: only of its own."""
        return len(self.taken) if self.transitions is None else self.covered


def _draw_machines(found: Sequence[ArmResult[States]]) -> Iterator[Drawing]:
    """Yield each arm's machine, with the taken transitions; nothing for a large machine."""
    from edgen.domains.guided.machines.draw import draw_machine

    for one in found:
        if one.guide is not None and len(one.guide.states) <= DRAWN:
            counts = {(before, to): count for before, to, count in one.value.taken}
            yield Drawing(
                name=f"machine-{one.name}",
                title=label_with_arm("The machine and the transitions taken", one.arm),
                svg=draw_machine(one.guide, counts),
                caption="Look for transitions that were never taken; the legend shows how these are drawn. "
                "Scroll to see the whole machine.",
            )


class StatesMeasure(OwnCount, Measure[States]):
    name = "states"
    definition = (
        "States and transitions of the machine that guided conversations reached, of those that the "
        "machine has (without fixed replies, and states without an utterance). Gone back: a choice of an "
        "earlier state's transition, which is offered if the current state leads to nothing that may be "
        "said. edgen's own; coverage of states and transitions as in the testing of software by state "
        "machines (Offutt et al. 2003, STVR 13)."
    )
    order = 19
    section = "task"
    nothing = "No conversation was guided."
    aggregates = (
        Aggregate("visited", required=True),
        Aggregate("seen", label="visited", says="{it:of states}"),
        Aggregate("used", label="taken", says="{it:of transitions}"),
        Aggregate("never", label="never visited", says="{it:12}", if_any=True),
        Aggregate("returned", label="gone back", says="{it:choice}", if_any=True),
        Aggregate("taken"),
    )
    panels = (
        _draw_machines,
        TablePanel(
            "Transitions, by how often they were taken", "taken", ("from", "to", "taken"),
            ("{it[0]}", "{it[1]}", "{it[2]:,}"),
        ),
        TablePanel("States never visited", "never", ("state",), ("{it}",)),
    )  # fmt: skip

    def start(self, shared: Shared) -> StatesCount:
        return StatesCount(shared.data.guide)


class StatesCount:
    def __init__(self, machine: Machine | None) -> None:
        self._machine = machine
        self._taken: Counter[tuple[str, str]] = Counter()

    def see(self, sample: Sample, words: Words) -> None:
        for move in GuidedEvents(sample.events, len(sample.turns)).transitions:
            if move in self._taken or len(self._taken) < MOST:
                self._taken[move] += 1

    def result(self) -> States:
        visited: Counter[str] = Counter()
        for (_, to), count in self._taken.items():
            visited[to] += count
        found = States(
            visited=dict(sorted(visited.items(), key=lambda one: (-one[1], one[0]))),
            taken=tuple(
                (*move, count)
                for move, count in sorted(self._taken.items(), key=lambda one: (-one[1], one[0]))
            ),
        )
        if self._machine is None:
            return found
        states = self._machine.states
        said = {name for name, state in states.items() if state.formulations}
        listed = {(name, to) for name, state in states.items() for to in state.leads_to if to in said}
        return msgspec.structs.replace(
            found,
            states=len(said),
            never=tuple(sorted(said - visited.keys())),
            transitions=len(listed),
            covered=len(listed & self._taken.keys()),
            returned=sum(count for move, count in self._taken.items() if move not in listed),
        )


MEASURE = StatesMeasure()
