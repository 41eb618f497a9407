"""Agreement of a labeller with the speakers on the actions of utterances: by role, for sets and single
labels.

A record must hold both: the speaker's labels as a turn's labels, the labeller's in its data. All responses to
a turn count. Memory: some numbers for each scenario and label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgen.domains.tutoring.served_turns import LABELLER
from edgen.plugin import Measure, OwnCount, Sample, Share, Space, Turn, Words
from edgen.plugin.measures import Aggregate, ByKey, Compared, Panel, TablePanel
from edgen.plugin.statistics import LabelCounts, LabelFigures


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of the labeller's labels with the speaker's, by role."""

    roles: dict[str, LabelFigures]


class LabelAgreementCount:
    def __init__(self) -> None:
        self._roles: defaultdict[str, LabelCounts] = defaultdict(LabelCounts)

    def see(self, sample: Sample, words: Words) -> None:
        for turn, given in find_labelled_twice(sample.turns):
            self._roles[turn.role].add(sample.scenario.index, turn.labels, given)

    def result(self) -> LabelAgreement:
        return LabelAgreement(
            roles={role: counts.figures() for role, counts in sorted(self._roles.items(), reverse=True)}
        )


class LabelAgreementMeasure(OwnCount, Measure[LabelAgreement]):
    name = "label_agreement"
    definition = (
        "Of utterances whose actions both the speaker and a labeller state: the share with the same set "
        "of actions, and precision, recall and F1 of the labeller against the speaker, by action, micro "
        "(over the counts of all actions) and macro (the mean over actions); Sokolova and Lapalme 2009. "
        "Intervals are by the bootstrap over scenarios."
    )
    order = 14
    counts = LabelAgreementCount
    section = "behaviour"
    compares = (
        Compared(
            name="label_agreement", title="labeller agrees", kind="share", top="alike", bottom="units",
            over="utterances with both labels",
            definition="Utterances whose set of actions is the same by the speaker and by the labeller.",
        ),
    )  # fmt: skip
    nothing = "No turn carries labels of its speaker and of a labeller."
    aggregates = (
        ByKey(
            "roles",
            each=(
                Share("exact", label="{key}'s, labelled alike", says="{it} of {units}", title="{key}: same "
                "actions"),
                Aggregate("micro", label="  micro F1", says="{it.f1}"),
                Aggregate("macro", label="  macro F1", says="{it.f1}"),
                Aggregate("units", label="  by action", says="precision, recall, F1 (how often it is named)"),
                Aggregate(
                    "labels", label="  {key}", says="{it.precision.value:.1%}, {it.recall.value:.1%}, "
                    "{it.f1} ({it.gold})"
                ),
            ),
        ),
    )  # fmt: skip
    panels = (
        Panel(
            "label-agreement", "Agreement of labeller and speaker", ("roles.exact",),
            "Low: one of the two does not know what the actions mean.",
        ),
        TablePanel(
            "The labeller against the speaker", "roles.labels",
            ("action", "by the speaker", "the labeller's precision, recall, F1"),
            ("{key}", "{it.gold:,}", "{it.precision.value:.1%}, {it.recall.value:.1%}, {it.f1}"),
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Count the utterances labelled by both, and those with equal labels."""
        alike = [{*turn.labels} == {*given} for turn, given in find_labelled_twice(sample.turns)]
        return {"units": len(alike), "alike": sum(alike)} if alike else {}


def find_labelled_twice(turns: Iterable[Turn]) -> Iterator[tuple[Turn, list[str]]]:
    """Yield every utterance that its speaker and a labeller labelled, with the labeller's labels."""
    for turn in turns:
        for said in (turn, *turn.alternatives):
            given = said.data.get(LABELLER)
            if said.labels and isinstance(given, list) and all(isinstance(label, str) for label in given):
                yield said, given


MEASURE = LabelAgreementMeasure()
