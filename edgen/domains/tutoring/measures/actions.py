"""Actions of utterances: the frequency of each action and each set of actions, and the tutors' actions after
each action of students.

All responses to a turn count, even those that the conversation did not continue from. Memory grows only with
the number of different sets of actions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

import msgspec

from edgen.domains.tutoring.served_turns import list_responses
from edgen.plugin import Measure, OwnCount, Sample, Space, Total, Words
from edgen.plugin.measures import Aggregate, ByKey, Compared, Crossed, OwnComparisons, Panel

_SHOWN = 8  # sets shown of a role


class RoleActions(msgspec.Struct, frozen=True, kw_only=True):
    """The utterances of a role with actions. `shares`: of each action. `sets`: shares of each set of actions,
    the most frequent first. `lead`: the lead of the first set over the next, as a share."""

    utterances: int
    shares: dict[str, float]
    sets: dict[str, float]
    lead: float


class Actions(msgspec.Struct, frozen=True, kw_only=True):
    """Actions by role. `responses`: for each action that a student takes alone, the number of responses, and
    the share with each action."""

    roles: dict[str, RoleActions]
    responses: dict[str, tuple[int, dict[str, float]]]


class ActionsCount:
    def __init__(self) -> None:
        self._actions: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sets: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._after: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._responses: Counter[str] = Counter()

    def see(self, sample: Sample, words: Words) -> None:
        before: tuple[str, ...] = ()
        speaker = None
        for turn in sample.turns:
            for said in list_responses(turn):
                if not said.labels:
                    continue
                self._actions[said.role].update(said.labels)
                self._sets[said.role][" + ".join(sorted(said.labels))] += 1
                if len(before) == 1 and speaker != said.role:
                    self._responses[before[0]] += 1
                    self._after[before[0]].update(said.labels)
            before, speaker = turn.labels, turn.role

    def result(self) -> Actions:
        return Actions(
            roles={role: self._of_role(role) for role in sorted(self._sets, reverse=True)},
            responses={
                action: (count, _compute_shares(self._after[action], count))
                for action, count in self._responses.most_common()
                if action in self._find_student_actions()
            },
        )

    def _find_student_actions(self) -> frozenset[str]:
        """Return the actions of all roles but the tutor's."""
        return frozenset(
            action for role, counts in self._actions.items() if role != "Tutor" for action in counts
        )

    def _of_role(self, role: str) -> RoleActions:
        sets = self._sets[role]
        total = sets.total()
        first, second = ([count for _, count in sets.most_common(2)] + [0, 0])[:2]
        return RoleActions(
            utterances=total,
            shares=_compute_shares(self._actions[role], total),
            sets=_compute_shares(Counter(dict(sets.most_common(_SHOWN))), total),
            lead=(first - second) / total,
        )


class ActionsMeasure(OwnCount, OwnComparisons, Measure[Actions]):
    name = "actions"
    definition = (
        "Shares of utterances with each action and with each set of actions; the lead of the most "
        "frequent set; and the shares of responses with each action to a turn with a single action. All "
        "responses to a turn count, except those that were served again. As in CIMA (Stasaski, Kao and "
        "Hearst 2020, section 4)."
    )
    order = 12
    counts = ActionsCount
    section = "behaviour"
    nothing = "No turn carries actions."

    def sums(self, sample: Sample, space: Space | None) -> Iterator[tuple[str, float]]:
        """Count the utterances of each role, and those with each action."""
        for turn in sample.turns:
            for said in list_responses(turn):
                if said.labels:
                    yield said.role, 1
                    yield from ((f"{said.role}: {action}", 1) for action in said.labels)

    def compared(self, sums: Collection[str]) -> Iterator[Compared]:
        """Yield the share of a role's utterances with each action."""
        for column in sums:
            role, colon, action = column.partition(": ")
            if colon:
                yield Compared(
                    name=f"action_{role}_{action}".lower().replace(" ", "_"), title=f"{role}: {action}",
                        kind="share",
                    top=column, bottom=role, over=f"utterances of the {role.lower()}",
                    definition=f"Utterances of the {role.lower()} with the action {action}, of those with "
                    "any; all responses count.",
                )  # fmt: skip

    aggregates = (
        ByKey(
            "roles",
            each=(
                Total("utterances", label="{key}'s utterances", says="{it:utterance}"),
                Aggregate("shares", label="  actions", title="{key}"),
                Aggregate("sets", label="  sets"),
                Aggregate("lead", label="  the first set leads by", says="{it:points}"),
            ),
        ),
        Crossed("responses", label="after {key} alone", heads=("after a student's", "responses")),
    )
    panels = (
        Panel(
            "actions", "Utterances with each action", ("roles.shares",),
            "Look for an action that hardly occurs, and for a tutor who only hints.", colour_keys=True,
        ),
        Panel("responses", "Responses by what the student did", ("responses",)),
    )  # fmt: skip


def _compute_shares(counts: Counter[str], total: int) -> dict[str, float]:
    return {name: count / total for name, count in counts.most_common()}


MEASURE = ActionsMeasure()
