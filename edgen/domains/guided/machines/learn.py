"""Transition probabilities estimated from conversations, given what was offered at each choice.

If all transitions of a state are offered each time, the estimate is (n + s) / (N + s K): n choices of this
one of N, with K transitions and a smoothing of s (Lidstone; s = 1 is Laplace's). Gates, locks and conditions
mostly leave fewer on offer, and then shares describe the gates more than the machine. So the estimates are
the weights of Luce's choice rule, by which an offered state is chosen in proportion to its weight. They have
maximum likelihood by the MM algorithm (Hunter 2004, Annals of Statistics 32), with s choices of each
transition added, each with all of them on offer. The result equals the formula above if everything is always
offered.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from edgen.domains.guided.machines.model import Machine, State

_STEPS = 1_000
_CLOSE = 1e-9  # change of a probability at which the search ends
_DIGITS = 6  # digits of written probabilities

Choices = Counter[tuple[tuple[str, ...], str]]  # (offered states, chosen state)


class LearnedMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The result of learning."""

    machine: Machine  # with the learned probabilities
    conversations: int  # conversations that were read
    choices: int  # choices that were counted
    unknown: int
    """Choices in unknown states, or of states that are no transition of the current one: while its lock was
    shut, or back to a transition of an earlier state."""
    kept: tuple[str, ...]  # states without a choice, whose probabilities stay
    smoothing: float  # choices added to each transition


class ChoiceCounts:
    """The choices of conversations, by state. Call `see` for each conversation first."""

    def __init__(self) -> None:
        self.conversations = 0
        self.by_state: dict[str, Choices] = defaultdict(Counter)

    def see(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Count the choices of one conversation's events. The last `offered` event has the offer of a
        choice."""
        self.conversations += 1
        here = ""
        offered: tuple[str, ...] = ()
        for event in events:
            kind = event.get("event")
            if kind == "offered":
                here = str(event.get("state"))
                offered = tuple(sorted({str(one["state"]) for one in event.get("options") or ()}))
            elif kind == "chosen" and event.get("by") == "state" and here:
                self.by_state[here][offered, str(event.get("state"))] += 1

    def count_transitions(self) -> dict[tuple[str, str], int]:
        """Return how often each state followed each, by (from, to), for a picture."""
        found: Counter[tuple[str, str]] = Counter()
        for state, choices in self.by_state.items():
            for (_, chosen), count in choices.items():
                found[state, chosen] += count
        return dict(sorted(found.items()))


def learn(machine: Machine, counts: ChoiceCounts, smoothing: float = 1.0) -> LearnedMachine:
    """Return the machine with probabilities by these counts. `smoothing`: choices added to each transition;
    at least 0."""
    states, kept = {}, []
    counted = unknown = 0
    for name, state in machine.states.items():
        choices = counts.by_state.get(name, Counter())
        ours = _of_transitions(state, choices)
        counted += ours.total()
        unknown += choices.total() - ours.total()
        if state.transitions and ours:
            state = msgspec.structs.replace(state, probabilities=estimate(state.transitions, ours, smoothing))
        elif state.transitions:
            kept.append(name)
        states[name] = state
    unknown += sum(choices.total() for name, choices in counts.by_state.items() if name not in machine.states)
    return LearnedMachine(
        machine=msgspec.structs.replace(machine, states=states),
        conversations=counts.conversations,
        choices=counted,
        unknown=unknown,
        kept=tuple(kept),
        smoothing=smoothing,
    )


def _of_transitions(state: State, choices: Choices) -> Choices:
    """Return the choices among a state's own transitions, with the offered ones of these."""
    own = frozenset(state.transitions)
    found: Choices = Counter()
    for (offered, chosen), count in choices.items():
        if chosen in own:
            there = {*offered, chosen}
            found[tuple(name for name in state.transitions if name in there), chosen] += count
    return found


def estimate(transitions: tuple[str, ...], choices: Choices, smoothing: float) -> dict[str, float]:
    """Return the probability of each transition, rounded to six digits. Without smoothing, a transition that
    was never chosen gets 0."""
    wins = dict.fromkeys(transitions, smoothing)
    sets: Counter[tuple[str, ...]] = Counter()
    if smoothing:
        sets[transitions] = 0  # the loop adds `smoothing` of each transition, a float
    for (offered, chosen), count in choices.items():
        wins[chosen] += count
        sets[offered] += count
    added = smoothing * len(transitions)
    weights = dict.fromkeys(transitions, 1 / len(transitions))
    for _ in range(_STEPS):
        below = dict.fromkeys(transitions, 0.0)
        for offered, count in sets.items():
            total = sum(weights[name] for name in offered)
            times = count + (added if offered == transitions else 0.0)
            for name in offered:
                below[name] += times / total if total > 0 else 0.0
        new = {name: wins[name] / below[name] if below[name] > 0 else 0.0 for name in transitions}
        total = sum(new.values())
        new = {name: one / total for name, one in new.items()}
        change = max(abs(new[name] - weights[name]) for name in transitions)
        weights = new
        if change < _CLOSE:
            break
    return {name: round(weight, _DIGITS) for name, weight in weights.items()}
