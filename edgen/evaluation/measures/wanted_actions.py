"""How often a response takes the action that it was asked for. All responses to a turn count.

Memory: some numbers for each response that was asked for an action.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from edgen.core.values import Turn
from edgen.evaluation.figures import Block, intervals_picture
from edgen.evaluation.measure import ArmResult, Compared, Measure, figure_kinds, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import row, share_with_interval
from edgen.space import Space
from edgen.stats.intervals import Estimate, ShareCount


class WantedActions(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of responses that take the action that they were asked for: of all, and by that action. None: no
    response was asked for one."""

    taken: Estimate | None
    actions: dict[str, Estimate]


class WantedActionsCount:
    def __init__(self) -> None:
        self._by_action: defaultdict[str, ShareCount] = defaultdict(ShareCount)

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        for said, wanted in asked_for(sample.turns):
            self._by_action[wanted].add(sample.scenario.index, wanted in said.labels)

    def result(self) -> WantedActions:
        taken, actions = ShareCount(), {}
        for action, counted in sorted(self._by_action.items(), key=lambda one: (-one[1].of, one[0])):
            taken += counted
            actions[action] = counted.result()
        return WantedActions(
            taken=taken.result(), actions={action: one for action, one in actions.items() if one}
        )


class WantedActionsMeasure(Measure[WantedActions]):
    name = "wanted_actions"
    definition = (
        "Of responses that were asked for an action (`wanted` in a job): the share that carries it, over all and by action. "
        "edgen's own."
    )
    order = 15
    counts = WantedActionsCount
    section = "behaviour"
    compares = (
        Compared(
            name="wanted_actions", title="wanted actions taken", kind="share", top="taken", bottom="asked",
            over="responses asked for an action",
            definition="Responses that carry the action that they were asked for.",
        ),
    )  # fmt: skip
    nothing = "No response was asked for an action."
    figures = figure_kinds("asked", "taken")

    def lines(self, value: WantedActions) -> Iterator[str]:
        if value.taken is None:
            return
        yield row(
            "wanted actions taken", f"{share_with_interval(value.taken)} of {value.taken.n:,} responses"
        )
        for action, taken in value.actions.items():
            yield row(f"  {action}", f"{share_with_interval(taken)} of {taken.n:,}")

    def blocks(self, found: Sequence[ArmResult[WantedActions]]) -> Iterator[Block]:
        actions = dict.fromkeys(action for one in found for action in one.value.actions)
        shares = [(action, lambda value, action=action: value.actions.get(action)) for action in actions]
        yield from intervals_picture(
            "wanted-actions", "Responses that take the action that was wanted", share_intervals(found, shares),
            "Low: the model does not do what it is asked for, or calls it something else.",
        )  # fmt: skip

    def sums(self, sample: Sample, space: Space) -> Iterator[tuple[str, float]]:  # noqa: ARG002
        """Responses that were asked for an action, and those that take it."""
        for said, wanted in asked_for(sample.turns):
            yield "asked", 1
            yield "taken", wanted in said.labels


def asked_for(turns: Iterable[Turn]) -> Iterator[tuple[Turn, str]]:
    """Every response that was asked for an action and says what it does, and the action."""
    for turn in turns:
        for said in (turn, *turn.alternatives):
            wanted = said.data.get("wanted")
            if said.labels and isinstance(wanted, str):
                yield said, wanted


MEASURE = WantedActionsMeasure()
