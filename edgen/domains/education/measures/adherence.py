"""Adherence: shares of conversations that keep to their scenarios, by keywords.

Five shares, each over the conversations that can be decided; `keywords` defines how. On nineteen released
records of Education Dialogue, one reading by hand agrees in 69 of 74 answers. The words were chosen by that
reader, who knew these records, so expect less agreement elsewhere. Intervals are those of `stats.intervals`,
clustered by scenario: they cover the draw of scenarios, not the keywords' errors. Memory: some bytes per
conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.domains.education.keywords import MEASURES, AdherenceShares, VerdictCount, judge_by_keywords
from edgen.domains.education.layout import LAYOUT
from edgen.plugin import Measure, OwnCount, Sample, Share, Space, Tally, Total, Words, figure_kinds
from edgen.plugin.measures import Aggregate, ArmResult, ByKey, JudgeAnswers, JudgeAsking, Panel, Value

if TYPE_CHECKING:
    from edgen.asking.call_estimates import NeededCalls

_QUESTIONS = {  # titles on a terminal and in a report
    "student_asks": ("student asks for its way", "Student asks for its way"),
    "student_reaction": ("student's reaction shows", "Student's reaction shows"),
    "teacher_reaction": ("teacher's reaction shows", "Teacher's reaction shows"),
    "teacher_keeps": ("teacher keeps its way", "Teacher keeps to its way"),
    "teacher_leaves": ("teacher goes over", "Teacher adopts student's way"),
}


def _explain_shares(found: Sequence[ArmResult[tuple[AdherenceShares, ...]]]) -> str:
    notes = sorted({each.note for one in found for each in one.value if each.note})
    return (
        "Shares of the conversations that allow a decision, with 95% intervals. Look for low shares: the "
        f"model does not do what the scenario asks for. {' '.join(notes)}"
    )


_NAMES = {name: label for name, (label, _) in _QUESTIONS.items()}


class AdherenceMeasure(OwnCount, JudgeAnswers, Measure[tuple[AdherenceShares, ...]]):
    """The measure `adherence`: by keywords, and by each judge that was asked."""

    name = "adherence"
    definition = (
        "By keywords: whether the student asks for its preferred way, whether stated reactions show, "
        "whether the teacher keeps to its preferred way in the last third or changes to the student's. "
        "edgen's own baseline; a judge model reads better."
    )
    order = 8
    counts = VerdictCount
    section = "behaviour"
    figures = figure_kinds(truths=MEASURES)
    aggregates = (
        ByKey(
            "",
            key=attrgetter("by"),
            each=(
                Total("n", label="by {key}", says="{it:conversation}"),
                *(
                    Share(
                        name,
                        label=f"  {label}",
                        says="{it}",
                        title=f"{title} ({{key}})",
                    )
                    for name, (label, title) in _QUESTIONS.items()
                ),
                Tally("untold", label="  untold", names=_NAMES, if_any=True),
                Aggregate(
                    "agreement", label="  kappa with keywords", says="{it:.2f}", names=_NAMES, if_any=True
                ),
                Aggregate("note", note="{it}", if_any=True),
            ),
        ),
    )
    panels = (
        Panel(
            "adherence", "Keeping to the scenario", tuple(f".{name}" for name in _QUESTIONS), _explain_shares,
            colour_keys=True,
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Value]:
        """Return the keywords' answers by question, None if undecided; an empty mapping if the scenario does
        not belong to this family."""
        if not LAYOUT.names.issubset(sample.scenario.values):
            return {}
        given = judge_by_keywords(sample.scenario, sample.turns, words.spoken)
        return dict(zip(MEASURES, (None if yes is None else bool(yes) for yes in given), strict=True))

    def ask_judge(self, run: Path, asking: JudgeAsking) -> dict[str, AdherenceShares]:
        """Make the judge answer the five questions."""
        from edgen.domains.education.adherence import judge_adherence

        return judge_adherence(run, asking)

    def estimate_judge(self, run: Path, asking: JudgeAsking) -> NeededCalls:
        """Return the calls that `ask_judge` would make."""
        from edgen.domains.education.adherence import estimate_adherence

        return estimate_adherence(run, asking)

    def with_judged(
        self, value: tuple[AdherenceShares, ...], judged: AdherenceShares
    ) -> tuple[AdherenceShares, ...]:
        return (*value, judged)


MEASURE = AdherenceMeasure()
