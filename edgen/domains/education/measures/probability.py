"""The probability that the student understood, by whether both sides prefer the same way.

`match`: the student's and the teacher's preferences share a family of ways (`keywords.stated`), or have the
same words. `mismatch`: both are of known families and share none. `untold`: all others. A scenario is of one
kind, so the two means are independent. Memory: 17 bytes per conversation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.domains.education.keywords import read_statements
from edgen.plugin import Histogram, Mean, Measure, OwnCount, OwnTexts, Sample, Total, Words
from edgen.plugin.measures import PROBABILITIES, Aggregate, ByKey, Panel, Sentence
from edgen.plugin.statistics import (
    FEWEST_SCENARIOS,
    Distribution,
    Estimate,
    Floats,
    difference_of_means,
    share,
    summarize_shares,
)
from edgen.plugin.texts import number

KINDS = ("match", "mismatch", "untold")
_WORDS = {"match": "preferences match", "mismatch": "they do not match"}


class ProbabilityBy(msgspec.Struct, frozen=True, kw_only=True):
    """The probability that the student understood, in conversations of one kind."""

    distribution: Distribution
    mean: Estimate | None


class Probability(msgspec.Struct, frozen=True, kw_only=True):
    """Probabilities by kind: `match`: both prefer the same way; `mismatch`: they do not; `untold`:
    undecided."""

    missing: int
    all: ProbabilityBy
    by: dict[str, ProbabilityBy]
    difference: Estimate | None  # mean of `match` minus mean of `mismatch`

    @property
    def all_mean(self) -> Estimate | None:
        """The mean of all kinds."""
        return self.all.mean


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


class ProbabilityMeasure(OwnCount, OwnTexts, Measure[Probability]):
    name = "probability"
    definition = (
        "The probability that the student understood, as the conversation's own model stated it, where "
        "preferences match, where they do not, and where no keyword decides: edgen's own kinds. Means have "
        "intervals like those of shares in coverage; their difference has Student's t with the degrees of "
        "freedom of Welch (1947) and Satterthwaite (1946) over scenarios. Kinds with fewer than 5 scenarios "
        "have no interval."
    )
    order = 11
    counts = ProbabilityCount
    section = "understanding"
    aggregates = (
        Total("missing", label="without one", says="{it:,}"),
        ByKey(
            "by",
            names=_WORDS,
            each=(
                Mean(
                    "mean",
                    label="{key}",
                    says="{it:.2f}  {distribution:bars}  n={distribution.n:,}",
                    title="{key}",
                ),
                Histogram("distribution", shares=True, title="{key}"),
            ),
        ),
        Aggregate("difference", label="match minus mismatch", says="{it:+.2f}", if_any=True),
        Mean(
            "all_mean",
            label="all",
            says="{it:.2f}  {all.distribution:bars}  n={all.distribution.n:,}",
            if_any=True,
            note="The bars go from 0 to 1 in tenths. A kind with fewer than 5 scenarios has no interval.",
        ),
    )
    panels = (
        Panel(
            "probability", "Probability of understanding, by preferences", ("by.distribution",),
            "Untold: no keyword shows which. Expect mismatches further left.", PROBABILITIES, colour_keys=True,
        ),
        Panel(
            "probability-means", "Mean probability", ("by.mean",),
            "Lines are 95% intervals; a kind with fewer than 5 scenarios has no interval. Expect the mean of "
            "a mismatch to be lower.",
            PROBABILITIES, colour_keys=True,
        ),
        Sentence("difference", "Match minus mismatch: {it:+.2f}."),
        Sentence("missing", "{it:conversation} without a probability."),
    )  # fmt: skip

    def tiles(self, value: Probability) -> Iterator[tuple[str, str, str]]:
        if value.all.mean is not None:
            yield number(value.all.mean.value, 2), "mean probability", "that the student understood"


def _describe(values: Floats, scenarios: NDArray[np.int64]) -> ProbabilityBy:
    mean = share(values, scenarios)
    if mean is not None and mean.scenarios < FEWEST_SCENARIOS:
        mean = msgspec.structs.replace(mean, low=None, high=None)
    return ProbabilityBy(distribution=summarize_shares(values, bars=10), mean=mean)


MEASURE = ProbabilityMeasure()
