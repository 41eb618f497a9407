"""Estimated lengths of a machine's conversations, from some that are played by chance. The partner mostly
gives the answer that opens the lock. No model is called."""

from __future__ import annotations

import functools
import random
from typing import Any

from edgen.domains.guided.config import Guided
from edgen.domains.guided.course import Course, draw
from edgen.domains.guided.files import read_machine
from edgen.domains.guided.machines.model import Machine, Variable
from edgen.domains.guided.machines.slots import fill_phrases, list_slots

_PLAYED = 40
_STAND_IN = "some words"  # in place of a scenario's values
_ANSWERS = 0.8  # share of the partner's answers that open the lock


@functools.lru_cache(maxsize=8)
def list_sides_of_turns(settings: Guided, level: int) -> str:
    """Return the speakers of a conversation's turns, a letter each: `w` for the guided role, `p` for its
    partner. Level 0 is a short conversation, 1 a median one, and 2 the longest that the settings and the
    clock allow."""
    assert settings.machine is not None
    machine = read_machine(settings.machine)
    if level == 2:
        most, clock = settings.turns, machine.clock
        shortest = clock.seconds_per_turn + clock.seconds_per_word
        if machine.time_limit is not None and shortest > 0:
            most = max(2, min(most, round(machine.time_limit / shortest) + 1))
        in_turn = "w" * settings.turns_in_a_row + "p"
        return (in_turn * (most // len(in_turn) + 1))[:most]
    played = sorted(
        (_play(machine, settings, number) for number in range(_PLAYED)), key=lambda one: (len(one), one)
    )
    return played[_PLAYED // 10 if level == 0 else _PLAYED // 2]


def _play(machine: Machine, settings: Guided, number: int) -> str:
    """Play a conversation by chance; return its speakers."""
    values, chance = _stand_ins(machine), random.Random(f"{number}/length")  # noqa: S311 - reproducible, not secret
    course = Course(machine, values, str(number), most_turns=settings.turns, hints=False)
    sides = ""
    while course.end is None and not course.stuck:
        for _ in range(settings.turns_in_a_row):
            options = course.offer().options
            if not options:
                break
            course.say_state(draw(options, chance.random()))
            sides += "w"
            if course.end is not None or course.lock is not None:
                break
        if course.end is None:
            answers = fill_phrases(course.lock.says, values) if course.lock is not None else ()
            answer = answers[0] if answers and chance.random() < _ANSWERS else "All right."
            course.answer(answer, (course.lock.label,) if course.lock and course.lock.label else ())
            sides += "p"
    return sides


def _stand_ins(machine: Machine) -> dict[str, Any]:
    """Return values for every name that a scenario would define."""
    texts = [text for state in machine.states.values() for text in state.formulations]
    names = [name for text in texts for name in list_slots(text)]
    names += [name for state in machine.states.values() for name in state.slots]
    locks = [state.lock for state in machine.states.values() if state.lock is not None]
    names += [name for lock in locks for word in lock.says for name in list_slots(word)]
    found: dict[str, Any] = {name: _STAND_IN for name in names if name not in machine.world}
    drawn = {name: one for name, one in machine.world.items() if one.initial is None}
    return found | {name: _choose_value(variable) for name, variable in drawn.items()}


def _choose_value(variable: Variable) -> Any:
    if variable.kind == "number":
        return variable.least or 0.0
    if variable.kind == "boolean":
        return False
    return variable.values[0] if variable.values else _STAND_IN
