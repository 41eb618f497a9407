"""The probability that the student understood, where both sides prefer the same way and where they do not.

`match`: the student's and the teacher's preference share a family of ways (`keywords.stated`), or are the
same words; `mismatch`: both are of known families and share none; `untold`: anything else. A scenario is of
one kind, so the two means are independent. Memory: 17 bytes a conversation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.domains.education.keywords import read_statements
from edgen.plugin import Measure, Sample, Words
from edgen.plugin.measures import (
    PROBABILITIES,
    ArmResult,
    Block,
    HistogramBars,
    histograms_picture,
    interval_of,
    intervals_picture,
    label_with_arm,
    mean_of,
    row,
    sentence_of_arm,
    sparkline,
    with_interval,
)
from edgen.plugin.statistics import (
    FEWEST_SCENARIOS,
    Distribution,
    Estimate,
    Floats,
    difference_of_means,
    share,
    summarize_shares,
)
from edgen.plugin.texts import format_signed, number, quantity

KINDS = ("match", "mismatch", "untold")
_WORDS = {"match": "preferences match", "mismatch": "they do not"}
_COLOURS = {"match": "sky", "mismatch": "purple", "untold": "muted"}  # no arm's colours


class ProbabilityBy(msgspec.Struct, frozen=True, kw_only=True):
    """The probability that the student understood, in conversations of one kind."""

    distribution: Distribution
    mean: Estimate | None


class Probability(msgspec.Struct, frozen=True, kw_only=True):
    """`match`: both prefer the same way; `mismatch`: they do not; `untold`: no keyword decides."""

    missing: int
    all: ProbabilityBy
    by: dict[str, ProbabilityBy]
    difference: Estimate | None  # mean in matches minus mean in mismatches


class ProbabilityCount:
    """Stated probabilities by kind."""

    def __init__(self) -> None:
        self._values, self._kinds, self._scenarios = array("d"), array("b"), array("q")
        self._missing = 0

    def see(self, sample: Sample, words: Words) -> None:
        value = sample.probability
        if value is None or not 0 <= value <= 1:
            self._missing += 1
            return
        match = read_statements(sample.scenario).match
        self._values.append(value)
        self._kinds.append(KINDS.index("untold" if match is None else "match" if match else "mismatch"))
        self._scenarios.append(sample.scenario.index)

    def result(self) -> Probability:
        values, kinds = np.asarray(self._values), np.asarray(self._kinds)
        scenarios = np.asarray(self._scenarios)
        chosen = {name: kinds == number for number, name in enumerate(KINDS)}
        return Probability(
            missing=self._missing,
            all=_describe(values, scenarios),
            by={name: _describe(values[these], scenarios[these]) for name, these in chosen.items()},
            difference=difference_of_means(values, chosen["match"], chosen["mismatch"], scenarios),
        )


class ProbabilityMeasure(Measure[Probability]):
    name = "probability"
    definition = (
        "The probability that the student understood, as the conversation's own model stated it, where "
        "preferences match, where they do not, and where no keyword decides: edgen's own kinds. Means "
        "have intervals as shares in coverage have; their difference has Student's t with the degrees of "
        "freedom of Welch (1947) and Satterthwaite (1946) over scenarios. Kinds with fewer than 5 "
        "scenarios have none."
    )
    order = 11
    counts = ProbabilityCount
    section = "understanding"

    def lines(self, value: Probability) -> Iterator[str]:
        yield row("without one", f"{value.missing:,}")
        kinds = {"all": value.all, **value.by}
        for name, kind in kinds.items():
            if kind.mean is not None:
                mean, bars = with_interval(kind.mean, ".2f"), sparkline(kind.distribution)
                yield row(_WORDS.get(name, name), f"{mean}  {bars}  n={kind.distribution.n:,}")
        if value.difference is not None:
            yield row("match minus mismatch", with_interval(value.difference, "+.2f"))
        if any(kind.mean is not None and kind.mean.low is None for kind in kinds.values()):
            yield "No interval where fewer than 5 scenarios are of a kind."
        if value.all.mean is not None:
            yield "The bars go from 0 to 1 in tenths."

    def blocks(self, found: Sequence[ArmResult[Probability]]) -> Iterator[Block]:
        kinds = [
            (label_with_arm(kind, one.arm), each, _COLOURS[kind])
            for one in found
            if one.value.all.distribution.n
            for kind, each in one.value.by.items()
        ]
        yield from histograms_picture(
            "probability", "Probability of understanding, by preferences",
            [HistogramBars(label, each.distribution, colour) for label, each, colour in kinds], PROBABILITIES,
            "match: both prefer the same way of teaching and learning; mismatch: they do not; untold: no "
            "keyword shows which. Expect mismatches further left.",
        )  # fmt: skip
        means = [
            interval_of(label, each.mean, mean_of(each.mean), colour)
            for label, each, colour in kinds
            if each.mean is not None
        ]
        known = any(interval.low is not None for interval in means)
        hint = (
            "Lines are 95% intervals. Expect the mean of a mismatch to be lower."
            if known
            else "There are too few conversations for intervals."
        )
        yield from intervals_picture(
            "probability-means", "Mean probability", means, hint + _differences(found), PROBABILITIES
        )
        for one in found:
            if one.value.missing:
                missing = f"{quantity(one.value.missing, 'conversation')} without a probability."
                yield sentence_of_arm(missing, one.arm)

    def tiles(self, value: Probability) -> Iterator[tuple[str, str, str]]:
        if value.all.mean is not None:
            yield number(value.all.mean.value, 2), "mean probability", "that the student understood"


def _differences(found: Sequence[ArmResult[Probability]]) -> str:
    said = [
        sentence_of_arm(mean_of(one.value.difference, format_signed), one.arm)
        for one in found
        if one.value.difference is not None
    ]
    return f" Match minus mismatch: {'; '.join(said)}." if said else ""


def _describe(values: Floats, scenarios: NDArray[np.int64]) -> ProbabilityBy:
    mean = share(values, scenarios)
    if mean is not None and mean.scenarios < FEWEST_SCENARIOS:
        mean = msgspec.structs.replace(mean, low=None, high=None)
    return ProbabilityBy(distribution=summarize_shares(values, bars=10), mean=mean)


MEASURE = ProbabilityMeasure()
