"""Random records of guided conversations, whose contents are counted as they are made.

They do not use the engine, so tests of measures do not depend on it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from edgen.core.values import Scenario, Turn
from edgen.evaluation.sample import Sample

LEADS = {
    "start": ["hello"],
    "hello": ["inspect", "ask"],
    "inspect": ["report", "ask"],
    "ask": ["report"],
    "report": ["fix", "bye"],
    "fix": ["bye", "report"],
    "bye": [],
    "never": ["bye"],
}
SAYS = {
    "hello": "Hello, I am here to help.",
    "inspect": "I will look at the tank.",
    "ask": "May I send the robot?",
    "report": "The tank leaks.",
    "fix": "I close the valve now.",
    "bye": "It is done, goodbye.",
}
ACTS = {
    "hello": "Interaction", "inspect": "Action", "ask": "Request", "report": "Update", "fix": "Action",
    "bye": "Interaction",
}  # fmt: skip
ADVANCES = {"inspect": "look", "ask": "look", "fix": "repair"}
ITEMS = ("easy", "clear")
FREE = "One moment, please."


@dataclass
class Truth:
    """Counts of what the records contain."""

    by: Counter[str] = field(default_factory=Counter)
    hints: int = 0
    followed: int = 0
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    successes: int = 0
    durations: list[float] = field(default_factory=list)
    subtasks: dict[str, list[float]] = field(default_factory=dict)
    ratings: list[tuple[bool, int, int, dict[str, int]]] = field(default_factory=list)
    """Success, scenario, acts of the type Action, ratings of the operator."""


class _Room:
    """A conversation under construction."""

    def __init__(self, index: int, seed: int, truth: Truth) -> None:
        self.rng = random.Random(f"{seed}/{index}")
        self.index, self.truth = index, truth
        self.turns: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.time = 0.0
        self.since: dict[str, float] = {}

    def tell(self, event: str, **more: Any) -> None:
        self.events.append({"event": event, "time": round(self.time, 3), "turn": len(self.turns), **more})

    def say(self, role: str, text: str, labels: list[str], **data: Any) -> None:
        self.time = round(self.time + 2 + 0.4 * len(text.split()), 3)
        labelled = {"labels": labels} if labels else {}
        self.turns.append({"role": role, "text": text, **labelled, "data": {**data, "time": self.time}})

    def choose(self, by: str, state: str | None, text: str, followed: bool | None) -> None:
        self.tell("chosen", by=by, state=state, utterance=text, followed_hint=followed)
        self.truth.by[by] += 1

    def utter(self, by: str, state: str | None, text: str) -> None:
        act = [ACTS[state]] if by == "state" and state else []
        self.say("Wizard", text, act, **{"by": by, **({"state": state} if state else {})})
        self.truth.acts.update(act)

    def advance(self, before: str | None, to: str) -> None:
        if before == to:
            return
        self.tell("subtask", **{"from": before, "to": to})
        if before is not None:
            self.close(before)
        self.since[to] = self.time

    def close(self, subtask: str) -> None:
        spent = self.truth.subtasks.setdefault(subtask, [])
        spent.append(round(self.time - self.since.pop(subtask), 3))


def record(index: int, seed: int, truth: Truth) -> dict[str, Any]:
    """Return one record; add its contents to `truth`."""
    room = _Room(index, seed, truth)
    rng, state, subtask = room.rng, "start", "greet"
    room.advance(None, subtask)
    while LEADS[state] and len(room.turns) < 20:
        options = [
            {"state": one, "utterance": SAYS[one], "probability": 1 / len(LEADS[state])}
            for one in LEADS[state]
        ]
        room.tell("offered", state=state, options=options)
        hint = rng.choice(LEADS[state]) if rng.random() < 0.4 else None
        if hint:
            room.tell("hint", state=state, target=hint)
            truth.hints += 1
        way, missed = rng.random(), None if hint is None else False
        if way < 0.1:
            room.choose("free", None, FREE, missed)
            room.utter("free", None, FREE)
        elif way < 0.2:
            room.choose("fixed", "yes", "Yes.", missed)
            room.utter("fixed", "yes", "Yes.")
        else:
            chosen = rng.choice(LEADS[state])
            truth.followed += chosen == hint
            room.choose("state", chosen, SAYS[chosen], None if hint is None else chosen == hint)
            room.tell("state", **{"from": state, "to": chosen})
            truth.moves[state, chosen] += 1
            state = chosen
            if to := ADVANCES.get(state):
                room.advance(subtask, to)
                subtask = to
            if state == "ask":
                room.tell("lock", state="ask", waits_for="any")
            if state == "fix":
                room.tell("effect", state="fix", due=round(room.time + 60, 3), changes={"valve": "closed"})
                room.tell("world", changes={"alarm": False}, cause="fix")
            room.utter("state", state, SAYS[state])
        if LEADS[state]:
            room.say("Operator", rng.choice(["Yes, go on.", "What do you see there?", "No."]), [])
            if any(one["event"] == "lock" and one["turn"] == len(room.turns) - 2 for one in room.events):
                room.tell("unlock", state="ask")
    success = subtask == "repair"
    reason = "dialogue_completed" if state == "bye" else "time_out"
    room.tell("end", reason=reason, success=success)
    room.close(subtask)
    truth.reasons[reason] += 1
    truth.successes += success
    truth.durations.append(room.time)
    actions = sum("Action" in turn.get("labels", ()) for turn in room.turns)
    for role in ("Wizard", "Operator"):
        ratings = {item: min(7, max(1, rng.randint(2, 5) + 2 * success)) for item in ITEMS}
        room.tell(
            "questionnaire",
            role=role,
            token=f"{role[0]}{index:05}",
            answers={**ratings, "more": "Went well."},
        )
        if role == "Operator":
            truth.ratings.append((success, index, actions, ratings))
    return {
        "id": f"planted-{index:06}-r0",
        "scenario": {"place": "harbour"},
        "roles": ["Wizard", "Operator"],
        "conversation": room.turns,
        "outcome": {"reason": reason, "success": success},
        "events": room.events,
    }


def records(count: int, seed: int = 7) -> tuple[list[dict[str, Any]], Truth]:
    """Return this number of records, and the counts of their contents."""
    truth = Truth()
    return [record(index, seed, truth) for index in range(count)], truth


def turns_of(one: dict[str, Any]) -> tuple[Turn, ...]:
    """Return the turns of a record."""
    return tuple(
        Turn(turn["role"], turn["text"], tuple(turn.get("labels", ())), turn.get("data", {}))
        for turn in one["conversation"]
    )


def sample(one: dict[str, Any], scenario: int) -> Sample:
    """Return a record as measures read it."""
    return Sample(
        id=one["id"], source="planted", split=None, scenario=Scenario(scenario, one["scenario"]),
        turns=turns_of(one), entries=len(one["conversation"]), outcome=one["outcome"], events=tuple(one["events"]),
    )  # fmt: skip
