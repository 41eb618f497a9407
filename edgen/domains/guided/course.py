"""The course of a guided conversation: the utterances on offer, and their effects on state, world and clock.

Pure: replies go in by `say_state`, `say_fixed`, `say_freely` and `answer`; events and turns come out; the
same calls have the same results. The rules are those of `edgen.domains.guided.machines.model`: gates,
conditions and locks decide what is offered. If a state has nothing left to offer, unused transitions of
earlier states are offered, the latest state first, as CRWIZ does. A hint is drawn by the probabilities of the
offered states, and stays until the state changes.

A choice counts from the moment it is made: its state, sub-task, lock and effects begin then, and the clock
runs while it is said.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edgen.domains.guided.events import Event
from edgen.domains.guided.machines.model import Effect, End, Lock, Machine, State, Value, holds
from edgen.domains.guided.machines.slots import fill, list_slots
from edgen.domains.guided.machines.world import (
    list_changes,
    make_first_world,
    opens_lock,
    select_visible_variables,
)
from edgen.plugin import Turn

# Reasons for an end that the machine does not state.
TIME_OUT = "time_out"
TOO_MANY_TURNS = "too_many_turns"
TOO_MANY_CHANGES = "too_many_changes"
NOTHING_LEFT = "nothing_left"
PARTNER_LEFT = "partner_left"
MOST_CHANGES = 10_000  # effects in one conversation


class Option(NamedTuple):
    """A state that may be said next, its utterance, and its probability among the offered states."""

    state: str
    utterance: str
    probability: float


class GuidedOffer(NamedTuple):
    """The offer to the guided role. `fixed`: replies by name, which change nothing. `hint`: the state of one
    option, or None."""

    options: tuple[Option, ...]
    fixed: Mapping[str, str]
    hint: str | None


class _Due(NamedTuple):
    """An effect that has begun and is not due yet. `at`: its time in seconds or turns. `number` orders
    effects of the same time."""

    at: float
    number: int
    state: str
    place: int
    effect: Effect


class Course:
    """A conversation in progress. `values`: the scenario's, by name, for slots and for variables of these
    names. `seed` decides formulations and hints. The conversation ends after `most_turns` turns."""

    def __init__(
        self, machine: Machine, values: Mapping[str, Any], seed: str, *, most_turns: int, hints: bool = True
    ) -> None:
        self.machine = machine
        self.world: dict[str, Value] = make_first_world(machine, values)
        self.state = machine.initial
        self.subtask = next(iter(machine.subtasks), None)
        self.now = 0.0
        self.lock: Lock | None = None
        self.end: End | None = None
        self.turns: list[Turn] = []
        self.events: list[Event] = []
        self._scenario = values
        self._values = {**values, **self.world}
        self._most_turns = most_turns
        self._hints = hints
        self._draw_way, self._draw_hint = (random.Random(f"{seed}/{what}") for what in ("way", "hint"))  # noqa: S311 - reproducible, not secret
        self._history = [self.state]
        self._ways: dict[str, str] = {}  # the drawn formulation of each state that the current state offers
        self._hint: str | None = None
        self._offer: GuidedOffer | None = None
        self._refused = False  # an answer came that does not open the lock
        self._ending: End | None = None  # the end that follows the current utterance
        self._timed: list[_Due] = []
        self._counted: list[_Due] = []
        self._numbers = itertools.count()
        self._begin()

    @property
    def success(self) -> bool | None:
        """The success of an end that the machine does not state: False if any end of the machine states a
        success, else None."""
        machine = self.machine
        ends = (*machine.ends, *(state.end for state in machine.states.values() if state.end))
        return False if any(end.success is not None for end in ends) else None

    @property
    def stuck(self) -> bool:
        """True if no option is offered, and no effect in progress can change that."""
        return self.lock is None and not self._timed and not self._counted and not self.offer().options

    def sees(self, role: str) -> dict[str, Value]:
        """Return the variables of the world that a role may know, with their current values."""
        return select_visible_variables(self.machine, role, self.world)

    # ---- the offer

    def offer(self) -> GuidedOffer:
        """Return the current offer. Each turn of the guided role logs it in `events`."""
        if self._offer is None:
            source, names = self._find_offered_names()
            weights = self.machine.states[source].list_weights(names)
            options = tuple(Option(name, self._find_utterance(name), weights[name]) for name in names)
            self._offer = GuidedOffer(options, self.machine.replies, self._choose_hint(options))
        return self._offer

    def _find_offered_names(self) -> tuple[str, list[str]]:
        """Return the states on offer, and the state whose probabilities apply."""
        if self.lock is not None:
            return self.state, self._list_sayable_states(
                self.state, self.lock.otherwise
            ) if self._refused else []
        if found := self._list_sayable_states(self.state):
            return self.state, found
        used = {*self._history}
        for earlier in dict.fromkeys(reversed(self._history[:-1])):
            if found := [name for name in self._list_sayable_states(earlier) if name not in used]:
                return earlier, found
        return self.state, []

    def _list_sayable_states(self, state: str, names: Sequence[str] | None = None) -> list[str]:
        """Return the states that may follow a state and have a formulation with values for all slots."""
        offered = self.machine.find_offered_states(state, self.world, self.subtask, names)
        return [name for name in offered if self._list_complete_formulations(self.machine.states[name])]

    def _list_complete_formulations(self, state: State) -> list[str]:
        """Return the formulations whose slots all have values; empty if one of the state's `slots` has
        none."""
        values = self._values
        if any(values.get(name) is None for name in state.slots):
            return []
        return [
            one
            for one in state.formulations
            if "{" not in one or all(values.get(name) is not None for name in list_slots(one))
        ]

    def _find_utterance(self, name: str) -> str:
        """Return the utterance of a state: its formulation, drawn when it was first offered, with the current
        values."""
        ways = self._list_complete_formulations(self.machine.states[name])
        way = self._ways.get(name)
        if way not in ways:
            way = ways[0] if len(ways) == 1 else self._draw_way.choice(ways)
            self._ways[name] = way
        said = fill(way, self._values)
        return said[:1].upper() + said[1:]

    def list_slot_values(self, name: str) -> tuple[str, ...]:
        """Return the values in the utterance of an offered state."""
        return tuple(fill(f"{{{slot}}}", self._values) for slot in list_slots(self._ways[name]))

    def _choose_hint(self, options: Sequence[Option]) -> str | None:
        if not self._hints or not options:
            return None
        if all(option.state != self._hint for option in options):
            self._hint = draw(options, self._draw_hint.random())
        return self._hint

    # ---- turns

    # `seconds`: duration of the turn; None: the machine's clock computes it from the words.

    def say_state(self, name: str, text: str | None = None, seconds: float | None = None) -> None:
        """Say an offered state as the guided role; `text` replaces its utterance."""
        option = next(option for option in self.offer().options if option.state == name)
        state, said = self.machine.states[name], text or option.utterance
        self._tell_chosen("state", name, said)
        self._enter(state)
        self._say(self.machine.players.wizard, said, _acts(state), seconds, by="state", state=name)

    def say_fixed(self, name: str, seconds: float | None = None) -> None:
        """Say one of the fixed replies as the guided role."""
        text = self.offer().fixed[name]
        self._tell_chosen("fixed", name, text)
        self._say(self.machine.players.wizard, text, (), seconds, by="fixed", state=name)

    def say_freely(self, text: str, seconds: float | None = None) -> None:
        """Say free text as the guided role; the state stays."""
        self._tell_chosen("free", None, text)
        self._say(self.machine.players.wizard, text, (), seconds, by="free")

    def answer(self, text: str, labels: Sequence[str] = (), seconds: float | None = None) -> None:
        """Say something as the partner, which may open a lock."""
        self._say(self.machine.players.partner, text, tuple(labels), seconds)
        if self.end is None and self.lock is not None:
            if opens_lock(self.lock, text, labels, self._values):
                self.lock = None
                self.tell("unlock", state=self.state)
            else:
                self._refused = True
            self._offer = None

    def finish(self, reason: str, success: bool | None) -> None:
        """End the conversation unless it has ended."""
        if self.end is None:
            self.end = End(reason=reason, success=success)
            self.tell("end", reason=reason, success=success)

    def _tell_chosen(self, by: str, name: str | None, text: str) -> None:
        """Log the offer, its hint, and the choice."""
        offer = self.offer()
        options = [
            {"state": one.state, "utterance": one.utterance, "probability": one.probability}
            for one in offer.options
        ]
        self.tell("offered", state=self.state, options=options)
        if offer.hint is not None:
            self.tell("hint", state=self.state, target=offer.hint)
        followed = None if offer.hint is None else by == "state" and offer.hint == name
        self.tell("chosen", by=by, state=name, utterance=text, followed_hint=followed)

    def tell(self, event: str, **what: Any) -> None:
        """Log an event at the current time and turn."""
        self.events.append({"event": event, "time": self.now, "turn": len(self.turns), **what})

    # ---- consequences

    def _begin(self) -> None:
        if self.world:
            self.tell("world", changes=dict(self.world), cause=None)
        if self.subtask is not None:
            self.tell("subtask", **{"from": None, "to": self.subtask})
        state = self.machine.states[self.state]
        self._advance(state.advances)
        self._start_effects(state, 0)
        self._look_for_end()
        self._finish_ending()

    def _enter(self, state: State) -> None:
        """Enter a state that was just chosen."""
        if self.lock is not None:  # a state in the lock's `otherwise` was chosen
            self.tell("unlock", state=self.state)
        self.tell("state", **{"from": self.state, "to": state.name})
        self.state = state.name
        self._history.append(state.name)
        self._ways.clear()
        self._hint = None
        self._advance(state.advances)
        self.lock, self._refused = state.lock, False
        if state.lock is not None:
            self.tell("lock", state=state.name, waits_for=_waits_for(state.lock))
        self._start_effects(state, len(self.turns) + 1)  # turns count after the utterance
        if self._ending is None and state.end is not None and holds(state.end.when, self.world):
            self._ending = state.end

    def _advance(self, subtask: str | None) -> None:
        if subtask is not None and subtask != self.subtask:
            self.tell("subtask", **{"from": self.subtask, "to": subtask})
            self.subtask = subtask

    def _start_effects(self, state: State, turns: int) -> None:
        """Start a state's effects. Effects after a number of turns are counted from `turns`."""
        for place, effect in enumerate(state.effects):
            if not effect.after_seconds and not effect.after_turns:
                self._apply_effect(effect, state.name)
            elif not (effect.repeat and self._is_running(state.name, place)):
                due = self._begin_effect(state.name, place, effect, turns)
                planned = {**effect.set, **{name: f"{by:+g}" for name, by in effect.add.items()}}
                when = due.at if effect.after_seconds else None
                self.tell("effect", state=state.name, due=when, changes=planned)

    def _is_running(self, state: str, place: int) -> bool:
        return any((one.state, one.place) == (state, place) for one in (*self._timed, *self._counted))

    def _begin_effect(self, state: str, place: int, effect: Effect, turns: int) -> _Due:
        since = self.now if effect.after_seconds else turns
        due = _Due(_find_due_time(since, effect), next(self._numbers), state, place, effect)
        heapq.heappush(self._list_waiting(effect), due)
        return due

    def _list_waiting(self, effect: Effect) -> list[_Due]:
        """Return the queue for an effect: of the clock, or of turns."""
        return self._timed if effect.after_seconds else self._counted

    def _apply_effect(self, effect: Effect, cause: str) -> None:
        """Apply an effect to the world."""
        new = list_changes(effect, self.machine, self.world)
        if not new:
            return
        self.world = {**self.world, **new}
        self._values = {**self._scenario, **self.world}
        self._offer = None
        self.tell("world", changes=new, cause=cause)
        self._look_for_end()

    def _look_for_end(self) -> None:
        if self._ending is None:
            self._ending = next((end for end in self.machine.ends if holds(end.when, self.world)), None)

    def _finish_ending(self) -> None:
        if self._ending is not None:
            self.finish(self._ending.reason, self._ending.success)

    def _say(self, role: str, text: str, labels: tuple[str, ...], seconds: float | None, **data: Any) -> None:
        """Add a turn and let its time pass."""
        place = len(self.turns)
        self.turns.append(Turn(role, text, labels))
        self._offer = None
        limit = self.machine.time_limit
        until = round(self.now + (self.machine.clock.count_seconds(text) if seconds is None else seconds), 3)
        if self._ending is not None:  # the last utterance is said to its end
            self.now = until
            self._finish_ending()
        self._pass_time(until if limit is None else min(until, limit))
        if limit is not None and until >= limit:
            self.finish(TIME_OUT, False)
        self._pass_turn()
        if len(self.turns) >= self._most_turns:
            self.finish(TOO_MANY_TURNS, self.success)
        self.turns[place] = Turn(role, text, labels, {**data, "time": self.now})

    def _pass_time(self, until: float) -> None:
        while self.end is None and self._timed and self._timed[0].at <= until:
            self._apply_due_effect(heapq.heappop(self._timed), at=True)
        if self.end is None:
            self.now = until

    def _pass_turn(self) -> None:
        while self.end is None and self._counted and self._counted[0].at <= len(self.turns):
            self._apply_due_effect(heapq.heappop(self._counted), at=False)

    def _apply_due_effect(self, due: _Due, *, at: bool) -> None:
        if due.number >= MOST_CHANGES:
            self.finish(TOO_MANY_CHANGES, self.success)
            return
        if at:
            self.now = due.at
        self._apply_effect(due.effect, due.state)
        if due.effect.repeat:
            again = due._replace(at=_find_due_time(due.at, due.effect), number=next(self._numbers))
            heapq.heappush(self._list_waiting(due.effect), again)
        self._finish_ending()


def draw(options: Sequence[Option], number: float) -> str:
    """Return the state of the option at `number`, in [0, 1), of the cumulated probabilities, which sum to
    1."""
    for option in options:
        number -= option.probability
        if number < 0:
            return option.state
    return next(option.state for option in reversed(options) if option.probability > 0)  # rounding


def pick_best(options: Sequence[Option]) -> str:
    """Return the state of the most probable option, the first of several."""
    return max(options, key=lambda option: option.probability).state


def _find_due_time(since: float, effect: Effect) -> float:
    """Return the time in seconds, or the turn, at which an effect that began at `since` is due."""
    return round(since + (effect.after_seconds or effect.after_turns), 3)


def _acts(state: State) -> tuple[str, ...]:
    return () if state.act is None else (state.act.capitalize(),)


def _waits_for(lock: Lock) -> str | dict[str, Any]:
    """Describe the answer that opens a lock: `any`, or its conditions."""
    if lock.any_answer:
        return "any"
    found: dict[str, Any] = {"says": list(lock.says), "lacks": list(lock.lacks), "label": lock.label}
    return {key: value for key, value in found.items() if value}
