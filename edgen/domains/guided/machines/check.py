"""Checks of a machine that could be read: each finding is a sentence and its place.

A machine with a `fatal` finding cannot run: names that lead nowhere, missing variables and sub-tasks, slots
without values. With other findings it can run, but probably not as intended.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgen.domains.guided.machines.model import Condition, Effect, Machine, State
from edgen.domains.guided.machines.reach import MachineReach, explore
from edgen.domains.guided.machines.slots import contains_phrase, list_slots
from edgen.domains.guided.machines.world import ValueMismatchError, convert_value
from edgen.plugin.files import suggest_name
from edgen.plugin.texts import join_first

_SHOWN = 5  # names in one sentence
_TOLERANCE = 0.005  # of a sum of probabilities that are written with two or three digits


class MachineFinding(msgspec.Struct, frozen=True):
    """A flaw of a machine. `state` is None if it concerns the whole machine."""

    kind: str
    state: str | None
    message: str
    fatal: bool = False

    def __str__(self) -> str:
        return self.message if self.state is None else f"{self.state}: {self.message}"


def check_machine(machine: Machine, available: Collection[str] | None = None) -> list[MachineFinding]:
    """Return all findings, fatal ones first, in the order of the states. `available`: the space's dimensions
    and fields (`topic.answer`); None: those that the machine says it needs."""
    known = [*machine.world, *machine.needed, *(available or ())]
    found = [*_check_head(machine, available)]
    for state in machine.states.values():
        found += _check_names(machine, state)
        found += _check_probabilities(state)
        found += _check_slots(state, frozenset(known))
        found += _check_conditions(machine, state.name, state.when)
        found += _check_effects(machine, state)
        found += _lock(machine, state)
        found += _check_end(machine, state)
    if machine.initial in machine.states:
        found += _check_reach(machine, explore(machine, machine.needs if available is None else available))
    return sorted(found, key=lambda one: (not one.fatal, one.state is not None))


# ---- the machine


def _check_head(machine: Machine, available: Collection[str] | None) -> Iterator[MachineFinding]:
    if machine.initial not in machine.states:
        message = (
            f"there is no state '{machine.initial}' to begin "
            f"in{suggest_name(machine.initial, machine.states)}"
        )
        yield MachineFinding("no_start", None, message, True)
    for name in () if available is None else machine.needed:
        if available is not None and name not in available:
            yield MachineFinding("space", None, f"the space has no {name}, which the machine needs", True)
    roles = (machine.players.wizard, machine.players.partner)
    for name, variable in machine.world.items():
        for role in variable.sees:
            if role not in roles:
                message = f"{name} is seen by {role}, which is neither {roles[0]} nor {roles[1]}"
                yield MachineFinding("role", None, message, True)
    if roles[0] == roles[1]:
        yield MachineFinding("role", None, f"both roles are called {roles[0]}", True)
    for end in machine.ends:
        yield from _check_conditions(machine, None, end.when)
    if empty := [name for name in machine.fixed if name not in machine.replies]:
        yield MachineFinding("fixed", None, f"fixed replies without a text are never offered: {_list(empty)}")


# ---- each state


def _check_names(machine: Machine, state: State) -> Iterator[MachineFinding]:
    """Yield a finding for each unknown name in a state, and one if the state has no formulation."""
    listed = {
        "leads to": state.transitions,
        "has a lock that leads to": state.lock.otherwise if state.lock else (),
    }
    for said, names in listed.items():
        for name in names:
            if name not in machine.states and name not in machine.fixed:
                message = (
                    f"it {said} '{name}', which does not exist{_suggest_close_name(name, machine.states)}"
                )
                yield MachineFinding("dangling", state.name, message, True)
    for said, subtask in (("is for", state.subtask), ("begins", state.advances)):
        if subtask is not None and subtask not in machine.subtasks:
            near = _suggest_close_name(subtask, machine.subtasks)
            message = f"it {said} the sub-task '{subtask}', which the machine does not have{near}"
            yield MachineFinding("subtask", state.name, message, True)
    if not state.formulations and state.name != machine.initial:
        yield MachineFinding("mute", state.name, "it has no formulation, so it is never offered")


def _suggest_close_name(name: str, known: Collection[str]) -> str:
    near = suggest_name(name, known) if known else ""
    return near if near.startswith(" (did") else ""


def _check_probabilities(state: State) -> Iterator[MachineFinding]:
    for name in state.probabilities:
        if name not in state.transitions:
            yield MachineFinding(
                "probability",
                state.name,
                f"'{name}' has a probability and is not a transition; it counts as 0",
            )
    given = [state.probabilities.get(name, 0.0) for name in state.transitions]
    if len(given) < 2:
        return
    if not any(given):
        message = f"its {len(given)} transitions have no probability, so all are equally probable"
        yield MachineFinding("probability", state.name, message)
        return
    none = [name for name in state.transitions if not state.probabilities.get(name)]
    if none:
        message = (
            f"{_list(none)} {'has' if len(none) == 1 else 'have'} the probability 0: chance never chooses them while "
            "anything else is offered"
        )
        yield MachineFinding("probability", state.name, message)
    if not math.isclose(sum(given), 1, abs_tol=_TOLERANCE):
        message = f"its probabilities sum to {sum(given):.6g}, not to 1; they count in proportion"
        yield MachineFinding("probability", state.name, message)


def _check_slots(state: State, known: Collection[str]) -> Iterator[MachineFinding]:
    texts = [*state.formulations, *((*state.lock.says, *state.lock.lacks) if state.lock else ())]
    named = dict.fromkeys(name for text in texts for name in list_slots(text))
    for name in dict.fromkeys([*named, *state.slots]):
        if name not in known:
            message = (
                f"nothing fills the slot {{{name}}}{_suggest_close_name(name, known)}: make it a variable "
                "of the world, or name it in `needs`"
            )
            yield MachineFinding("slot", state.name, message, True)


def _check_conditions(
    machine: Machine, state: str | None, when: Mapping[str, Condition]
) -> Iterator[MachineFinding]:
    for name, condition in when.items():
        variable = machine.world.get(name)
        if variable is None:
            yield _make_unknown_variable(machine, state, "a condition is on", name)
            continue
        for value in condition.one_of:
            try:
                fits = convert_value(value, variable) == value and isinstance(value, bool) == (
                    variable.kind == "boolean"
                )
                wrong = "" if fits else f"{value!r} is out of its bounds"
            except ValueMismatchError as problem:
                wrong = str(problem)
            if wrong:
                yield MachineFinding("type", state, f"a condition on {name} can never hold: {wrong}", True)
        if variable.kind != "number" and (condition.at_least, condition.below) != (None, None):
            message = f"a condition on {name} has at_least or below, and {name} is a {variable.kind}"
            yield MachineFinding("type", state, message, True)


def _make_unknown_variable(machine: Machine, state: str | None, said: str, name: str) -> MachineFinding:
    near = _suggest_close_name(name, machine.world)
    message = f"{said} '{name}', which is not a variable of the world{near}"
    return MachineFinding("variable", state, message, True)


def _check_effects(machine: Machine, state: State) -> Iterator[MachineFinding]:
    for effect in state.effects:
        yield from _check_conditions(machine, state.name, effect.when)
        yield from _check_effect(machine, state.name, effect)


def _check_effect(machine: Machine, state: str, effect: Effect) -> Iterator[MachineFinding]:
    changed: dict[str, Any] = {**effect.set, **effect.add}
    for name in changed:
        variable = machine.world.get(name)
        if variable is None:
            yield _make_unknown_variable(machine, state, "an effect changes", name)
        elif name in effect.add and variable.kind != "number":
            yield MachineFinding("type", state, f"an effect adds to {name}, which is a {variable.kind}", True)
        elif name in effect.set:
            try:
                if convert_value(effect.set[name], variable) != effect.set[name]:
                    yield MachineFinding("type", state, f"an effect sets {name} out of its bounds", True)
            except ValueMismatchError as problem:
                yield MachineFinding("type", state, f"an effect sets {name}: {problem}", True)


def _lock(machine: Machine, state: State) -> Iterator[MachineFinding]:
    lock = state.lock
    if lock is None:
        return
    if state.is_final:
        yield MachineFinding(
            "lock", state.name, "it waits for an answer and ends the conversation; remove one of the two"
        )
    if lock.any_answer and lock.otherwise:
        yield MachineFinding("lock", state.name, "every answer opens its lock, so `otherwise` is never used")
    if lock.says and all(any(contains_phrase(word, no) for no in lock.lacks) for word in lock.says):
        yield MachineFinding(
            "lock", state.name, "nothing opens its lock: `contains_phrase` and `lacks` exclude each other"
        )
    if not lock.any_answer and not lock.otherwise and machine.time_limit is None:
        message = "it waits for a certain answer for ever: there is no `otherwise` and no time limit"
        yield MachineFinding("lock", state.name, message)


def _check_end(machine: Machine, state: State) -> Iterator[MachineFinding]:
    if state.end is None:
        return
    yield from _check_conditions(machine, state.name, state.end.when)
    if state.transitions and not state.end.when:
        yield MachineFinding(
            "end", state.name, f"it ends the conversation, so it never leads to {_list(state.transitions)}"
        )


# ---- the whole


def _check_reach(machine: Machine, reach: MachineReach) -> Iterator[MachineFinding]:
    reached = reach.states
    for name, state in machine.states.items():
        if name in reached:
            yield from _check_transitions(machine, state, reach)
        elif state.formulations or name == machine.initial:
            yield MachineFinding(
                "unreachable", name, f"it is never reached: {_explain_unreached(machine, state, reach)}"
            )
    for subtask in machine.subtasks[1:]:
        if subtask not in reach.subtasks:
            yield MachineFinding(
                "gate",
                None,
                f"the sub-task '{subtask}' never begins: no state that is reached advances to it",
            )
    stuck: dict[str, list[str]] = {}
    for place in sorted(reach.stuck, key=repr):
        stuck.setdefault(place[0], []).append(place[1] or "")
    for name, subtasks in stuck.items():
        where = f" in the sub-task {_list(subtasks)}" if any(subtasks) else ""
        yield MachineFinding(
            "dead_end",
            name,
            f"nothing is ever offered after it{where}, and it does not end the conversation, "
            "which returns to earlier states",
        )
    yield from _check_endless(machine, reach)


def _check_transitions(machine: Machine, state: State, reach: MachineReach) -> Iterator[MachineFinding]:
    """Yield a finding for each transition of a reached state that can never be taken."""
    if state.is_final:
        return
    for name in state.transitions:
        target = machine.states.get(name)
        if target is None or not target.formulations or (state.name, name) in reach.used:
            continue
        here = reach.subtasks_of[state.name]
        if target.subtask is not None and target.subtask not in here:
            why = (
                f"it is for the sub-task {target.subtask}, and {state.name} is reached in {_list(here)} only"
            )
        else:
            why = "its conditions can never hold"
        yield MachineFinding("gate", state.name, f"'{name}' is never offered after it: {why}")


def _explain_unreached(machine: Machine, state: State, reach: MachineReach) -> str:
    before = [one.name for one in machine.states.values() if state.name in one.leads_to]
    if not before:
        return "no state leads to it"
    if not any(name in reach.states for name in before):
        return (
            f"{_list(before)}, which {'leads' if len(before) == 1 else 'lead'} to it, "
            f"{'is' if len(before) == 1 else 'are'} not reached"
        )
    if state.subtask is not None and state.subtask not in reach.subtasks:
        return f"its sub-task {state.subtask} never begins"
    if not reach.can_hold(state.when):
        return "its conditions can never hold"
    return "where a state leads to it, its gate is closed"


def _check_endless(machine: Machine, reach: MachineReach) -> Iterator[MachineFinding]:
    names = sorted({name for name, _ in reach.endless})
    if not names:
        return
    whole = len({name for name, _ in reach.places}) == len(names) and reach.endless == reach.places.keys()
    where = "it has no end that can be reached" if whole else f"no end can be reached from {_list(names)}"
    if machine.time_limit is None:
        yield MachineFinding(
            "endless", None, f"{where}, and there is no time limit: it would never end", True
        )
    else:
        yield MachineFinding("endless", None, f"{where}: only the time limit ends it")


def _list(names: Iterable[str]) -> str:
    return join_first([*names], _SHOWN)
