"""Agreement on actions among independent responses to one turn: by sets, by the student's actions, and
beyond chance.

A context is a turn with several responses. Krippendorff's alpha has the distance of sets that is 1 - MASI
(Passonneau 2006, LREC). Memory: some bytes a response.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.domains.tutoring.served_turns import list_responses
from edgen.plugin import Measure, OwnCount, Sample, Share, Total, Words
from edgen.plugin.measures import Aggregate, Panel
from edgen.plugin.statistics import Estimate, krippendorff, masi, share

_MOST = 50_000  # responses for which alpha is computed
_FEWEST_COPIES, _COPIES = 2, 0.95  # contexts, and their share with one text, above which tutors count as one
_ONE_TUTOR = (
    "all responses to a turn are the same text: the tutors sent identical requests (one model, temperature 0 "
    "or one seed for all). Give the tutor's backend a temperature, or `seed: auto`"
)
_FEWEST = 10  # minimum contexts for a student's set of actions to be reported

Set = frozenset[str]


class ActionAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of several responses to one context on their actions."""

    contexts: int  # contexts with responses
    responses: int  # the most common number of responses to a context
    complete: int  # contexts with this number of responses
    agreed: int  # complete contexts in which all responses take the same set
    of_complete: Estimate | None  # share of `agreed` in the complete contexts
    of_all: Estimate | None  # share of `agreed` in all contexts
    by_student: dict[str, tuple[int, int]]
    """Agreed contexts and all contexts for each set of the student's actions."""
    sets: dict[str, float]  # share of each set among the agreed contexts
    lead: float  # lead of the most frequent set over the next, as a share
    alpha: float | None  # Krippendorff's alpha; None if all sets are equal
    not_available: str | None = None  # reason why the figures cannot be computed; None if they can


class AgreementCount:
    def __init__(self) -> None:
        self._sizes: Counter[int] = Counter()
        # For each context: its scenario, the number of responses, whether they agree, the student's set, the
        # first response's set.
        self._scenarios, self._many, self._agree = array("q"), array("I"), array("b")
        self._student: list[Set] = []
        self._first: list[Set] = []
        self._labelled: list[list[Set]] = []
        self._labels = 0
        self._copies = 0  # contexts whose responses all have the same text
        self._known: dict[Set, Set] = {}  # equal sets are kept once

    def see(self, sample: Sample, words: Words) -> None:
        before: tuple[str, ...] = ()
        for turn in sample.turns:
            if turn.labels and turn.role == "Tutor" and (responses := list_responses(turn)):
                self._see(sample.scenario.index, before, [one.labels for one in responses])
                self._copies += len(responses) > 1 and len({one.text for one in responses}) == 1
            before = turn.labels

    def _see(self, scenario: int, before: tuple[str, ...], labels: Sequence[tuple[str, ...]]) -> None:
        sets = [self._keep(one) for one in labels]
        self._sizes[len(sets)] += 1
        if self._labels < _MOST and len(sets) > 1:
            self._labelled.append(sets)
            self._labels += len(sets)
        self._scenarios.append(scenario)
        self._many.append(len(sets))
        self._agree.append(len({*sets}) == 1)
        self._student.append(self._keep(before))
        self._first.append(sets[0])

    def _keep(self, actions: Sequence[str]) -> Set:
        """Return the set of these actions; equal sets are one object."""
        found = frozenset(actions)
        return self._known.setdefault(found, found)

    def result(self) -> ActionAgreement:
        several = Counter({size: count for size, count in self._sizes.items() if size > 1})
        usual = several.most_common(1)[0][0] if several else 0
        is_usual = np.array(self._many) == usual
        agrees = np.array(self._agree, dtype=bool) & is_usual
        complete = np.flatnonzero(is_usual) if usual else np.array([], dtype=np.int64)
        agreed = Counter(one for one, agree in zip(self._first, agrees, strict=True) if agree)
        counts = [count for _, count in agreed.most_common(2)] + [0, 0]
        total = agreed.total()
        scenarios = np.array(self._scenarios)
        if len(complete) >= _FEWEST_COPIES and self._copies >= _COPIES * several.total():
            return ActionAgreement(
                contexts=len(scenarios), responses=usual, complete=len(complete), agreed=0, of_complete=None,
                of_all=None, by_student={}, sets={}, lead=0.0, alpha=None, not_available=_ONE_TUTOR,
            )  # fmt: skip
        return ActionAgreement(
            contexts=len(scenarios) if usual else 0,
            responses=usual,
            complete=len(complete),
            agreed=total,
            of_complete=share(agrees[complete], scenarios[complete]),
            of_all=share(agrees, scenarios),
            by_student=self._count_by_student(agrees),
            sets={_name(one): count / total for one, count in agreed.most_common(3)} if total else {},
            lead=(counts[0] - counts[1]) / total if total else 0.0,
            alpha=krippendorff(self._labelled, masi),
        )

    def _count_by_student(self, agrees: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
        found: defaultdict[Set, list[int]] = defaultdict(lambda: [0, 0])
        for student, agree in zip(self._student, agrees.tolist(), strict=True):
            if student:
                found[student][0] += agree
                found[student][1] += 1
        ordered = sorted(found.items(), key=lambda item: (-item[1][1], _name(item[0])))
        return {_name(one): (agreed, many) for one, (agreed, many) in ordered if many >= _FEWEST}


class AgreementMeasure(OwnCount, Measure[ActionAgreement]):
    name = "action_agreement"
    definition = (
        "Of turns with the usual number of independent responses: the share whose responses all take "
        "exactly the same actions, over those turns and over all; by the student's actions; and "
        "Krippendorff's alpha (2011) of all responses with the MASI distance of sets (Passonneau 2006), "
        "over the first 50,000. Not available if the responses to a turn are one text that one tutor gave "
        "several times. The shares are CIMA's (Stasaski, Kao and Hearst 2020, section 4)."
    )
    order = 13
    counts = AgreementCount
    section = "behaviour"
    nothing = "No turn has several responses with actions."
    aggregates = (
        Total("contexts", label="turns with responses", says="{it}, of which {complete} have {responses}"),
        Share(
            "of_complete", label="all take the same actions", says="{agreed} = {it} of these",
            title="All take the same actions", if_any=True,
        ),
        Share("of_all", label="  of all", says="{it}", if_any=True),
        Aggregate("by_student", label="  after", says="{key}: {it:share} of {it[1]:turn}"),
        Aggregate("sets", label="agreed on", says="{it}; the first leads by {lead:points}", if_any=True),
        Aggregate("alpha", label="Krippendorff's alpha", says="{it:.3f}", if_any=True),
        Aggregate("not_available", label="agreement", says="not available: {it}.", if_any=True),
    )  # fmt: skip
    panels = (
        Panel(
            "action-agreement", "Independent responses that do the same", ("of_complete",),
            "High agreement: the turn leaves little choice, or the tutors are one model.",
        ),
    )  # fmt: skip


def _name(one: Set) -> str:
    return " + ".join(sorted(one))


MEASURE = AgreementMeasure()
