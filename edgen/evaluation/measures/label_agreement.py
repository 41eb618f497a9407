"""How far a labeller agrees with the speakers about what utterances do: by role, sets and single labels.

Both have to stand in the record: the speaker's as a turn's labels, the labeller's in its data. All responses to a turn count.
Memory: some numbers for each scenario and label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from edgen.core.values import Turn
from edgen.evaluation.figures import Block, Table, intervals_picture, label_with_arm
from edgen.evaluation.measure import ArmResult, Compared, Measure, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import row, share_with_interval
from edgen.families.tutoring.served import LABELLER
from edgen.space import Space
from edgen.stats.intervals import Estimate
from edgen.stats.label_figures import LabelCounts, LabelFigures, LabelScores, Scores


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The labeller's labels against the speaker's, by role."""

    roles: dict[str, LabelFigures]


class LabelAgreementCount:
    def __init__(self) -> None:
        self._roles: defaultdict[str, LabelCounts] = defaultdict(LabelCounts)

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        for turn, given in labelled_twice(sample.turns):
            self._roles[turn.role].add(sample.scenario.index, turn.labels, given)

    def result(self) -> LabelAgreement:
        return LabelAgreement(
            roles={role: counts.figures() for role, counts in sorted(self._roles.items(), reverse=True)}
        )


class LabelAgreementMeasure(Measure[LabelAgreement]):
    name = "label_agreement"
    definition = (
        "Of utterances that both the speaker and a labeller say the actions of: the share with the same set of actions, and "
        "precision, recall and F1 of the labeller against the speaker, by action, micro (over the counts of all actions) and "
        "macro (the mean over actions); Sokolova and Lapalme 2009. Intervals are by the bootstrap over scenarios."
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

    def lines(self, value: LabelAgreement) -> Iterator[str]:
        for role, found in value.roles.items():
            yield row(f"{role}'s, labelled alike", f"{share_with_interval(found.exact)} of {found.units:,}")
            for name, scores in (("micro F1", found.micro), ("macro F1", found.macro)):
                yield row(f"  {name}", share_with_interval(scores.f1))
            yield row("  by action", "precision, recall, F1 (how often it is named)")
            for label, one in found.labels.items():
                yield row(f"  {label}", f"{_said(one)} ({one.gold:,})")

    def blocks(self, found: Sequence[ArmResult[LabelAgreement]]) -> Iterator[Block]:
        roles = dict.fromkeys(role for one in found for role in one.value.roles)
        rows = share_intervals(
            found,
            [
                (f"{role}: same actions", lambda value, role=role: _exact(value, role))  # type: ignore[misc]
                for role in roles
            ],
        )
        yield from intervals_picture(
            "label-agreement", "A labeller says what the speaker says", rows,
            "Low: one of the two does not know what the actions mean.",
        )  # fmt: skip
        table = tuple(
            (label_with_arm(f"{role}: {label}", one.arm), f"{scores.gold:,}", _said(scores))
            for one in found
            for role, figures in one.value.roles.items()
            for label, scores in figures.labels.items()
        )
        if table:
            head = ("action", "by the speaker", "the labeller's precision, recall, F1")
            yield Table(head, table, "The labeller against the speaker", "plain")

    def sums(self, sample: Sample, space: Space) -> Iterator[tuple[str, float]]:  # noqa: ARG002
        """Utterances labelled by both, and those labelled alike."""
        for turn, given in labelled_twice(sample.turns):
            yield "units", 1
            yield "alike", {*turn.labels} == {*given}


def labelled_twice(turns: Iterable[Turn]) -> Iterator[tuple[Turn, list[str]]]:
    """Every utterance with labels of its own and of a labeller, and the labeller's."""
    for turn in turns:
        for said in (turn, *turn.alternatives):
            given = said.data.get(LABELLER)
            if said.labels and isinstance(given, list) and all(isinstance(label, str) for label in given):
                yield said, given


def _exact(value: LabelAgreement, role: str) -> Estimate | None:
    figures = value.roles.get(role)
    return None if figures is None else figures.exact


def _said(scores: Scores | LabelScores) -> str:
    told = (scores.precision, scores.recall)
    shares = ", ".join("-" if one is None else f"{one.value:.1%}" for one in told)
    return f"{shares}, {share_with_interval(scores.f1)}"


MEASURE = LabelAgreementMeasure()
