"""A comparison of a judge's log probabilities with its verdicts: which predict other evidence better?

Three forecasts of the same pairs are compared: the soft preference from log probabilities, the share of
verdicts, and the forecast by the candidates' Bradley-Terry strengths from all verdicts of the scenario. The
evidence: the conversations' own probabilities, people, and the judge's next vote on the same pair in the same
order, if it voted more than once.

Calibration is computed by `stats.calibration`. The slope is Cox's (1958, Biometrika 45): the slope of a
logistic regression of the outcome on the logit of the forecast. It is 1 for a well calibrated judge and lower
for an overconfident one.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import edgen.stats.required  # noqa: F401 - first: without numpy, it names the extra that installs it

# isort: split
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from edgen.core.pair import OracleSignal, Pair, Verdict
from edgen.preferences.labels import find_preference
from edgen.stats.calibration import calibration
from edgen.stats.intervals import Estimate, share
from edgen.stats.logistic import slope

Floats = NDArray[np.float64]

FORECASTS = ("logprobs", "verdicts", "strengths")
_TRUTHS = ("probability", "human")
_COLUMNS = ("scenario", "first", "tie", *FORECASTS, *_TRUTHS)
_PRIOR_SD = 10.0  # of a slope: hardly informative, and keeps the slope of separated data finite
_NEAREST = 1e-4  # least distance of a forecast from 0 and 1, before its logit is taken
_NOISE = 1e-9


class LogprobCount:
    """Numbers kept of one judge's signals: a few for each pair."""

    def __init__(self) -> None:
        self._rows = array("d")  # one number for each column and pair; nan: unknown
        self._votes = array("d")  # scenario, both forecasts of a vote, and the next vote
        self._gaps: Counter[str] = Counter()
        self._verdicts = self._bounded = 0

    def add(self, pair: Pair, signal: OracleSignal) -> None:
        """Count a judge's signal of a pair, if log probabilities were requested."""
        told = signal.logprobs
        if told is UNSET:
            return
        self._verdicts += len(signal.verdicts)
        self._bounded += sum(isinstance(one.logprob_bounds, tuple) for one in signal.verdicts)
        self._gaps.update(gap for one in signal.verdicts if isinstance(gap := one.logprob_gap, str))
        known = (told.p, signal.p, _find_strength(pair, signal), *_list_truths(pair))
        first = None if told.p_ab is None or told.p_ba is None else (told.p_ab + 1 - told.p_ba) / 2
        self._rows.extend((pair.scenario, _convert_number(first), signal.tie, *map(_convert_number, known)))
        for one, after in _pair_next_votes(signal.verdicts):
            self._votes.extend((pair.scenario, one.logprob_p or 0.0, one.choice == "a", after.choice == "a"))

    def report(self) -> dict[str, Any] | None:
        """Return all figures; None if log probabilities were never requested."""
        if not self._rows:
            return None
        table = np.array(self._rows).reshape(-1, len(_COLUMNS))
        column = dict(zip(_COLUMNS, table.T, strict=True))
        known = ~np.isnan(column["logprobs"])
        seen = {name: values[known] for name, values in column.items()}
        return {
            "pairs": len(table),
            "known": int(known.sum()),
            "verdicts": self._verdicts,
            "bounded": self._bounded,
            "gaps": dict(sorted(self._gaps.items())),
            "first_slot": share(seen["first"], seen["scenario"]),
            "ties": _count_ties(seen),
            "agreement": _estimate_agreement(seen),
            "against": [*_compare_with_sources(seen), *self._compare_with_votes()],
        }

    def _compare_with_votes(self) -> Iterator[dict[str, Any]]:
        scenario, logprobs, verdicts, came = np.array(self._votes).reshape(-1, 4).T
        if len(came):
            forecasts = {"logprobs": logprobs, "verdicts": verdicts}
            yield _compare_forecasts("votes", forecasts, came, scenario)


def _convert_number(value: float | None) -> float:
    return math.nan if value is None else value


def _find_strength(pair: Pair, signal: OracleSignal) -> float | None:
    """Return the probability that side a is better, by the strengths from this judge; nan without them."""
    alone = len(pair.signals.oracle) == 1 if pair.label is None else pair.label.judge == signal.judge
    if not alone or pair.a.strength is None or pair.b.strength is None:
        return None
    return 1 / (1 + math.exp(pair.b.strength.value - pair.a.strength.value))


def _list_truths(pair: Pair) -> Iterator[float | None]:
    """Yield the side that each other source favours: 1 for a, 0 for b, None for neither."""
    for signal in (pair.signals.probability, pair.signals.human):
        p = None if signal is None else find_preference(signal)
        yield None if p is None or p == 0.5 else float(p > 0.5)


def _pair_next_votes(verdicts: tuple[Verdict, ...]) -> Iterator[tuple[Verdict, Verdict]]:
    """Yield each verdict with a probability, with the next verdict in the same order. The last one is
    followed by the first."""
    for order in ("ab", "ba"):
        votes = [one for one in verdicts if one.order == order and one.choice is not None]
        if len(votes) > 1:
            after = [*votes[1:], votes[0]]
            yield from (it for it in zip(votes, after, strict=True) if isinstance(it[0].logprob_p, float))


def _count_ties(seen: Mapping[str, Floats]) -> dict[str, Any]:
    """Return the number of pairs that each source leaves undecided, and how often p is right on pairs that
    the verdicts leave undecided."""
    tied, even = seen["tie"] > 0, np.abs(seen["logprobs"] - 0.5) <= _NOISE
    decided = {}
    for truth in _TRUTHS:
        there = tied & ~even & ~np.isnan(seen[truth])
        right = (seen["logprobs"][there] > 0.5) == (seen[truth][there] > 0.5)
        decided[truth] = share(right.astype(np.float64), seen["scenario"][there])
    return {"verdicts": int(tied.sum()), "logprobs": int(even.sum()), "decided": decided}


def _estimate_agreement(seen: Mapping[str, Floats]) -> Estimate | None:
    """Return how often p favours the same side as the verdicts, if both favour one."""
    both = (seen["tie"] == 0) & ~np.isnan(seen["verdicts"]) & (np.abs(seen["logprobs"] - 0.5) > _NOISE)
    same = (seen["logprobs"][both] > 0.5) == (seen["verdicts"][both] > 0.5)
    return share(same.astype(np.float64), seen["scenario"][both])


def _compare_with_sources(seen: Mapping[str, Floats]) -> Iterator[dict[str, Any]]:
    """Yield the comparison of the forecasts with each other source, on the pairs that all of them cover.
    Strengths are included if there are any."""
    for truth in _TRUTHS:
        there = ~np.isnan(seen[truth]) & ~np.isnan(seen["verdicts"])
        strong = there & ~np.isnan(seen["strengths"])
        names = FORECASTS if strong.any() else FORECASTS[:2]
        there = strong if strong.any() else there
        if there.any():
            forecasts = {name: seen[name][there] for name in names}
            yield _compare_forecasts(truth, forecasts, seen[truth][there], seen["scenario"][there])


def _compare_forecasts(
    truth: str, forecasts: Mapping[str, Floats], came: Floats, scenario: Floats
) -> dict[str, Any]:
    found = {name: calibration(values, came, scenario) for name, values in forecasts.items()}
    return {
        "truth": truth,
        "n": len(came),
        **found,
        "slope": _fit_slope(forecasts["logprobs"], came, scenario),
    }


def _fit_slope(p: Floats, came: Floats, scenario: Floats) -> Estimate | None:
    """Return Cox's slope; None if all forecasts are equal."""
    inside = np.clip(p, _NEAREST, 1 - _NEAREST)
    logit = np.log(inside / (1 - inside))
    if np.ptp(logit) <= _NOISE:
        return None
    return slope(np.column_stack([np.ones(p.size), logit]), came, scenario, prior_sd=_PRIOR_SD)
