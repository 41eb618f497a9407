"""Adherence: whether conversations keep to what their scenarios state, by keywords.

Five shares, each over the conversations that can be decided; `keywords` defines how. On nineteen released
records of Education Dialogue one reading by hand agrees in 69 of 74 answers; the words were chosen by that
reader, who knew these records, so elsewhere expect less. Intervals are those of `stats.intervals`,
clustered by scenario: they cover the draw of scenarios, not the keywords' errors. Memory: some bytes
a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.domains.education.keywords import KEYWORDS, MEASURES, AdherenceShares, VerdictCount, verdicts
from edgen.domains.education.layout import LAYOUT
from edgen.plugin import Measure, Sample, Space, Words, figure_kinds
from edgen.plugin.measures import (
    ArmResult,
    Block,
    JudgeAsking,
    Value,
    intervals_picture,
    row,
    share_intervals,
    share_with_interval,
    wrap,
)
from edgen.plugin.statistics import Estimate
from edgen.plugin.texts import quantity

if TYPE_CHECKING:
    from edgen.asking.call_estimates import NeededCalls

_QUESTIONS = {  # on a terminal, in a report
    "student_asks": ("student asks for its way", "Student asks for its way"),
    "student_reaction": ("student's reaction shows", "Student's reaction shows"),
    "teacher_reaction": ("teacher's reaction shows", "Teacher's reaction shows"),
    "teacher_keeps": ("teacher keeps its way", "Teacher keeps to its way"),
    "teacher_leaves": ("teacher goes over", "Teacher adopts the student's way"),
}


class AdherenceMeasure(Measure[tuple[AdherenceShares, ...]]):
    """By keywords, and by as many judges as were asked."""

    name = "adherence"
    definition = (
        "By keywords: whether the student asks for its preferred way, whether stated reactions show, "
        "whether the teacher keeps to its preferred way in the last third or changes to the student's. "
        "edgen's own baseline; a judge model reads better."
    )
    order = 8
    counts = VerdictCount
    section = "behaviour"
    judged = True
    figures = figure_kinds(truths=MEASURES)

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Value]:
        """Return the keywords' answers by question, None if undecided; an empty mapping if the scenario is
        not of this family."""
        if not LAYOUT.names.issubset(sample.scenario.values):
            return {}
        given = verdicts(sample.scenario, sample.turns, words.spoken)
        return dict(zip(MEASURES, (None if yes is None else bool(yes) for yes in given), strict=True))

    def ask_judge(self, run: Path, asking: JudgeAsking) -> dict[str, AdherenceShares]:
        """Have the judge answer the five questions."""
        from edgen.domains.education.adherence import judge_adherence

        return judge_adherence(run, *asking)

    def estimate_judge(self, run: Path, asking: JudgeAsking) -> NeededCalls:
        """Return the calls that it would make."""
        from edgen.domains.education.adherence import estimate_adherence

        return estimate_adherence(run, *asking)

    def lines(self, value: tuple[AdherenceShares, ...]) -> Iterator[str]:
        for found in value:
            kappa = "; kappa: agreement with the keywords" if found.agreement else ""
            yield f"by {found.by}, {quantity(found.n, 'conversation')}{kappa}"
            for name, (label, _) in _QUESTIONS.items():
                estimate: Estimate | None = getattr(found, name)
                agreed = found.agreement.get(name)
                kappa = "" if agreed is None else f", kappa {agreed:.2f}"
                untold = f"; {found.untold[name]:,} untold" if found.untold.get(name) else ""
                yield row(f"  {label}", f"{share_with_interval(estimate)}{kappa}{untold}")
            if found.note:
                yield from wrap(found.note)

    def with_judged(
        self, value: tuple[AdherenceShares, ...], judged: AdherenceShares
    ) -> tuple[AdherenceShares, ...]:
        return (*value, judged)

    def blocks(self, found: Sequence[ArmResult[tuple[AdherenceShares, ...]]]) -> Iterator[Block]:
        questions = [(words, attrgetter(name)) for name, (_, words) in _QUESTIONS.items()]
        for place, judge in enumerate(dict.fromkeys(each.by for one in found for each in one.value)):
            own = [
                ArmResult(one.arm, one.name, each, one.job)
                for one in found
                for each in one.value
                if each.by == judge
            ]
            notes = {one.value.note for one in own if one.value.note}
            by = "keywords" if judge == KEYWORDS else f"the judge {judge}"
            yield from intervals_picture(
                f"adherence-{place}", f"Keeping to the scenario, by {by}", share_intervals(own, questions),
                "Shares of the conversations in which it can be decided, with 95% intervals. Look for low "
                "shares: the scenario asks for it, and the model does not do it. " + " ".join(sorted(notes)),
            )  # fmt: skip


MEASURE = AdherenceMeasure()
