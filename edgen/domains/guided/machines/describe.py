"""Short descriptions of locks, effects, conditions and ends, each with a colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgen.domains.guided.machines.model import Condition, Effect, Lock, State
from edgen.domains.guided.machines.slots import as_text

LOCK, EFFECT, WHEN, GOOD, BAD = "#b26a00", "#6a4fb3", "#24689b", "#1e7b4a", "#b3302f"


def list_remarks(state: State) -> Iterator[tuple[str, str]]:
    """Yield remarks on a state besides its words and transitions: (colour, text)."""
    if state.when:
        yield WHEN, f"if {_describe_conditions(state.when)}"
    if state.lock is not None:
        yield LOCK, _lock(state.lock)
    for effect in state.effects:
        yield EFFECT, _describe_effect(effect)
    if state.advances is not None:
        yield EFFECT, f"begins {state.advances}"
    if state.end is not None:
        when = f" if {_describe_conditions(state.end.when)}" if state.end.when else ""
        yield (BAD if state.end.success is False else GOOD), f"ends: {state.end.reason}{when}"


def _lock(lock: Lock) -> str:
    said = [f"“{' / '.join(lock.says)}”"] if lock.says else []
    said += [f"an answer without “{' / '.join(lock.lacks)}”"] if lock.lacks else []
    said += [f"label {lock.label}"] if lock.label else []
    return f"waits for {' and '.join(said) or 'any answer'}"


def _describe_conditions(when: Mapping[str, Condition]) -> str:
    return " and ".join(f"{name} {_describe_condition(one)}" for name, one in when.items())


def _describe_condition(one: Condition) -> str:
    said = [f"= {' / '.join(map(as_text, one.one_of))}"] if one.one_of else []
    said += [] if one.at_least is None else [f"≥ {as_text(one.at_least)}"]
    said += [] if one.below is None else [f"< {as_text(one.below)}"]
    return " and ".join(said)


def _describe_effect(effect: Effect) -> str:
    done = [
        *(f"{name} = {as_text(value)}" for name, value in effect.set.items()),
        *(f"{name} {float(number):+g}" for name, number in effect.add.items()),
    ]
    span = f"{effect.after_seconds:g} s" if effect.after_seconds else f"{effect.after_turns} turns"
    late = effect.after_seconds or effect.after_turns
    when = f" if {_describe_conditions(effect.when)}" if effect.when else ""
    return f"{(('every ' if effect.repeat else 'in ') + span + ': ') if late else ''}{', '.join(done)}{when}"


def join_full_text(state: State) -> str:
    """Return the full text of a card, for the pointer's tooltip."""
    return "\n".join([state.name, *state.formulations])
