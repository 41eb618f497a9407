"""A state machine as frozen values: the utterances of the wizard, their conditions, and their effects on the
world.

There are two roles: the **wizard**, who says what the machine offers (or writes freely), and the **partner**,
who answers in any words. A state is an utterance of the wizard: choosing the state means to say one of its
formulations and to be in the state. Its transitions are the states that may be said next. The files are those
of CRWIZ (Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020; github.com/JChiyah/crwiz), followed by keys of our
own.

A state offers those of its transitions that have a formulation, whose `subtask` is missing or the current
one, and whose `when` holds. If there is none, unused transitions of earlier states are offered, the latest
state first, as CRWIZ does. While a state is locked, only fixed replies are offered.

Nothing here runs a conversation, reads a file or draws a number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import msgspec

Value = str | float | bool
"""The value of a variable of the world. Whole numbers are floats, too: 2 and 2.0 are one value."""
World = Mapping[str, Value]
Act = Literal["request", "interaction", "action", "update"]
Kind = Literal["number", "text", "boolean", "choice"]


class Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition on one variable: every given part must hold. In a file, a value stands for `one_of` with
    only this value (`robot: husky`), a list for `one_of` (`robot: [husky, quad]`), a mapping for the rest
    (`fire: {at_least: 1, below: 4}`)."""

    one_of: tuple[Value, ...] = ()
    """Any of these values; empty: any value."""
    at_least: float | None = None
    """The value is a number of at least this."""
    below: float | None = None
    """The value is a number below this."""

    def holds(self, value: Value) -> bool:
        """Return whether the condition holds for a value. Bounds never hold for a text or a truth value."""
        if self.one_of and not any(_is_same_value(value, one) for one in self.one_of):
            return False
        if self.at_least is None and self.below is None:
            return True
        if isinstance(value, bool | str):
            return False
        return (self.at_least is None or value >= self.at_least) and (
            self.below is None or value < self.below
        )


def _is_same_value(a: Value, b: Value) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


When = dict[str, Condition]
"""Conditions by variable; all of them have to hold. Empty: always."""


def holds(when: Mapping[str, Condition], world: World) -> bool:
    """Return whether all conditions hold. A condition on an unknown variable does not hold."""
    return all(name in world and condition.holds(world[name]) for name, condition in when.items())


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of the world that begins when its state is chosen (for the first state: with the
    conversation).

    It happens at once, or after `after_seconds` of the clock or `after_turns` turns (of either role). Only
    one of the two can be given.
    """

    set: dict[str, Value] = {}
    """New values by variable."""
    add: dict[str, float] = {}
    """Numbers to add to number variables; the sum is kept within the variable's `least` and `most`."""
    after_seconds: float = 0
    """Seconds of the conversation's clock until it happens; 0: at once."""
    after_turns: int = 0
    """Turns until it happens; 0: at once."""
    when: When = {}
    """Conditions that are checked when the effect is due: if they do not hold then, nothing changes."""
    repeat: bool = False
    """Repeat the effect, each time after the same span, until the conversation ends. Only with
    `after_seconds` or `after_turns`. An effect that is running is not started again when its state is chosen
    again."""


class Lock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lock makes its state wait for the partner. Until the partner gives an answer that opens it, the
    machine offers only fixed replies. Without any condition (`lock: any` in a file), every answer opens it.

    After an answer that does not open it, the states in `otherwise` are offered besides fixed replies, under
    their own `subtask` and `when`. Choosing one of them leaves the locked state. Without `otherwise`, the
    lock stays.
    """

    says: tuple[str, ...] = ()
    """Words or phrases, slots filled, of which the answer must hold at least one: as whole words, in any
    case. A word that is only a slot stands for all elements of its value if that is a list."""
    lacks: tuple[str, ...] = ()
    """Words or phrases, slots filled, of which the answer must hold none."""
    label: str | None = None
    """A label that the partner's turn must have."""
    otherwise: tuple[str, ...] = ()
    """States that are offered after an answer that does not open the lock."""

    @property
    def any_answer(self) -> bool:
        """True if every answer opens the lock."""
        return not self.says and not self.lacks and self.label is None


class End(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An end of a conversation."""

    reason: str
    """The reason as one word, such as `fire_out`, or CRWIZ's own `dialogue_completed`."""
    success: bool | None = None
    """Whether the task succeeded; None if that does not apply."""
    when: When = {}
    """In a machine's `ends`: the conversation ends once this holds. In a state: it ends there if this holds
    when the state is chosen (after effects that happen at once)."""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One possible utterance of the wizard, and its consequences. The first six keys are CRWIZ's."""

    name: str  # unique in the machine
    formulations: tuple[str, ...] = ()
    """Ways to say it. One is drawn, and kept while the current state stays the same. `{name}` and
    `{name.field}` are slots (`fill`). A state without formulations is never offered: `start` has none."""
    transitions: tuple[str, ...] = ()
    """`transition_states`: the states that may follow. Fixed replies may be among them, as in CRWIZ."""
    probabilities: dict[str, float] = {}
    """`transition_probabilities` as written. `find_weight` and `list_weights` interpret them."""
    subtask: str | None = None
    """A gate: the state is offered only in this sub-task; None: always."""
    slots: tuple[str, ...] = ()
    """Slots that must have a value, besides those in the formulations."""

    lock: Lock | None = None
    """The lock that must open before anything else is offered; None: the wizard may continue at once."""
    effects: tuple[Effect, ...] = ()
    """Effects on the world."""
    when: When = {}
    """The state is offered only while these conditions hold."""
    advances: str | None = None
    """The sub-task that begins with this state; None: no change."""
    end: End | None = None
    """The end of the conversation with this utterance."""
    act: Act | None = None
    """CRWIZ's kind of dialogue act, one of four; None: not given."""

    @property
    def leads_to(self) -> tuple[str, ...]:
        """All states that may follow: the transitions, and the lock's `otherwise`."""
        return tuple(dict.fromkeys((*self.transitions, *(self.lock.otherwise if self.lock else ()))))

    @property
    def is_final(self) -> bool:
        """True if the conversation always ends here."""
        return self.end is not None and not self.end.when

    def find_weight(self, target: str) -> float:
        """Return the probability of a transition as written: 0 if it is missing. If all are 0, all
        transitions get the same probability, as in CRWIZ."""
        if target not in self.transitions:
            return 0.0
        if not any(self.probabilities.get(one, 0) for one in self.transitions):
            return 1 / len(self.transitions)
        return self.probabilities.get(target, 0.0)

    def list_weights(self, offered: Iterable[str]) -> dict[str, float]:
        """Return the probability of each offered state as the next one, in the given order. They sum to 1:
        only the offered states count. If all are 0, all are the same."""
        found = {name: self.find_weight(name) for name in offered}
        total = sum(found.values())
        if total <= 0:
            return dict.fromkeys(found, 1 / len(found)) if found else {}
        return {name: weight / total for name, weight in found.items()}


class Variable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variable of the world. Its first value is the scenario's value of the dimension with the same name,
    if there is one, else `initial`."""

    kind: Kind
    """The type of its values; `choice` is one of the texts in `values`."""
    initial: Value | None = None
    """The first value; None: the space must have a dimension with this name."""
    values: tuple[str, ...] = ()
    """The values of a `choice`; empty for the other kinds."""
    least: float | None = None
    """The minimum of a number: lower results become this."""
    most: float | None = None
    """The maximum of a number: higher results become this."""
    sees: tuple[str, ...] = ()
    """The names of the roles that may know it. If a file names none: only the wizard."""
    label: str | None = None
    """A label for people in place of the name."""


class Clock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The simulated clock, which gives each turn a duration. A person's turn takes the measured time."""

    seconds_per_turn: float = 2.0
    """Seconds of any turn, however short."""
    seconds_per_word: float = 0.4
    """Additional seconds of each word; 0.4 is 150 words a minute."""

    def count_seconds(self, text: str) -> float:
        """Return the seconds that it takes to say a text."""
        return self.seconds_per_turn + self.seconds_per_word * len(text.split())


class Players(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The names of the two roles in the space."""

    wizard: str = "Wizard"
    partner: str = "Operator"


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole machine. The folder's `machine.yaml` holds everything that CRWIZ's folders do not. Without that
    file the defaults apply, which are the constants of CRWIZ's code."""

    name: str  # of the machine
    states: dict[str, State]
    """The states by name, in alphabetical order. Every name that they refer to is here or in `fixed`. A
    machine with unknown names can be loaded and checked, but not run."""
    description: str | None = None
    """Its subject, in a sentence or two."""
    fixed: dict[str, str] = {}
    """Short replies, by name, that may be said at any time and change nothing. Those with an empty text are
    never offered."""
    initial: str = "start"
    """The first state, which is not said."""
    world: dict[str, Variable] = {}
    """The variables of the world by name."""
    needs: tuple[str, ...] = ()
    """Other names that texts take from the space: dimensions, and fields of their entries
    (`topic.answer`)."""
    subtasks: tuple[str, ...] = ()
    """The sub-tasks in order, beginning with the first one; empty: no sub-tasks."""
    ends: tuple[End, ...] = ()
    """Ends that apply in any state, each with `when`; the first that holds counts."""
    time_limit: float | None = 360.0
    """Seconds of the clock until the conversation ends without success, for the reason `time_out`; None: no
    limit."""
    clock: Clock = Clock()  # the simulated clock
    players: Players = Players()  # names of the two roles
    questionnaire: str | None = "crwiz"
    """The questionnaire for both roles afterwards, by name or file; None: no questionnaire."""

    @property
    def needed(self) -> tuple[str, ...]:
        """All names that the space must have: `needs`, and the variables without an initial value."""
        drawn = [name for name, variable in self.world.items() if variable.initial is None]
        return tuple(dict.fromkeys([*self.needs, *drawn]))

    @property
    def replies(self) -> dict[str, str]:
        """The fixed replies that can be said, by name."""
        return {name: text for name, text in self.fixed.items() if text.strip()}

    def find_offered_states(
        self, state: str, world: World, subtask: str | None, names: Collection[str] | None = None
    ) -> tuple[str, ...]:
        """Return the states that may be said next, in the order of the state's file, without fixed replies.
        With `names` (a lock's `otherwise`), they are chosen from these instead of the state's transitions.
        Locks and history are ignored."""
        listed = self.states[state].transitions if names is None else names
        return tuple(name for name in dict.fromkeys(listed) if self.may_be_said(name, world, subtask))

    def may_be_said(self, name: str, world: World, subtask: str | None) -> bool:
        """Return whether a state has a formulation, its gate is open and its conditions hold."""
        state = self.states.get(name)
        return (
            state is not None
            and bool(state.formulations)
            and state.subtask in (None, subtask)
            and holds(state.when, world)
        )
