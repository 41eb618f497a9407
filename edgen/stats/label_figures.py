"""Scores of one source's labels against a reference: precision, recall, F1, Jaccard, by label, micro, macro.

A unit has a set of labels on each side. By label: true positives are units with the label on both sides.
Micro: over the counts of all labels together. Macro: the mean over the labels that either side uses; scores
without a denominator count as 0 (as in scikit-learn with zero_division=0). Source: Sokolova and Lapalme 2009,
Inf. Process. Manag. 45. Bias: the share of units with the label by the source, minus the share by the
reference. Intervals are expanded 95% percentiles of a seeded bootstrap over whole scenarios (see
`edgen.stats.resampling`). Memory: some numbers per scenario.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import msgspec
import numpy as np

from edgen.stats.intervals import Estimate
from edgen.stats.resampling import Floats, divide, interval, resample_sums, round_number

_OF_UNITS = 3  # number of columns about units, before the columns of labels
_TRUE, _GOLD, _GIVEN = range(3)  # columns of a label: units by both, by the reference, by the source


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Scores; None without a denominator."""

    precision: Estimate | None
    recall: Estimate | None
    f1: Estimate | None
    jaccard: Estimate | None


class LabelScores(Scores, frozen=True, kw_only=True):
    """The scores of a label, which the reference gives `gold` units, and the source `given` units."""

    gold: int
    given: int
    bias: Estimate | None


class LabelFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of all labels."""

    units: int  # scored units
    exact: Estimate | None  # share of units with equal sets
    by_unit: Estimate | None
    """Mean over units of the Jaccard index of their two sets, 1 if both are empty (the accuracy of Godbole
    and Sarawagi 2004, PAKDD)."""
    labels: dict[str, LabelScores]  # each label's scores
    micro: Scores  # over all decisions
    macro: Scores  # mean over labels


class LabelCounts:
    """Counts for scores, unit by unit."""

    def __init__(self) -> None:
        self._labels: dict[str, int] = {}
        self._units: defaultdict[int, list[float]] = defaultdict(
            lambda: [0, 0, 0.0]
        )  # units, equal sets, Jaccard
        self._counts: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, scenario: int, gold: Collection[str], given: Collection[str]) -> None:
        """Add a unit: its labels by the reference (`gold`), and by the source (`given`)."""
        units = self._units[scenario]
        units[0] += 1
        units[1] += {*gold} == {*given}
        used = {*gold, *given}
        units[2] += len({*gold} & {*given}) / len(used) if used else 1.0
        for label in used:
            counts = self._counts[scenario, self._labels.setdefault(label, len(self._labels))]
            counts[_TRUE] += label in gold and label in given
            counts[_GOLD] += label in gold
            counts[_GIVEN] += label in given

    def figures(self) -> LabelFigures:
        """Return the scores of all units so far, labels by descending frequency."""
        scenarios = {scenario: row for row, scenario in enumerate(sorted(self._units))}
        table = np.zeros((len(scenarios), _OF_UNITS + 3 * len(self._labels)))
        for scenario, units in self._units.items():
            table[scenarios[scenario], :_OF_UNITS] = units
        for (scenario, label), counts in self._counts.items():
            start = _OF_UNITS + 3 * label
            table[scenarios[scenario], start : start + 3] = counts
        return self._compute_from_sums(resample_sums(table), len(table))

    def _compute_from_sums(self, sums: Floats, scenarios: int) -> LabelFigures:
        """Return the scores from `sums` (1 + resamples, columns), the observed ones in the first row."""
        units, counts = sums[:, 0], sums[:, _OF_UNITS:].reshape(len(sums), -1, 3)
        n = int(units[0])

        def estimate_values(values: Floats) -> Estimate | None:
            return _estimate(values, n, scenarios)

        by_label = _compute_scores(counts)
        pooled = _compute_scores(counts.sum(axis=1, keepdims=True))
        used = counts[0, :, _GOLD] + counts[0, :, _GIVEN] > 0
        order = sorted(self._labels, key=lambda label: (-counts[0, self._labels[label], _GOLD], label))
        labels = {}
        for label in order:
            at = self._labels[label]
            bias = divide(counts[:, at, _GIVEN] - counts[:, at, _GOLD], units, np.nan)
            labels[label] = LabelScores(
                gold=int(counts[0, at, _GOLD]),
                given=int(counts[0, at, _GIVEN]),
                bias=estimate_values(bias),
                **{name: estimate_values(values[:, at]) for name, values in by_label.items()},
            )
        return LabelFigures(
            units=n,
            exact=estimate_values(divide(sums[:, 1], units, np.nan)),
            by_unit=estimate_values(divide(sums[:, 2], units, np.nan)),
            labels=labels,
            micro=Scores(**{name: estimate_values(values[:, 0]) for name, values in pooled.items()}),
            macro=Scores(
                **{
                    name: estimate_values(np.nan_to_num(values[:, used]).mean(axis=1)) if used.any() else None
                    for name, values in by_label.items()
                }
            ),
        )


def _compute_scores(counts: Floats) -> dict[str, Floats]:
    """Compute each score's values (draws, labels) from counts (draws, labels, 3), NaN without a
    denominator."""
    true, gold, given = (counts[:, :, column] for column in (_TRUE, _GOLD, _GIVEN))
    return {
        "precision": divide(true, given, np.nan),
        "recall": divide(true, gold, np.nan),
        "f1": divide(2 * true, gold + given, np.nan),
        "jaccard": divide(true, gold + given - true, np.nan),
    }


def _estimate(values: Floats, n: int, scenarios: int) -> Estimate | None:
    """Return the first value with the interval of the others; None if it is undefined."""
    if np.isnan(values[0]):
        return None
    span = interval(values[1:], scenarios) if len(values) > 1 else None
    low, high = span or (None, None)
    return Estimate(value=round_number(float(values[0])), low=low, high=high, n=n, scenarios=scenarios)
