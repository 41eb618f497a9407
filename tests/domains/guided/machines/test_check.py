"""The findings of `check_machine`: each fault in a machine that has only this fault, and none in the shipped
machines."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgen.core import resources
from edgen.domains.guided.machines.check import check_machine
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Condition, Effect, End, Lock, Machine, State, Variable
from edgen.domains.guided.machines.reach import explore
from tests.domains.guided.machines.folders import random_machine
from tests.timing import takes_under

SOUND = Machine(
    name="sound",
    subtasks=("first", "second"),
    world={"fire": Variable(kind="number", initial=2.0, least=0, most=5, sees=("Wizard",))},
    states={
        "start": State(name="start", transitions=("hello",)),
        "hello": State(
            name="hello", formulations=("Hello",), transitions=("go", "wait"), probabilities={"go": 0.5, "wait": 0.5}
        ),
        "wait": State(name="wait", formulations=("Wait",), transitions=("go",), effects=(Effect(add={"fire": -1}),)),
        "go": State(name="go", formulations=("Go at {fire}",), transitions=("bye",), advances="second"),
        "bye": State(name="bye", formulations=("Bye",), subtask="second", end=End(reason="done", success=True)),
    },
)  # fmt: skip


def but(state: str, **changes: object) -> Machine:
    """Return the valid machine with one state changed."""
    changed = msgspec.structs.replace(SOUND.states[state], **changes)
    return msgspec.structs.replace(SOUND, states={**SOUND.states, state: changed})


def plus(**changes: object) -> Machine:
    return msgspec.structs.replace(SOUND, **changes)


@pytest.mark.parametrize("name", resources.list_shipped("machines"))
def test_nothing_is_found_in_the_shipped_machines(name: str) -> None:
    machine = load_machine(resources.find("machines", name))
    assert check_machine(machine) == []
    assert all(one.act is not None for one in machine.states.values() if one.formulations)


def test_the_emergency_desk_is_as_large_as_promised() -> None:
    machine = load_machine(resources.find("machines", "incident_response"))
    assert len(machine.states) >= 40
    assert len(machine.subtasks) == 6
    assert len(explore(machine).states) == len(machine.states)


def test_crwizs_faults_are_named(shared_data: Path) -> None:
    found = check_machine(load_machine(shared_data / "crwiz_states"))
    assert [(one.kind, one.state, one.fatal) for one in found] == [
        ("fixed", None, False), ("gate", "intro_hello", False),
    ]  # fmt: skip
    assert "'inform_end' is never offered after it: it is for the sub-task finish" in str(found[1])


@pytest.mark.parametrize(
    ("machine", "kind", "fatal", "said"),
    [
        (plus(initial="begin"), "no_start", True, "there is no state 'begin' to begin in"),
        (but("go", transitions=("by",)), "dangling", True, "go: it leads to 'by', which does not exist (did you mean 'bye'?)"),
        (but("go", lock=Lock(says=("x",), otherwise=("nope",))), "dangling", True, "it has a lock that leads to 'nope'"),
        (but("bye", subtask="third"), "subtask", True, "bye: it is for the sub-task 'third', which the machine does not have"),
        (but("go", advances="secnd"), "subtask", True, "it begins the sub-task 'secnd', which the machine does not have (did you mean 'second'?)"),
        (but("go", advances=None), "gate", False, "the sub-task 'second' never begins"),
        (but("go", advances=None), "unreachable", False, "bye: it is never reached: its sub-task second never begins"),
        (but("wait", formulations=()), "mute", False, "wait: it has no formulation"),
        (but("hello", probabilities={"go": 1.0}), "probability", False, "wait has the probability 0"),
        (but("hello", probabilities={}), "probability", False, "its 2 transitions have no probability, so all are equally probable"),
        (but("hello", probabilities={"go": 0.5, "wait": 0.4}), "probability", False, "its probabilities sum to 0.9, not to 1"),
        (but("hello", probabilities={"go": 0.5, "wait": 0.5, "bye": 0.1}), "probability", False, "'bye' has a probability and is not a transition"),
        (but("hello", transitions=("go",), probabilities={}), "unreachable", False, "wait: it is never reached: no state leads to it"),
        (but("wait", when={"fire": Condition(at_least=6)}), "gate", False, "'wait' is never offered after it: its conditions can never hold"),
        (but("wait", when={"fir": Condition(below=2)}), "variable", True, "a condition is on 'fir', which is not a variable of the world (did you mean 'fire'?)"),
        (but("wait", when={"fire": Condition(one_of=("hot",))}), "type", True, "a condition on fire can never hold: 'hot' is not a number"),
        (but("wait", effects=(Effect(set={"heat": 1.0}),)), "variable", True, "an effect changes 'heat', which is not a variable of the world"),
        (but("wait", effects=(Effect(set={"fire": 9.0}),)), "type", True, "an effect sets fire out of its bounds"),
        (but("wait", effects=(Effect(set={"fire": True}),)), "type", True, "an effect sets fire: True is not a number"),
        (but("go", formulations=("Go to {place}",)), "slot", True, "go: nothing fills the slot {place}"),
        (but("go", lock=Lock(says=("{answers}",))), "slot", True, "nothing fills the slot {answers}"),
        (but("go", slots=("robot",)), "slot", True, "nothing fills the slot {robot}"),
        (but("go", lock=Lock(otherwise=("bye",))), "lock", False, "every answer opens its lock"),
        (but("go", lock=Lock(says=("no thanks",), lacks=("no",))), "lock", False, "nothing opens its lock"),
        (but("bye", lock=Lock()), "lock", False, "it waits for an answer and ends the conversation"),
        (but("bye", transitions=("go",)), "end", False, "it ends the conversation, so it never leads to go"),
        (but("bye", end=None), "dead_end", False, "nothing is ever offered after it in the sub-task second"),
        (but("bye", end=None, transitions=("bye",)), "endless", False, "it has no end that can be reached: only the time limit ends it"),
        (msgspec.structs.replace(but("bye", end=None, transitions=("bye",)), time_limit=None), "endless", True, "it would never end"),
        (msgspec.structs.replace(but("go", lock=Lock(says=("x",))), time_limit=None), "lock", False, "it waits for a certain answer for ever"),
        (plus(fixed={"BC": ""}), "fixed", False, "fixed replies without a text are never offered: BC"),
        (plus(world={"fire": Variable(kind="number", initial=2.0, sees=("Boss",))}), "role", True, "fire is seen by Boss, which is neither Wizard nor Operator"),
        (plus(ends=(End(reason="x", when={"smoke": Condition(one_of=(True,))}),)), "variable", True, "a condition is on 'smoke'"),
    ],
)  # fmt: skip
def test_each_fault_is_a_sentence(machine: Machine, kind: str, fatal: bool, said: str) -> None:
    found = [one for one in check_machine(machine) if one.kind == kind]
    assert any(said in str(one) and one.fatal == fatal for one in found), check_machine(machine)


def test_the_sound_machine_is_sound() -> None:
    assert check_machine(SOUND) == []


def test_a_space_has_to_have_what_is_needed() -> None:
    machine = msgspec.structs.replace(
        but("go", formulations=("{place.name}",)), needs=("place", "place.name")
    )
    assert check_machine(machine) == []
    assert check_machine(machine, ["place", "place.name"]) == []
    assert [str(one) for one in check_machine(machine, ["place"])] == [
        "the space has no place.name, which the machine needs"
    ]


def test_what_a_space_draws_may_hold() -> None:
    machine = but("wait", when={"fire": Condition(at_least=3)})
    assert [one.kind for one in check_machine(machine)] == ["gate", "unreachable"]
    assert check_machine(machine, ["fire"]) == []


def test_effects_out_of_reach_open_nothing() -> None:
    """`wait` would make the fire large enough for `late`, but only `late` leads to `wait`."""
    states = {
        "start": State(name="start", transitions=("late", "bye"), probabilities={"late": 0.5, "bye": 0.5}),
        "late": State(
            name="late", formulations=("L",), transitions=("more",), when={"fire": Condition(at_least=3)}
        ),
        "more": State(name="more", formulations=("M",), transitions=("late",), effects=(Effect(add={"fire": 1}),)),
        "bye": State(name="bye", formulations=("B",), end=End(reason="done")),
    }  # fmt: skip
    machine = plus(states=states, subtasks=())
    assert [(one.kind, one.state) for one in check_machine(machine)] == [
        ("gate", "start"), ("unreachable", "late"), ("unreachable", "more"),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_what_is_out_of_reach_is(seed: int) -> None:
    """Random walks without locks, times and texts reach only states that `explore` reports as reachable."""
    import random

    from edgen.domains.guided.machines.model import holds
    from edgen.domains.guided.machines.world import list_changes, make_first_world

    machine = random_machine(seed)
    reach, rng = explore(machine), random.Random(seed)
    for _ in range(30):
        world = make_first_world(machine, {"who": "Ann"})
        state, subtask = "start", machine.subtasks[0] if machine.subtasks else None
        for _ in range(15):
            here = machine.states[state]
            if here.end is not None and holds(here.end.when, world):
                break
            names = [*here.transitions, *(here.lock.otherwise if here.lock else ())]
            offered = machine.find_offered_states(state, world, subtask, names)
            if not offered:
                break
            before, state = state, rng.choice(offered)
            subtask = machine.states[state].advances or subtask
            assert (state, subtask) in reach.places
            assert (before, state) in reach.used
            for effect in machine.states[state].effects:
                if rng.random() < 0.7:
                    world = {**world, **list_changes(effect, machine, world)}


def test_a_large_machine_is_checked_in_seconds() -> None:
    names = [f"s{number}" for number in range(2_000)]
    states = {
        name: State(
            name=name, formulations=("x",), transitions=(names[(i + 1) % 2_000], names[(i * 7) % 2_000])
        )
        for i, name in enumerate(names)
    }
    machine = plus(states={"start": State(name="start", transitions=("s0",)), **states}, subtasks=("a", "b"))
    assert {one.kind for one in check_machine(machine)} == {"probability", "gate", "endless"}
    assert takes_under(3, lambda: list(check_machine(machine)), tries=3)
