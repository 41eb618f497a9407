"""The world of a conversation: its first values, the results of effects, and answers that open a lock."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from edgen.domains.guided.machines.model import Effect, Lock, Machine, Value, Variable, World, holds
from edgen.domains.guided.machines.slots import contains_phrase, fill_phrases


class ValueMismatchError(ValueError):
    """A value that is invalid for its variable; the text is a clause about it."""


_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def make_first_world(machine: Machine, scenario: Mapping[str, Any]) -> dict[str, Value]:
    """Return the world at the start. `scenario`: a scenario's values by name. Raises ValueMismatchError for
    an invalid value of the scenario, and for a variable without a value."""
    world: dict[str, Value] = {}
    for name, variable in machine.world.items():
        drawn = scenario.get(name, variable.initial)
        if drawn is None:
            raise ValueMismatchError(
                f"{name} has no initial value, and the space has no dimension of this name"
            )
        try:
            world[name] = convert_value(drawn, variable)
        except ValueMismatchError as problem:
            raise ValueMismatchError(f"{name}: {problem}") from None
    return world


def convert_value(value: Any, variable: Variable) -> Value:
    """Return a value in the variable's type. A space's text is converted to a number or a truth value if the
    variable needs one. Raises ValueMismatchError."""
    if variable.kind == "boolean":
        truth = _TRUTH.get(value.strip().lower()) if isinstance(value, str) else value
        if not isinstance(truth, bool):
            raise ValueMismatchError(f"{value!r} is neither true nor false")
        return truth
    if variable.kind == "number":
        if isinstance(value, bool):
            raise ValueMismatchError(f"{value!r} is not a number")
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueMismatchError(f"{value!r} is not a number") from None
        if not math.isfinite(number):
            raise ValueMismatchError(f"{value!r} is not a finite number")
        return clamp(number, variable)
    if not isinstance(value, str):
        raise ValueMismatchError(f"{value!r} is not text; put it in quotes")
    if variable.kind == "choice" and value not in variable.values:
        raise ValueMismatchError(f"{value!r} is not one of {', '.join(variable.values)}")
    return value


def clamp(number: float, variable: Variable) -> float:
    """Return the number, or the bound that it passed."""
    if variable.least is not None:
        number = max(number, variable.least)
    return float(number if variable.most is None else min(number, variable.most))


def list_changes(effect: Effect, machine: Machine, world: World) -> dict[str, Value]:
    """Return the changes of an effect that is due, by variable: only values that differ from the world's.
    Empty if its `when` does not hold. The world is not modified: `world | changes` is the new one."""
    if not holds(effect.when, world):
        return {}
    new: dict[str, Value] = {
        name: convert_value(value, machine.world[name]) for name, value in effect.set.items()
    }
    for name, number in effect.add.items():
        before = new.get(name, world[name])
        assert isinstance(before, float)
        new[name] = clamp(before + number, machine.world[name])
    return {name: value for name, value in new.items() if value != world[name]}


def opens_lock(lock: Lock, text: str, labels: Collection[str], values: Mapping[str, Any]) -> bool:
    """Return whether an answer of the partner opens a lock. `values` fill the slots of its words
    (`slots.fill`)."""
    wanted = fill_phrases(lock.says, values)
    if lock.says and not any(contains_phrase(text, phrase) for phrase in wanted):
        return False
    if any(contains_phrase(text, phrase) for phrase in fill_phrases(lock.lacks, values)):
        return False
    return lock.label is None or lock.label in labels


def select_visible_variables(machine: Machine, role: str, world: World) -> dict[str, Value]:
    """Return the variables of the world that a role may know, in the machine's order."""
    return {name: world[name] for name, variable in machine.world.items() if role in variable.sees}
