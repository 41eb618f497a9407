"""The share of responses with the requested action. All responses to a turn count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from edgen.plugin import Measure, Sample, Share, Space, Turn, Words, figure_kinds
from edgen.plugin.measures import Compared, Panel


class WantedActionsMeasure(Measure[Any]):
    name = "wanted_actions"
    definition = (
        "Of responses that were asked for an action (`wanted` in a job): the share with that action, over "
        "all and by action. edgen's own."
    )
    order = 15
    section = "behaviour"
    nothing = "No response was asked for an action."
    figures = figure_kinds("asked", "taken")
    aggregates = (
        Share("taken", "taken", "asked", label="wanted actions taken", says="{it} of {it:n} responses"),
        Share("actions", "taken_of", "asked_of", label="  {key}", title="{key}", by_key=True),
    )
    panels = (
        Panel(
            "wanted-actions", "Responses that take the action that was wanted", ("actions",),
            "Low: the model does not take the wanted action, or gives it another name.",
        ),
    )  # fmt: skip
    compares = (
        Compared(
            name="wanted_actions", title="wanted actions taken", kind="share", top="taken", bottom="asked",
            over="responses asked for an action",
            definition="Responses that carry the action that they were asked for.",
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Count the responses with a requested action, those that take it, and both by action."""
        asked, taken = Counter[str](), Counter[str]()
        for said, wanted in find_asked_responses(sample.turns):
            asked[wanted] += 1
            taken[wanted] += wanted in said.labels
        if not asked:
            return {}
        return {"asked": asked.total(), "taken": taken.total(), "asked_of": asked, "taken_of": taken}


def find_asked_responses(turns: Iterable[Turn]) -> Iterator[tuple[Turn, str]]:
    """Yield every response with a requested action and labels of its own, and the requested action."""
    for turn in turns:
        for said in (turn, *turn.alternatives):
            wanted = said.data.get("wanted")
            if said.labels and isinstance(wanted, str):
                yield said, wanted


MEASURE = WantedActionsMeasure()
