"""How far independent responses to one turn take the same actions: by sets, by what the student did, and beyond chance.

A context is a turn with several responses. Krippendorff's alpha has the distance of sets that is 1 - MASI (Passonneau
2006, LREC), as nltk computes it. Memory: some bytes a response.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from edgen.core.text import quantity
from edgen.evaluation.figures import Block, intervals_picture
from edgen.evaluation.measure import ArmResult, Measure, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import row, rows, share_with_interval
from edgen.families.tutoring.served import responses_to
from edgen.stats.intervals import Estimate, share

_MOST = 50_000  # responses that alpha is computed of
_FEWEST = 10  # contexts of a student's set of actions that is told of

Set = frozenset[str]


class ActionAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """`contexts` with responses, `responses` the usual number of them to one, `complete` the contexts with so many.

    `agreed` counts complete contexts in which all take the same set; `of_complete` and `of_all` are its shares.
    `by_student`: that count and the number of contexts for each set of the student's actions. `sets`: the shares of sets
    among those agreed on, and `lead` by how much the first leads. `alpha` is Krippendorff's, None where all are alike.
    """

    contexts: int
    responses: int
    complete: int
    agreed: int
    of_complete: Estimate | None
    of_all: Estimate | None
    by_student: dict[str, tuple[int, int]]
    sets: dict[str, float]
    lead: float
    alpha: float | None


class AgreementCount:
    def __init__(self) -> None:
        self._sizes: Counter[int] = Counter()
        self._contexts: list[
            tuple[int, int, bool, Set, Set]
        ] = []  # scenario, responses, agree, student's, the first's
        self._triples: list[tuple[str, int, Set]] = []
        self._known: dict[Set, Set] = {}

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        before: tuple[str, ...] = ()
        for turn in sample.turns:
            if turn.labels and turn.role == "Tutor" and (responses := responses_to(turn)):
                self._see(sample.scenario.index, before, [one.labels for one in responses])
            before = turn.labels

    def _see(self, scenario: int, before: tuple[str, ...], labels: Sequence[tuple[str, ...]]) -> None:
        sets = [self._keep(frozenset(one)) for one in labels]
        self._sizes[len(sets)] += 1
        if len(self._triples) < _MOST and len(sets) > 1:
            number = len(self._contexts)
            self._triples += [(str(place), number, one) for place, one in enumerate(sets)]
        agree = len({*sets}) == 1
        self._contexts.append((scenario, len(sets), agree, self._keep(frozenset(before)), sets[0]))

    def _keep(self, one: Set) -> Set:
        """One object for each set, however often it comes."""
        return self._known.setdefault(one, one)

    def result(self) -> ActionAgreement:
        several = Counter({size: count for size, count in self._sizes.items() if size > 1})
        usual = several.most_common(1)[0][0] if several else 0
        agrees = [agree and size == usual for _, size, agree, _, _ in self._contexts]
        complete = [place for place, one in enumerate(self._contexts) if one[1] == usual and usual]
        agreed = Counter(one[4] for one, same in zip(self._contexts, agrees, strict=True) if same)
        counts = [count for _, count in agreed.most_common(2)] + [0, 0]
        total = agreed.total()
        scenarios = [one[0] for one in self._contexts]
        return ActionAgreement(
            contexts=len(self._contexts) if usual else 0,
            responses=usual,
            complete=len(complete),
            agreed=total,
            of_complete=share([agrees[at] for at in complete], [scenarios[at] for at in complete]),
            of_all=share(agrees, scenarios),
            by_student=self._by_student(agrees),
            sets={_name(one): count / total for one, count in agreed.most_common(3)} if total else {},
            lead=(counts[0] - counts[1]) / total if total else 0.0,
            alpha=self._alpha(),
        )

    def _by_student(self, agrees: Sequence[bool]) -> dict[str, tuple[int, int]]:
        found: defaultdict[Set, list[int]] = defaultdict(lambda: [0, 0])
        for (_, _, _, student, _), agree in zip(self._contexts, agrees, strict=True):
            if student:
                found[student][0] += agree
                found[student][1] += 1
        ordered = sorted(found.items(), key=lambda item: (-item[1][1], _name(item[0])))
        return {_name(one): (agreed, many) for one, (agreed, many) in ordered if many >= _FEWEST}

    def _alpha(self) -> float | None:
        if len({labels for _, _, labels in self._triples}) < 2:
            return None
        from nltk.metrics import masi_distance  # type: ignore[import-untyped]
        from nltk.metrics.agreement import AnnotationTask  # type: ignore[import-untyped]

        task: Any = AnnotationTask(data=self._triples, distance=masi_distance)
        return float(task.alpha())


class AgreementMeasure(Measure[ActionAgreement]):
    name = "action_agreement"
    definition = (
        "Of turns with the usual number of independent responses: the share in which all take exactly the same actions, "
        "over those turns and over all; by the student's actions; and Krippendorff's alpha (2011) of all responses with "
        "the MASI distance of sets (Passonneau 2006), over the first 50,000. The shares are CIMA's (Stasaski, Kao and "
        "Hearst 2020, section 4)."
    )
    order = 13
    counts = AgreementCount
    section = "behaviour"
    nothing = "No turn has several responses with actions."

    def lines(self, value: ActionAgreement) -> Iterator[str]:
        if not value.contexts:
            return
        yield row(
            "turns with responses", f"{value.contexts:,}, of which {value.complete:,} have {value.responses}"
        )
        yield row(
            "all take the same actions",
            f"{value.agreed:,} = {share_with_interval(value.of_complete)} of these",
        )
        yield row("", f"{share_with_interval(value.of_all)} of all")
        for student, (agreed, contexts) in value.by_student.items():
            yield row("  after", f"{student}: {agreed / contexts:.1%} of {quantity(contexts, 'turn')}")
        if value.sets:
            told = ", ".join(f"{name} {of:.1%}" for name, of in value.sets.items())
            yield from rows("agreed on", f"{told}; the first leads by {value.lead * 100:.1f} points")
        yield row("Krippendorff's alpha", "nothing tells" if value.alpha is None else f"{value.alpha:.3f}")

    def blocks(self, found: Sequence[ArmResult[ActionAgreement]]) -> Iterator[Block]:
        rows = share_intervals(found, [("All take the same actions", lambda value: value.of_complete)])
        yield from intervals_picture(
            "action-agreement", "Independent responses that do the same", rows,
            "High agreement: the turn leaves little choice, or the tutors are one model.",
        )  # fmt: skip


def _name(one: Set) -> str:
    return " + ".join(sorted(one))


MEASURE = AgreementMeasure()
