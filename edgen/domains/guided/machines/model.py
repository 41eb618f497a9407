"""A state machine as frozen values: the utterances of the wizard, their conditions, and their effects on the
world.

Two play: the **wizard**, who says what the machine offers (or writes freely), and the **partner**, who
answers in any words. A state is an utterance of the wizard's: to choose it is to say one of its formulations
and to be in it. The states that it leads to are what may be said next. The files are those of CRWIZ (Chiyah
Garcia, Lopes, Liu and Hastie, LREC 2020; github.com/JChiyah/crwiz), with keys of our own after theirs.

A state offers those of the states that it leads to that have a formulation, whose `subtask` is missing or the
current one, and whose `when` holds. If there is none of them, what earlier states lead to and was not used
yet is offered, the latest state first, as CRWIZ does. While a state is locked nothing is offered but fixed
replies.

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
    """A condition on one variable: every part that is given must hold. In a file a value stands for `one_of`
    with it alone (`robot: husky`), a list for `one_of` (`robot: [husky, quad]`), a mapping for the rest
    (`fire: {at_least: 1, below: 4}`)."""

    one_of: tuple[Value, ...] = ()
    """Any of these values; empty: any value."""
    at_least: float | None = None
    """It is a number of this or more."""
    below: float | None = None
    """It is a number less than this."""

    def holds(self, value: Value) -> bool:
        """Return whether a value is like that. A text or a truth value is at least nothing, and below
        nothing."""
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
    """Return whether all conditions hold. A variable that the world does not have is like nothing."""
    return all(name in world and condition.holds(world[name]) for name, condition in when.items())


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of the world that begins when its state is chosen (those of the first state with the
    conversation). It is made at once, or when `after_seconds` of the clock or `after_turns` turns (of either
    role) have passed, whichever of the two is given; never both."""

    set: dict[str, Value] = {}
    """New values by variable."""
    add: dict[str, float] = {}
    """Numbers to add to number variables; the sum is kept within the variable's `least` and `most`."""
    after_seconds: float = 0
    """Seconds of the conversation's clock until it happens; 0: at once."""
    after_turns: int = 0
    """Turns until it happens; 0: at once."""
    when: When = {}
    """Looked at when it is due: if this does not hold then, nothing changes."""
    repeat: bool = False
    """It happens again and again, each time after the same span, as long as the conversation lasts. Only with
    `after_seconds` or `after_turns`. The same effect of the same state is running once at most: to choose the
    state again starts no second one."""


class Lock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A state waits for the partner. From the moment it is chosen until the partner has given an answer that
    opens it, the machine offers nothing but fixed replies. Without any condition (`lock: any` in a file)
    every answer opens it.

    Each answer that does not open it leads to what `otherwise` names: those states are then offered besides
    fixed replies, under their own `subtask` and `when`; to choose one leaves the locked state. Without
    `otherwise` it goes on waiting.
    """

    says: tuple[str, ...] = ()
    """Words or phrases of which the answer holds at least one, slots filled. Whole words, in any case. One
    that is a slot alone stands for all texts of its value, where that is a list."""
    lacks: tuple[str, ...] = ()
    """Words or phrases of which the answer holds none, slots filled."""
    label: str | None = None
    """A label that the partner's turn has."""
    otherwise: tuple[str, ...] = ()
    """States that are offered once an answer has come that does not open it."""

    @property
    def any_answer(self) -> bool:
        """True if every answer opens it."""
        return not self.says and not self.lacks and self.label is None


class End(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An end of a conversation."""

    reason: str
    """Why, as one word (`fire_out`, `dialogue_completed`, as CRWIZ calls its own)."""
    success: bool | None = None
    """Whether the task was done; None where that is no question."""
    when: When = {}
    """In `ends` of a machine: it ends as soon as this holds. With a state: it ends there if this holds when
    the state is chosen (after its effects that happen at once)."""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that the wizard may say, and what follows. The first six keys are CRWIZ's."""

    name: str  # unique in the machine
    formulations: tuple[str, ...] = ()
    """Ways to say it, of which one is drawn and kept as long as the state at hand does not change. `{name}`
    and `{name.field}` are slots (`fill`). A state without any is never offered: `start` has none."""
    transitions: tuple[str, ...] = ()
    """`transition_states`: the states that it leads to. Fixed replies may be among them, as in CRWIZ."""
    probabilities: dict[str, float] = {}
    """`transition_probabilities` as written; `find_weight` and `list_weights` say what they mean."""
    subtask: str | None = None
    """A gate: it is offered only while this sub-task is the current one; None: always."""
    slots: tuple[str, ...] = ()
    """Slots that its formulations have to be able to fill, besides those that stand in them."""

    lock: Lock | None = None
    """The lock that must open before anything else is offered; None: the wizard may continue at once."""
    effects: tuple[Effect, ...] = ()
    """Changes of the world."""
    when: When = {}
    """It is offered only while this holds of the world."""
    advances: str | None = None
    """The sub-task that is the current one from here on; None: no change."""
    end: End | None = None
    """The conversation ends with this utterance."""
    act: Act | None = None
    """CRWIZ's kind of dialogue act, one of four; its name is the act. None: not given."""

    @property
    def leads_to(self) -> tuple[str, ...]:
        """All states that may follow: its transitions, and where its lock sends an answer that does not open
        it."""
        return tuple(dict.fromkeys((*self.transitions, *(self.lock.otherwise if self.lock else ()))))

    @property
    def is_final(self) -> bool:
        """True if the conversation ends here in any state of the world."""
        return self.end is not None and not self.end.when

    def find_weight(self, target: str) -> float:
        """Return the probability of a transition as it is written: 0 where none is, and the same for all that
        are listed where all are 0, as in CRWIZ."""
        if target not in self.transitions:
            return 0.0
        if not any(self.probabilities.get(one, 0) for one in self.transitions):
            return 1 / len(self.transitions)
        return self.probabilities.get(target, 0.0)

    def list_weights(self, offered: Iterable[str]) -> dict[str, float]:
        """Return the probability of each of these states as the next one, in their order; they sum to 1.
        Those of the states that are really offered count; if all of them are 0, all are the same."""
        found = {name: self.find_weight(name) for name in offered}
        total = sum(found.values())
        if total <= 0:
            return dict.fromkeys(found, 1 / len(found)) if found else {}
        return {name: weight / total for name, weight in found.items()}


class Variable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variable of the world. It begins with what the scenario has for the space's dimension of the same
    name, if there is one, else with `initial`."""

    kind: Kind
    """`choice` is a text out of `values`."""
    initial: Value | None = None
    """Its value at the start; None: the space has to have a dimension of this name."""
    values: tuple[str, ...] = ()
    """The values of a `choice`; empty for the other kinds."""
    least: float | None = None
    """A number never falls below this: it stops there."""
    most: float | None = None
    """A number never rises above this: it stops there."""
    sees: tuple[str, ...] = ()
    """The roles that may know it, by name. Nothing said in a file: the wizard alone."""
    label: str | None = None
    """The label that people read instead of its name."""


class Clock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The simulated clock: each turn of either role takes so long. A person's turn takes the time it really
    took."""

    seconds_per_turn: float = 2.0
    """Seconds of any turn, however short."""
    seconds_per_word: float = 0.4
    """Additional seconds of each word; 0.4 is 150 words a minute."""

    def count_seconds(self, text: str) -> float:
        """Return how many seconds it takes to say a text."""
        return self.seconds_per_turn + self.seconds_per_word * len(text.split())


class Players(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The names of the two roles, as the space has them."""

    wizard: str = "Wizard"
    partner: str = "Operator"


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole machine. What CRWIZ's folders do not hold stands in the folder's `machine.yaml`; without that
    file the defaults here are what CRWIZ's code has fixed."""

    name: str  # of the machine
    states: dict[str, State]
    """By name, in the order of their names. Every name that is led to is here or in `fixed` (a machine with
    dangling names can be loaded and checked, and is not run)."""
    description: str | None = None
    """Its subject, in a sentence or two."""
    fixed: dict[str, str] = {}
    """Short replies by name that may be said at any time and change nothing; those with an empty text are
    never offered."""
    initial: str = "start"
    """The state in which it begins; it is not said."""
    world: dict[str, Variable] = {}
    """The variables of the world by name."""
    needs: tuple[str, ...] = ()
    """Names that its texts take from the space besides: dimensions, and fields of their entries
    (`topic.answer`)."""
    subtasks: tuple[str, ...] = ()
    """The sub-tasks in their order; the first is the current one at the start. Empty: there are none."""
    ends: tuple[End, ...] = ()
    """It ends as soon as the world is like that, each with `when`; the first that holds counts."""
    time_limit: float | None = 360.0
    """Seconds of the clock after which it ends with the reason `time_out` and without success; None: no
    limit."""
    clock: Clock = Clock()  # the simulated one
    players: Players = Players()  # names of the two roles
    questionnaire: str | None = "crwiz"
    """The questionnaire for both roles afterwards, by name or file; None: no questionnaire."""

    @property
    def needed(self) -> tuple[str, ...]:
        """All that the space has to have: `needs`, and the variables that have no value of their own."""
        drawn = [name for name, variable in self.world.items() if variable.initial is None]
        return tuple(dict.fromkeys([*self.needs, *drawn]))

    @property
    def replies(self) -> dict[str, str]:
        """The fixed replies that can be said, by name."""
        return {name: text for name, text in self.fixed.items() if text.strip()}

    def find_offered_states(
        self, state: str, world: World, subtask: str | None, names: Collection[str] | None = None
    ) -> tuple[str, ...]:
        """Return the states that may be said next in a state, in the order of its file: none of them fixed.
        `names`: of these (what a lock's `otherwise` names), instead of those that the state leads to. Locks
        and history are not looked at."""
        listed = self.states[state].transitions if names is None else names
        return tuple(name for name in dict.fromkeys(listed) if self.may_be_said(name, world, subtask))

    def may_be_said(self, name: str, world: World, subtask: str | None) -> bool:
        """Return whether a state has something to say, its gate is open and its conditions hold."""
        state = self.states.get(name)
        return (
            state is not None
            and bool(state.formulations)
            and state.subtask in (None, subtask)
            and holds(state.when, world)
        )
