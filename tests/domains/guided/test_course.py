"""A machine in the course of a conversation: gates, locks, effects on a clock, hints and ends, by hand and
for random machines."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgen.core.values import Event
from edgen.domains.guided.course import (
    MOST_CHANGES,
    NOTHING_LEFT,
    TIME_OUT,
    TOO_MANY_CHANGES,
    TOO_MANY_TURNS,
    Course,
    Option,
    draw,
    pick_best,
)
from edgen.domains.guided.machines.learn import ChoiceCounts, learn
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import (
    Clock,
    Condition,
    Effect,
    End,
    Lock,
    Machine,
    State,
    Variable,
)
from edgen.stats.quantiles import wilson
from tests.dose import dose

pytestmark = pytest.mark.unit

Z = 3.2905  # standard deviations of a 99.9% interval


def state(name: str, *transitions: str, **more: Any) -> State:
    """Return a state that says `name.`, unless it is the first."""
    formulations = more.pop("formulations", () if name == "start" else (f"{name}.",))
    return State(name=name, formulations=formulations, transitions=transitions, **more)


def machine(*states: State, **more: Any) -> Machine:
    clock = Clock(seconds_per_turn=1, seconds_per_word=1)
    return Machine(name="m", states={one.name: one for one in states}, **{"clock": clock, **more})


def course(of: Machine, **more: Any) -> Course:
    return Course(of, more.pop("values", {}), "7", most_turns=more.pop("most_turns", 50), **more)


def names(one: Course) -> list[str]:
    return [option.state for option in one.offer().options]


def told(one: Course, kind: str) -> list[Event]:
    return [event for event in one.events if event["event"] == kind]


# ---- offered transitions


def test_probabilities_are_those_of_what_is_really_offered() -> None:
    of = machine(
        state("start", "a", "b", "c", probabilities={"a": 0.2, "b": 0.3, "c": 0.5}),
        state("a"), state("b"), state("c", subtask="later"),
        subtasks=("now", "later"),
    )  # fmt: skip
    options = course(of).offer().options
    assert [(one.state, pytest.approx(one.probability)) for one in options] == [("a", 0.4), ("b", 0.6)]


def test_where_nothing_is_left_earlier_states_offer_what_was_not_used() -> None:
    of = machine(
        state("start", "a"),
        state("a", "b", "c", "d", probabilities={"b": 0.5, "c": 0.3, "d": 0.1}),
        state("b"), state("c"), state("d"),
    )  # fmt: skip
    one = course(of)
    for name in ("a", "b"):
        one.say_state(name)
    assert [(o.state, pytest.approx(o.probability)) for o in one.offer().options] == [
        ("c", 0.75),
        ("d", 0.25),
    ]
    one.say_state("c")
    one.say_state("d")
    assert names(one) == []
    assert one.stuck


def test_a_formulation_stays_until_the_state_changes() -> None:
    ways = tuple(f"Way {number}." for number in range(20))
    of = machine(state("start", "a", "b"), state("a", "b", "a", formulations=ways), state("b", "a", "b"))
    said = []
    for seed in range(5):
        one = Course(of, {}, str(seed), most_turns=50)
        first = one.offer().options[0].utterance
        one.say_freely("Wait.")
        one.answer("Why?")
        assert one.offer().options[0].utterance == first
        said.append(first)
    assert len({*said}) > 1


def test_slots_have_the_values_of_now_and_without_values_nothing_is_said() -> None:
    of = machine(
        state("start", "a", "b", "c"),
        state("a", formulations=("{level} of {topic}.", "{nothing} is here.")),
        state("b", formulations=("{nothing} is here.",)),
        state("c", slots=("nothing",)),
        world={"level": Variable(kind="number", initial=1.0)},
    )
    one = course(of, values={"topic": "tides", "index": 3})
    assert [option.utterance for option in one.offer().options] == ["1 of tides."]
    assert one.list_slot_values("a") == ("1", "tides")


def test_the_first_letter_is_a_capital() -> None:
    of = machine(state("start", "a"), state("a", formulations=("{who} goes.",)))
    assert course(of, values={"who": "the robot"}).offer().options[0].utterance == "The robot goes."


# ---- locks


def locked(lock: Lock) -> Course:
    of = machine(
        state("start", "ask"), state("ask", "on", lock=lock), state("on"), state("again"), fixed={"okay": "Okay."}
    )  # fmt: skip
    one = course(of)
    one.say_state("ask")
    return one


def test_a_lock_waits_for_an_answer() -> None:
    one = locked(Lock())
    assert names(one) == []
    assert one.offer().fixed == {"okay": "Okay."}
    one.say_fixed("okay")
    assert one.lock is not None
    one.answer("What?")
    assert names(one) == ["on"]
    assert [event["event"] for event in one.events if "lock" in event["event"]] == ["lock", "unlock"]
    assert told(one, "lock")[0]["waits_for"] == "any"


def test_a_lock_with_a_condition_opens_by_what_it_accepts() -> None:
    one = locked(Lock(says=("rover", "heron"), otherwise=("again",)))
    one.answer("I don't know.")
    assert one.lock is not None
    assert names(one) == ["again"]
    one.answer("Send ROVER then.")
    assert names(one) == ["on"]
    assert told(one, "lock")[0]["waits_for"] == {"says": ["rover", "heron"]}


def test_the_way_out_of_a_lock_leaves_it() -> None:
    one = locked(Lock(says=("yes",), otherwise=("again",)))
    one.answer("No.")
    before = one.state
    one.say_state("again")
    assert one.lock is None
    (unlock,) = told(one, "unlock")
    assert unlock["state"] == before
    kinds = [event["event"] for event in one.events]
    assert kinds.index("unlock") < len(kinds) - 1 - kinds[::-1].index("state")


# ---- the world and the clock


FIRE = {"fire": Variable(kind="number", initial=1.0, least=0, most=9)}


def test_effects_happen_when_they_are_due_in_the_middle_of_a_turn() -> None:
    grows = Effect(add={"fire": 1}, after_seconds=5, repeat=True)
    of = machine(state("start", "a"), state("a", "b", effects=(grows,)), state("b"), world=FIRE)
    one = course(of)
    one.say_state("a")  # 2 seconds
    one.answer("one two three four five six seven eight nine ten")  # 11 seconds
    assert one.now == 13
    assert [(event["time"], event["changes"]) for event in told(one, "world")[1:]] == [
        (5, {"fire": 2}),
        (10, {"fire": 3}),
    ]
    assert told(one, "effect")[0] | {"turn": 0} == {
        "event": "effect", "time": 0, "turn": 0, "state": "a", "due": 5, "changes": {"fire": "+1"},
    }  # fmt: skip


def test_effects_by_turns_count_those_behind_the_utterance() -> None:
    of = machine(
        state("start", "a"),
        state("a", "b", effects=(Effect(set={"fire": 0.0}, after_turns=2),)),
        state("b", "b"),
        world=FIRE,
    )
    one = course(of)
    one.say_state("a")
    one.answer("Yes.")
    assert one.world["fire"] == 1
    one.say_state("b")
    assert one.world["fire"] == 0
    assert told(one, "effect")[0]["due"] is None


def test_effects_of_the_first_state_begin_with_the_conversation() -> None:
    burns = (Effect(add={"fire": 1}, after_seconds=2), Effect(add={"fire": 1}, after_turns=1))
    of = machine(state("start", "a", effects=burns), state("a", "a"), world=FIRE)
    one = course(of)
    one.say_state("a")  # 2 seconds
    assert one.world["fire"] == 3


def test_an_effect_that_is_due_looks_at_its_conditions_then() -> None:
    off = Effect(set={"fire": 0.0}, after_seconds=3, when={"fire": Condition(at_least=2)})
    of = machine(state("start", "a"), state("a", effects=(off,)), world=FIRE)
    one = course(of)
    one.say_state("a")
    one.answer("One two three.")
    assert one.world["fire"] == 1


def test_a_changed_world_offers_other_things() -> None:
    of = machine(
        state("start", "a"),
        state("a", "b", "c", effects=(Effect(set={"fire": 0.0}, after_seconds=3),)),
        state("b", when={"fire": Condition(at_least=1)}),
        state("c", when={"fire": Condition(below=1)}),
        world=FIRE,
    )
    one = course(of)
    one.say_state("a")
    assert names(one) == ["b"]
    one.answer("Go on.")
    assert names(one) == ["c"]


def test_a_repeated_effect_of_a_state_runs_once_at_most() -> None:
    grows = Effect(add={"fire": 1}, after_seconds=2, repeat=True)
    of = machine(state("start", "a"), state("a", "a", effects=(grows,)), world=FIRE)
    one = course(of)
    for _ in range(3):
        one.say_state("a")  # 2 seconds each
    assert one.world["fire"] == 4
    assert len(told(one, "effect")) == 1


# ---- ends


def test_a_conversation_ends_in_a_state_with_its_reason() -> None:
    of = machine(state("start", "a"), state("a", end=End(reason="done", success=True)))
    one = course(of)
    one.say_state("a")
    assert one.end == End(reason="done", success=True)
    assert [one.events[-1][key] for key in ("event", "reason", "success", "time")] == ["end", "done", True, 2]


def test_the_world_ends_it_and_so_does_the_clock() -> None:
    burns = (Effect(add={"fire": 5}, after_seconds=4),)
    ends = (End(reason="lost", success=False, when={"fire": Condition(at_least=5)}),)
    of = machine(state("start", "a"), state("a", effects=burns), world=FIRE, ends=ends, time_limit=5)
    one = course(of)
    one.say_state("a")
    one.answer("I will think about that for quite a while.")
    assert one.end is not None
    assert (one.end.reason, one.now) == ("lost", 4)
    later = course(machine(state("start", "a"), state("a", "a"), time_limit=5))
    later.say_state("a")
    later.answer("I will think about that for quite a while.")
    assert later.end == End(reason=TIME_OUT, success=False)
    assert later.now == 5
    assert later.turns[-1].data["time"] == 5


def test_a_loop_without_an_end_ends_by_the_cap_on_turns() -> None:
    one = course(machine(state("start", "a"), state("a", "a"), time_limit=None), most_turns=9)
    while one.end is None:
        one.say_state("a")
    assert one.end.reason == TOO_MANY_TURNS
    assert len(one.turns) == 9


def test_effects_without_end_end_it() -> None:
    flickers = Effect(add={"fire": 1}, after_seconds=1, repeat=True)
    of = machine(
        state("start", "a"), state("a", "a", effects=(flickers,)), world=FIRE, time_limit=None,
        clock=Clock(seconds_per_turn=10 * MOST_CHANGES),
    )  # fmt: skip
    one = course(of)
    one.say_state("a")
    assert one.end is not None
    assert one.end.reason == TOO_MANY_CHANGES


# ---- choosing


def test_draws_are_by_the_probabilities() -> None:
    options = [Option("a", "A", 0.25), Option("b", "B", 0.75), Option("c", "C", 0.0)]
    assert [draw(options, number) for number in (0.0, 0.2499, 0.25, 0.9999, 1.0)] == ["a", "a", "b", "b", "b"]
    assert pick_best(options) == "b"
    assert pick_best([Option("a", "A", 0.5), Option("b", "B", 0.5)]) == "a"


def by_chance(of: Machine, seed: int) -> Iterator[Event]:
    """Return the events of a conversation in which the guided side chooses at random and its partner says
    "Okay."."""
    chance = random.Random(f"{seed}/choice")
    one = Course(of, {}, str(seed), most_turns=30)
    while one.end is None and (options := one.offer().options):
        one.say_state(draw(options, chance.random()))
        if one.end is None:
            one.answer("Okay.")
    return iter(one.events)


@pytest.mark.long
@pytest.mark.integration
def test_thousands_of_conversations_by_chance_have_the_files_probabilities(shared_data: Path) -> None:
    """CRWIZ's own files: transitions and hints are within the 99.9% Wilson intervals of the YAML's weights
    for the offered options. Uniform hints, as in CRWIZ's released code, are not. Learning recovers the
    probabilities."""
    of = load_machine(shared_data / "crwiz_states")
    chosen: dict[tuple[str, tuple[str, ...]], Counter[str]] = defaultdict(Counter)
    hinted: dict[tuple[str, tuple[str, ...]], Counter[str]] = defaultdict(Counter)
    counts = ChoiceCounts()
    for seed in range(dose(3_000, 10_000)):
        events = [*by_chance(of, seed)]
        counts.see(events)
        where = ("", ())
        for event in events:
            if event["event"] == "offered":
                where = (event["state"], tuple(option["state"] for option in event["options"]))
            elif event["event"] == "hint":
                hinted[where][event["target"]] += 1
            elif event["event"] == "chosen":
                chosen[where][event["state"]] += 1
    assert {*chosen} == {*hinted}
    assert sum(len(names) > 1 for _, names in chosen) >= 4
    uniform = 0
    for (name, offered), found in chosen.items():
        weights = of.states[name].list_weights(offered)
        for counted in (found, hinted[name, offered]):
            total = sum(counted.values())
            if total < 100:  # too rare for a test
                continue
            for target, weight in weights.items():
                low, high = wilson(counted[target] / total, total, Z)
                assert low <= weight <= high, (name, target)
                uniform += counted is not found and not low <= 1 / len(weights) <= high
    assert uniform >= 2
    learned = learn(of, counts, smoothing=0.5).machine
    for name in ("trigger_popup", "trigger_subtask"):  # states whose transitions are all offered at some time
        for target, weight in of.states[name].list_weights(of.states[name].transitions).items():
            assert learned.states[name].find_weight(target) == pytest.approx(weight, abs=dose(0.04, 0.02))


# ---- random machines

NAMES = ("start", "a", "b", "c", "d")
CONDITIONS = st.dictionaries(
    st.just("fire"),
    st.sampled_from([Condition(at_least=2), Condition(below=2), Condition(one_of=(1.0, 3.0))]),
    max_size=1,
)
EFFECTS = st.lists(
    st.builds(
        Effect,
        add=st.just({"fire": 1.0}) | st.just({"fire": -1.0}),
        after_seconds=st.sampled_from([0, 0, 3, 7]),
        when=CONDITIONS,
        repeat=st.just(False),
    )
    | st.builds(Effect, set=st.just({"fire": 1.0}), after_turns=st.integers(1, 3), repeat=st.booleans()),
    max_size=2,
).map(tuple)
LOCKS = st.none() | st.builds(
    Lock,
    says=st.sampled_from([(), ("yes",)]),
    otherwise=st.sampled_from([(), ("a",), ("b", "c")]),
)
SUBTASKS = ("one", "two")


@st.composite
def machines(draw_: st.DrawFn) -> Machine:
    """Draw any machine of a few states, useful or not."""
    states = []
    for name in NAMES:
        transitions = draw_(st.lists(st.sampled_from(NAMES[1:]), unique=True, max_size=4))
        weights = draw_(st.lists(st.sampled_from([0, 0.1, 0.5, 1]), min_size=4, max_size=4))
        plain = draw_(st.integers(0, 2)) == 0
        states.append(
            State(
                name=name,
                formulations=() if name == "start" else (f"{name} {{fire}}.", f"{name}!", "{nothing}"),
                transitions=tuple(transitions),
                probabilities=dict(zip(transitions, weights, strict=False)),
                subtask=None if plain else draw_(st.sampled_from((None, *SUBTASKS))),
                lock=None if plain else draw_(LOCKS),
                effects=draw_(EFFECTS),
                when={} if plain else draw_(CONDITIONS),
                advances=draw_(st.sampled_from((None, None, *SUBTASKS))),
                end=End(reason="done") if name == "d" and draw_(st.booleans()) else None,
            )
        )
    ends = (End(reason="burnt", success=False, when={"fire": Condition(at_least=4)}),)
    return machine(
        *states,
        world=FIRE,
        subtasks=SUBTASKS,
        ends=draw_(st.sampled_from([(), ends])),
        time_limit=draw_(st.sampled_from([None, 20.0])),
        fixed=draw_(st.sampled_from([{}, {"okay": "Okay.", "mute": ""}])),
    )


Move = tuple[int, bool]


def played(of: Machine, moves: list[Move]) -> Course:
    """Play a conversation in which numbers decide what is said, and booleans whether the partner says yes."""
    one = Course(of, {}, "7", most_turns=24)
    for number, yes in moves * 13:
        if one.stuck:
            one.finish(NOTHING_LEFT, one.success)
        if one.end is not None:
            break
        offer = one.offer()
        says: list[Callable[[], None]] = [lambda name=o.state: one.say_state(name) for o in offer.options]  # type: ignore[misc]
        says += [lambda name=name: one.say_fixed(name) for name in offer.fixed]  # type: ignore[misc]
        (says or [lambda: one.say_freely("Well.")])[number % max(1, len(says))]()
        if one.end is None:
            one.answer("Yes." if yes else "Hm.")
    return one


@settings(max_examples=dose(10, 50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines(), st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=12))
def test_any_machine_keeps_its_promises(of: Machine, moves: list[Move]) -> None:
    one = played(of, moves)
    check_events(of, one)
    again = played(of, moves)
    assert (again.events, again.turns) == (one.events, one.turns)


def check_events(of: Machine, one: Course) -> None:
    """Check that said states were offered, fixed or free, that gates, conditions and locks held, and that one
    end has a reason."""
    offered: dict[str, str] = {}
    here, subtask, world, locked_in = of.initial, None, {}, None
    last = 0.0
    for event in one.events:
        assert event["time"] >= last
        last = event["time"]
        match event["event"]:
            case "world":
                world |= event["changes"]
            case "subtask":
                subtask = event["to"]
            case "offered":
                assert event["state"] == here
                offered = {option["state"]: option["utterance"] for option in event["options"]}
                assert all(of.may_be_said(name, world, subtask) for name in offered)
                if offered:
                    assert sum(option["probability"] for option in event["options"]) == pytest.approx(1)
                if locked_in is not None:
                    assert {*offered} <= {*locked_in.otherwise}
            case "hint":
                assert event["target"] in offered
            case "chosen":
                said = one.turns[event["turn"]]
                assert said.text == event["utterance"]
                assert said.data["by"] == event["by"]
                if event["by"] == "state":
                    assert offered[event["state"]] == event["utterance"]
                elif event["by"] == "fixed":
                    assert of.replies[event["state"]] == event["utterance"]
            case "state":
                assert event["from"] == here
                here, locked_in = event["to"], None
            case "lock":
                locked_in = of.states[event["state"]].lock
            case "unlock":
                assert locked_in is not None
                locked_in = None
    (end,) = told(one, "end")
    assert end is one.events[-1]
    assert end["reason"]
