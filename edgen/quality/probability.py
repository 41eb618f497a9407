"""The probability that the student understood, where both sides prefer the same way and where they do not.

`match`: the student's and the teacher's preference share a family of ways (`cues.stated`), or are the
same words; `mismatch`: both are of known families and share none; `untold`: anything else. Bins are a
tenth wide.

The difference of the two means is one of domains of a sample of clusters: its variance is that of the
linearised difference, residuals summed by scenario, with the factor G / (G - 1) and Student's t with G -
1 degrees of freedom for G scenarios (Cochran 1977, Sampling Techniques; as in `pairing.intervals`).
Probabilities are those the data state, by whoever wrote them: what they are worth is `calibration`'s
question. Memory: 17 bytes a conversation.
"""

from __future__ import annotations

import math
from array import array

import numpy as np
from numpy.typing import NDArray

from edgen.pairing.intervals import Estimate, average, t95
from edgen.quality import results
from edgen.quality.cues import stated
from edgen.quality.model import Sample, Words
from edgen.quality.numbers import shares

KINDS = ("match", "mismatch", "untold")
Floats = NDArray[np.float64]


class ProbabilityMeasure:
    """Stated probabilities by kind, over a stream of conversations."""

    def __init__(self) -> None:
        self._values, self._kinds, self._scenarios = array("d"), array("b"), array("q")
        self._missing = 0

    def add(self, sample: Sample, words: Words) -> None:  # noqa: ARG002 - what is said does not count
        """Count one conversation."""
        value = sample.probability
        if value is None or not 0 <= value <= 1:
            self._missing += 1
            return
        match = stated(sample.scenario).match
        self._values.append(value)
        self._kinds.append(KINDS.index("untold" if match is None else "match" if match else "mismatch"))
        self._scenarios.append(sample.scenario.index)

    def result(self) -> results.Probability:
        """What was counted."""
        values, kinds = np.asarray(self._values), np.asarray(self._kinds)
        scenarios = np.asarray(self._scenarios)
        chosen = {name: kinds == number for number, name in enumerate(KINDS)}
        return results.Probability(
            missing=self._missing,
            all=_described(values, scenarios),
            by={name: _described(values[these], scenarios[these]) for name, these in chosen.items()},
            difference=difference(values, chosen["match"], chosen["mismatch"], scenarios),
        )


def difference(
    values: Floats, one: NDArray[np.bool_], other: NDArray[np.bool_], scenarios: NDArray[np.int64]
) -> Estimate | None:
    """The mean of `one` minus the mean of `other`, two parts of `values` that share no value.

    `n` and `scenarios` count both parts. None where a part is empty; no interval with fewer than two
    scenarios."""
    if not one.any() or not other.any():
        return None
    means = float(values[one].mean()), float(values[other].mean())
    both = one | other
    groups, member = np.unique(scenarios[both], return_inverse=True)
    n, count = int(both.sum()), len(groups)
    value = means[0] - means[1]
    if count < 2:
        return Estimate(value=value, low=None, high=None, n=n, scenarios=count)
    weighed = np.where(one, (values - means[0]) / one.sum(), -(values - means[1]) / other.sum())[both]
    residuals = np.bincount(member, weights=weighed)
    half = t95(count - 1) * math.sqrt(float(residuals @ residuals) * count / (count - 1))
    return Estimate(value=value, low=value - half, high=value + half, n=n, scenarios=count)


def _described(values: Floats, scenarios: NDArray[np.int64]) -> results.ProbabilityBy:
    return results.ProbabilityBy(distribution=shares(values, bars=10), mean=average(values, scenarios))
