"""Probabilities learned from choices: the documented formula, hidden transitions, and machines recovered from
walks."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from edgen.core import resources
from edgen.domains.guided.machines.learn import ChoiceCounts, Choices, estimate, learn
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Machine, State


def events(steps: list[tuple[str, list[str], str]]) -> list[dict[str, Any]]:
    """Return the events of a conversation of (state, offered, chosen)."""
    found: list[dict[str, Any]] = []
    for state, offered, chosen in steps:
        options = [{"state": one, "utterance": "x", "probability": 0.5} for one in offered]
        found.append({"event": "offered", "time": 0.0, "turn": 0, "state": state, "options": options})
        found.append(
            {"event": "chosen", "time": 1.0, "turn": 0, "by": "fixed", "state": "okay", "utterance": "x"}
        )
        found.append(
            {"event": "chosen", "time": 1.0, "turn": 1, "by": "state", "state": chosen, "utterance": "x"}
        )
    return found


def test_where_all_is_offered_it_is_the_share_with_smoothing() -> None:
    all_ = ("a", "b", "c")
    choices: Choices = Counter({(all_, "a"): 6, (all_, "b"): 3})
    assert estimate(all_, choices, 1.0) == pytest.approx({"a": 7 / 12, "b": 4 / 12, "c": 1 / 12}, abs=1e-6)
    assert estimate(all_, choices, 0.0) == pytest.approx({"a": 2 / 3, "b": 1 / 3, "c": 0}, abs=1e-6)


def test_what_a_gate_keeps_away_is_not_taken_for_unwanted() -> None:
    """c is offered in one of ten cases and then chosen as often as a: its weight equals a's, though its share
    is small."""
    choices: Choices = Counter({
        (("a", "b"), "a"): 600, (("a", "b"), "b"): 300, (("a", "b", "c"), "a"): 40, (("a", "b", "c"), "b"): 20,
        (("a", "b", "c"), "c"): 40,
    })  # fmt: skip
    assert estimate(("a", "b", "c"), choices, 0.0) == pytest.approx({"a": 0.4, "b": 0.2, "c": 0.4}, abs=1e-4)


def test_choices_of_a_conversation_are_counted() -> None:
    machine = Machine(
        name="m",
        states={
            "start": State(name="start", transitions=("a", "b"), probabilities={"a": 0.9, "b": 0.1}),
            "a": State(name="a", formulations=("A",), transitions=("b",), probabilities={"b": 1.0}),
            "b": State(name="b", formulations=("B",), transitions=("a", "b")),
        },
    )
    counts = ChoiceCounts()
    counts.see(events([("start", ["a", "b"], "a"), ("a", ["start"], "start"), ("gone", ["a"], "a")]))
    counts.see(events([("start", ["b", "a"], "b")]))
    assert counts.count_transitions() == {
        ("a", "start"): 1,
        ("gone", "a"): 1,
        ("start", "a"): 1,
        ("start", "b"): 1,
    }
    learned = learn(machine, counts)
    assert (learned.conversations, learned.choices, learned.unknown) == (2, 2, 2)
    assert learned.kept == ("a", "b")
    assert learned.machine.states["start"].probabilities == {"a": 0.5, "b": 0.5}
    assert learned.machine.states["a"].probabilities == {"b": 1.0}


def test_the_probabilities_come_back() -> None:
    """Random walks through the emergency desk, with a random gate before each choice. From 3,000
    conversations, each learned probability is as close to the real one as that many choices allow."""
    machine = load_machine(resources.find("machines", "incident_response"))
    rng, counts = random.Random(4), ChoiceCounts()
    for _ in range(3_000):
        state, steps = rng.choice(list(machine.states)), []
        for _ in range(12):
            here = machine.states[state]
            offered = [one for one in here.transitions if rng.random() < 0.8]
            if not offered:
                break
            weights = here.list_weights(offered)
            chosen = rng.choices(list(weights), list(weights.values()))[0]
            steps.append((state, offered, chosen))
            state = chosen
        counts.see(events(steps))
    learned = learn(machine, counts).machine
    compared = 0
    for name, state in machine.states.items():
        seen = sum(count for (offered, _), count in counts.by_state[name].items() if len(offered) > 1)
        for one in state.transitions if seen >= 200 else ():
            p, again = state.probabilities[one], learned.states[name].probabilities[one]
            assert abs(again - p) < 4.5 * (p * (1 - p) / seen * 2) ** 0.5 + 0.002, (name, one, p, again, seen)
            compared += 1
    assert compared > 30


@pytest.mark.parametrize(
    "broken", [[{"event": "chosen", "by": "state", "state": "a"}], [{}], [{"event": "offered"}]]
)
def test_events_that_tell_nothing_count_for_nothing(broken: list[dict[str, Any]]) -> None:
    counts = ChoiceCounts()
    counts.see(broken)
    assert counts.count_transitions() == {}
