"""Values of a machine: CRWIZ's weights, conditions, slots, effects, locks, the initial world."""

from __future__ import annotations

import math

import pytest

from edgen.domains.guided.machines.model import (
    Clock,
    Condition,
    Effect,
    Lock,
    Machine,
    State,
    Variable,
    holds,
)
from edgen.domains.guided.machines.slots import contains_phrase, fill, fill_phrases, list_slots
from edgen.domains.guided.machines.world import (
    ValueMismatchError,
    list_changes,
    make_first_world,
    opens_lock,
    select_visible_variables,
)

FIRE = Variable(kind="number", initial=2.0, least=0, most=5, sees=("Wizard",))
ROBOT = Variable(kind="choice", values=("husky", "quad"), initial="husky", sees=("Wizard", "Operator"))
OUT = Variable(kind="boolean", initial=False)
MACHINE = Machine(
    name="m",
    world={"fire": FIRE, "robot": ROBOT, "out": OUT},
    states={
        "start": State(name="start", transitions=("a", "b", "gated", "mute", "okay")),
        "a": State(name="a", formulations=("A",)),
        "b": State(name="b", formulations=("B",), when={"fire": Condition(at_least=3)}),
        "gated": State(name="gated", formulations=("G",), subtask="late"),
        "mute": State(name="mute"),
    },
    fixed={"okay": "Okay", "BC": ""},
)


def test_weights_are_as_written_zero_where_missing_and_uniform_where_all_are_zero() -> None:
    state = State(name="s", transitions=("a", "b", "c"), probabilities={"a": 0.6, "b": 0.2, "elsewhere": 9.0})
    assert [state.find_weight(name) for name in ("a", "b", "c", "elsewhere")] == [0.6, 0.2, 0.0, 0.0]
    assert state.list_weights(["a", "b"]) == {"a": pytest.approx(0.75), "b": pytest.approx(0.25)}
    assert state.list_weights(["c", "elsewhere"]) == {"c": 0.5, "elsewhere": 0.5}
    assert state.list_weights([]) == {}
    bare = State(name="s", transitions=("a", "b"), probabilities={"a": 0.0})
    assert bare.list_weights(["a", "b"]) == {"a": 0.5, "b": 0.5}


def test_only_what_can_be_said_now_is_offered() -> None:
    world = make_first_world(MACHINE, {})
    assert MACHINE.find_offered_states("start", world, None) == ("a",)
    assert MACHINE.find_offered_states("start", {**world, "fire": 3.0}, "late") == ("a", "b", "gated")
    assert MACHINE.find_offered_states("start", world, "late", names=["gated", "gated"]) == ("gated",)
    assert MACHINE.replies == {"okay": "Okay"}


@pytest.mark.parametrize(
    ("condition", "fits", "fails"),
    [
        (Condition(one_of=(2,)), [2, 2.0], [3, "2", True]),
        (Condition(one_of=("husky", "quad")), ["quad"], ["drone", False]),
        (Condition(one_of=(True,)), [True], [1, 1.0, "true", False]),
        (Condition(at_least=1, below=4), [1, 3.9], [0.9, 4, "3", True]),
        (Condition(), [0, "", False], []),
    ],
)
def test_conditions(condition: Condition, fits: list[object], fails: list[object]) -> None:
    assert all(condition.holds(value) for value in fits)  # type: ignore[arg-type]
    assert not any(condition.holds(value) for value in fails)  # type: ignore[arg-type]
    assert not holds({"nowhere": condition}, {})


def test_slots_are_filled_with_what_there_is() -> None:
    text = "{robot} in {robot.area}, {level}, {tools}; {not a slot} {unknown} {}"
    assert list_slots(text) == ("robot", "robot.area", "level", "tools", "unknown")
    values = {
        "robot": "Husky",
        "robot.area": "the west deck",
        "level": 2.0,
        "tools": ["foam", "water", "sand"],
    }
    filled = fill(text, values)
    assert filled == "Husky in the west deck, 2, foam, water and sand; {not a slot} {unknown} {}"
    assert fill("{a}", {"a": "{b}", "b": "no"}) == "{b}", "a value is no text with slots"


def test_words_are_found_whole_in_any_case() -> None:
    assert contains_phrase("It is  Three\nquarters, I think", "three quarters")
    assert contains_phrase("3/4.", "3/4")
    assert not contains_phrase("13/4", "3/4")
    assert not contains_phrase("nothing", "no")
    assert not contains_phrase("anything", "  ")
    assert fill_phrases(["{answers}", "about {n}"], {"answers": ["3/4", "0.75"], "n": 7.0}) == (
        "3/4",
        "0.75",
        "about 7",
    )


def test_an_answer_opens_a_lock_that_it_fits() -> None:
    lock = Lock(says=("{answers}",), lacks=("not",), label="Guess")
    values = {"answers": ["3/4", "0.75"]}
    assert opens_lock(lock, "I say 0.75", ["Guess", "Other"], values)
    assert not opens_lock(lock, "I say 0.75", ["Other"], values)
    assert not opens_lock(lock, "It is not 3/4", ["Guess"], values)
    assert not opens_lock(lock, "1/2", ["Guess"], values)
    assert not opens_lock(lock, "anything", ["Guess"], {"answers": []}), "without any answer nothing opens it"
    assert opens_lock(Lock(), "", [], {})
    assert Lock().any_answer
    assert not lock.any_answer


def test_effects_stay_within_bounds_and_change_only_what_is_other() -> None:
    world = make_first_world(MACHINE, {"robot": "quad", "fire": "4", "topic": "unused"})
    assert world == {"fire": 4.0, "robot": "quad", "out": False}
    assert list_changes(Effect(add={"fire": 3}), MACHINE, world) == {"fire": 5.0}
    assert list_changes(Effect(set={"fire": 1}, add={"fire": -9}), MACHINE, world) == {"fire": 0.0}
    assert list_changes(Effect(set={"robot": "quad", "out": True}), MACHINE, world) == {"out": True}
    assert list_changes(Effect(set={"out": True}, when={"fire": Condition(below=4)}), MACHINE, world) == {}
    assert select_visible_variables(MACHINE, "Operator", world) == {"robot": "quad"}


@pytest.mark.parametrize("drawn", ["hot", True, math.inf, "nan", "1e999"])
def test_a_scenarios_value_that_does_not_fit_is_told(drawn: object) -> None:
    with pytest.raises(ValueMismatchError, match=r"fire: .* number"):
        make_first_world(MACHINE, {"fire": drawn})
    with pytest.raises(ValueMismatchError, match="robot: 'drone' is not one of husky, quad"):
        make_first_world(MACHINE, {"robot": "drone"})


def test_the_clock_counts_turns_and_words() -> None:
    assert Clock().count_seconds("one two three") == pytest.approx(3.2)
