"""The probability that the student understood, where both sides prefer the same way and where they do not.

`match`: the student's and the teacher's preference share a family of ways (`cues.stated`), or are the
same words; `mismatch`: both are of known families and share none; `untold`: anything else. Bins are a
tenth wide.

A mean has the interval that `pairing.intervals` gives values in [0, 1], clustered by scenario. A scenario is
of one kind, so the two means are independent: their difference has the sum of their variances, and Student's
t with the degrees of freedom of Welch (1947, Biometrika 34) and Satterthwaite (1946, Biometrics Bulletin 2)
over scenarios. There is no interval for a kind of fewer than 5 scenarios, edgen's own minimum, nor for a
difference from such a one, or from one whose values do not vary.

Probabilities are those the data state, by whoever wrote them: what they are worth is `calibration`'s
question. Memory: 17 bytes a conversation.
"""

from __future__ import annotations

import math
from array import array

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.pairing.intervals import Estimate, clustered, share, t95
from edgen.quality import results
from edgen.quality.cues import stated
from edgen.quality.model import Sample, Words
from edgen.quality.numbers import shares

KINDS = ("match", "mismatch", "untold")
FEWEST = 5  # scenarios for an interval
_NONE = 1e-18  # a variance that is but rounding
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
    """The mean of `one` minus the mean of `other`, two parts of `values` that share no scenario.

    `n` and `scenarios` count both parts. None where a part is empty."""
    if not one.any() or not other.any():
        return None
    first, one_variance, one_n, one_groups = clustered(values[one], scenarios[one])
    second, other_variance, other_n, other_groups = clustered(values[other], scenarios[other])
    value, n, groups = first - second, one_n + other_n, one_groups + other_groups
    if min(one_groups, other_groups) < FEWEST or min(one_variance, other_variance) <= _NONE:
        return Estimate(value=value, low=None, high=None, n=n, scenarios=groups)
    variance = one_variance + other_variance
    freedom = variance**2 / (one_variance**2 / (one_groups - 1) + other_variance**2 / (other_groups - 1))
    half = t95(int(freedom)) * math.sqrt(variance)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Estimate(value=value, low=low, high=high, n=n, scenarios=groups)


def _described(values: Floats, scenarios: NDArray[np.int64]) -> results.ProbabilityBy:
    mean = share(values, scenarios)
    if mean is not None and mean.scenarios < FEWEST:
        mean = msgspec.structs.replace(mean, low=None, high=None)
    return results.ProbabilityBy(distribution=shares(values, bars=10), mean=mean)
