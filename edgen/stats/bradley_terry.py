"""Bradley-Terry strengths of a scenario's candidates from soft results.

Candidate i beats j with probability sigmoid(strength i - strength j) (Bradley and Terry 1952, Biometrika 39).
A result p of n verdicts counts as n p wins and n (1 - p) losses, so a tie is half a win for each. A normal
prior on each strength keeps strengths finite if a candidate won every match or no match links two groups
(Caron and Doucet 2012, J. Comput. Graph. Stat. 21, for the Bayesian view).

Intervals are the posterior's by Laplace's approximation. Simulated, with 2 to 8 candidates, two matches per
candidate and 2 to 20 independent verdicts per match, they cover 94 to 99% if true strengths spread by 1 logit
(sd), 94 to 98% at 2 and 87 to 93% at 3. If matches whose two orders disagree count as ties, the intervals
cover 92 to 100%, 88 to 97% and 82 to 93%. A judge's repeated equal verdicts carry less information than their
count; the intervals ignore this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from edgen.core.pair import Strength
from edgen.stats.logistic import fit
from edgen.stats.quantiles import Z95

Name = TypeVar("Name", int, str)
PRIOR_SD = 3.0  # logits: wide enough for a judge who almost always decides the same way


def strengths(results: Sequence[tuple[Name, Name, float, float]]) -> dict[Name, Strength]:
    """Return the strength of every candidate in `results`, in logits with mean 0, with a 95% interval.

    A result (i, j, p, weight) means that i beat j with p in [0, 1] by `weight` verdicts; a pair may occur
    several times.
    """
    names = sorted({name for i, j, _, _ in results for name in (i, j)})
    if not names:
        return {}
    place = {name: k for k, name in enumerate(names)}
    rows = np.zeros((len(results), len(names)))
    for row, (i, j, _, _) in enumerate(results):
        rows[row, place[i]] += 1.0
        rows[row, place[j]] -= 1.0
    weights = [weight for _, _, _, weight in results]
    fitted = fit(rows, [p for _, _, p, _ in results], prior_sd=PRIOR_SD, weights=weights)
    # Only differences are observed: remove the prior's information on the common level.
    centre = np.eye(len(names)) - 1.0 / len(names)
    value = centre @ fitted.coefficients
    spread = Z95 * np.sqrt(np.maximum(np.diag(centre @ fitted.covariance @ centre), 0.0))
    return {
        name: Strength(_round(value[k]), _round(value[k] - spread[k]), _round(value[k] + spread[k]))
        for name, k in place.items()
    }


def _round(number: float) -> float:
    """Round to six decimals, so that files do not depend on the machine's arithmetic."""
    return round(float(number), 6) + 0.0
