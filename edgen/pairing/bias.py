"""The bias report: what a judge's verdicts hang on besides the conversations.

Pairs are read once, and a few numbers kept of each. Position is measured on pairs with read verdicts in
both orders, where each side is first as often as second, so that the first slot wins half of them unless
the slot itself counts. Length is measured on the mean of both orders, from which the slot has gone, and in
the words of what the judge was shown: whole conversations or single responses. Longer may also be better,
so that there is a second slope at equal probability of understanding, the one other source that speaks of
every pair. Texts that speak to a judge are counted, and how often the side that has one wins. Intervals are at 95% and allow for pairs of one scenario being alike (`intervals`, `logistic`).
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from edgen.pairing.agreement import agreement
from edgen.pairing.calibration import calibration
from edgen.pairing.intervals import Estimate, scaled, share, t95
from edgen.pairing.labels import favoured
from edgen.pairing.logistic import fit
from edgen.pairing.model import Compare, OracleSignal, Pair
from edgen.pairing.render import render

__all__ = ["bias_report", "render"]

Floats = NDArray[np.float64]

SLOPE_WORDS = 100
_EXAMPLES = 3  # of what was said to judges
_SLOPE_PRIOR_SD = 10.0  # logits for 100 words: says next to nothing, and keeps a separated slope finite
Words = Mapping[Compare, tuple[int, int]]


class _Judge:
    """What is kept of one judge's signals: a few numbers a pair."""

    def __init__(self, signal: OracleSignal) -> None:
        self.name, self.model, self.compare = signal.judge, signal.model, signal.compare
        self.scenario = array("q")
        self.wins_ab, self.wins_ba = array("d"), array("d")  # nan: none read
        self.words_a, self.words_b = array("d"), array("d")  # nan: not known
        self.favours = array("b")  # 1 side a, -1 side b, 0 neither
        self.directed = array(
            "b"
        )  # which side alone speaks to a judge: 1 side a, -1 side b, 0 neither or both
        self.probability = array("d")  # that a is better by the conversations' own word; nan: not known
        self.ties = self.abstentions = self.verdicts = self.unread = 0

    def add(self, pair: Pair, signal: OracleSignal, words: Words) -> None:
        words_a, words_b = words.get(signal.compare, (math.nan, math.nan))
        self.scenario.append(pair.scenario)
        self.wins_ab.append(math.nan if signal.wins_ab is None else signal.wins_ab)
        self.wins_ba.append(math.nan if signal.wins_ba is None else signal.wins_ba)
        self.words_a.append(words_a)
        self.words_b.append(words_b)
        self.favours.append(_sign(favoured(signal)))
        self.directed.append(_directed(pair))
        said = pair.signals.probability.p
        self.probability.append(math.nan if said is None else said)
        self.ties += signal.tie
        self.abstentions += signal.abstain
        self.verdicts += len(signal.verdicts)
        self.unread += sum(verdict.choice is None for verdict in signal.verdicts)


def bias_report(rows: Iterable[tuple[Pair, Words]]) -> dict[str, Any]:
    """The report as values for JSON; `render` words it for a person.

    A row is a pair with the numbers of words of sides a and b by what a judge is shown: each judge takes
    those of its own way of comparing. A key is missing where they are not known.
    Estimates are `{"value", "low", "high", "n", "scenarios"}`, None where there is no data.
    """
    judges: dict[str, _Judge] = {}
    ratings: dict[str, array[int]] = {"probability": array("b"), "human": array("b")}
    left_out: Counter[str] = Counter()
    labelled: Counter[str] = Counter()
    scenarios = array("q")
    directed = array("b")  # 1 where a text speaks to a judge
    found: list[str] = []
    count = 0
    for pair, words in rows:
        scenarios.append(pair.scenario)
        directed.append(pair.signals.judge_directed is not UNSET)
        found += _said_to_judges(pair)
        del found[_EXAMPLES:]
        ratings["probability"].append(_sign(favoured(pair.signals.probability)))
        ratings["human"].append(0 if pair.signals.human is None else _sign(favoured(pair.signals.human)))
        for signal in pair.signals.oracle:
            if signal.judge not in judges:
                judges[signal.judge] = _Judge(signal)
                ratings[f"oracle {signal.judge}"] = array("b")
            judge, column = judges[signal.judge], ratings[f"oracle {signal.judge}"]
            if len(column) > count:
                continue  # one signal a judge
            judge.add(pair, signal, words)
            column.extend([0] * (count - len(column)))
            column.append(judge.favours[-1])
        if pair.label is not None:
            labelled[pair.label.by] += 1
        elif pair.left_out is not None:
            left_out[pair.left_out] += 1
        count += 1
    for column in ratings.values():
        column.extend([0] * (count - len(column)))
    report: dict[str, Any] = {
        "pairs": count,
        "scenarios": len(set(scenarios)),
        "labelled": dict(sorted(labelled.items())),
        "left_out": dict(sorted(left_out.items())),
        "judge_directed": {
            "n": sum(directed),
            "share": _plain(share(np.array(directed, dtype=np.float64), np.array(scenarios))),
            "found": found,
        },
        "judges": [_judge_report(judge) for judge in judges.values()],
        "agreement": agreement({name: ratings[name] for name in sorted(ratings)}, scenarios),
    }
    rounded: dict[str, Any] = _rounded(report)
    return rounded


def _said_to_judges(pair: Pair) -> list[str]:
    """What the sides of a pair say to a judge, as it was found."""
    directed = pair.signals.judge_directed
    return [] if directed is UNSET else [said for said in (directed.a, directed.b) if said is not None]


def _directed(pair: Pair) -> int:
    """Which side alone speaks to a judge: 1 side a, -1 side b, 0 neither or both."""
    directed = pair.signals.judge_directed
    return 0 if directed is UNSET else (directed.a is not None) - (directed.b is not None)


def _sign(p: float | None) -> int:
    return 0 if p is None or p == 0.5 else (1 if p > 0.5 else -1)


def _judge_report(judge: _Judge) -> dict[str, Any]:
    scenario = np.array(judge.scenario)
    ab, ba = np.array(judge.wins_ab), np.array(judge.wins_ba)
    both = ~(np.isnan(ab) | np.isnan(ba))
    favours, said = np.array(judge.favours), np.array(judge.probability)
    known = (favours != 0) & ~np.isnan(said)
    tied = np.array((ab[both] - 0.5) * (ba[both] - 0.5) <= 0, dtype=np.float64)
    return {
        "judge": judge.name,
        "model": judge.model,
        "compare": judge.compare,
        "pairs": len(scenario),
        "judged": int(np.count_nonzero(both)),
        "verdicts": {"n": judge.verdicts, "unread": judge.unread},
        "ties": {"n": judge.ties, "share": _plain(share(tied, scenario[both]))},
        "abstentions": {
            "n": judge.abstentions,
            "share": _plain(share((~both).astype(np.float64), scenario)),
        },
        "position": _position(ab[both], ba[both], scenario[both]),
        "length": _length(
            (ab[both] + ba[both]) / 2,
            np.array(judge.words_a)[both],
            np.array(judge.words_b)[both],
            said[both],
            scenario[both],
        ),
        "judge_directed": _wins_of_directed(
            (ab[both] + ba[both]) / 2, np.array(judge.directed)[both], scenario[both]
        ),
        "calibration": calibration(said[known], favours[known] > 0, scenario[known]),
    }


def _position(ab: Floats, ba: Floats, scenario: NDArray[np.int64]) -> dict[str, Any]:
    """Flips: each order favours another side. In order ba side b is first and wins what a does not."""
    flips = np.array((ab - 0.5) * (ba - 0.5) < 0, dtype=np.float64)
    slots = (ab + (1 - ba)) / 2
    first, flipped = share(slots, scenario), share(flips, scenario)
    if first is not None and flipped is not None and flipped.high is not None and np.all(slots == 0.5):
        # No pair hangs on its slot, and none of those not seen can count for more than a flip does.
        half = flipped.high / 2
        first = msgspec.structs.replace(first, low=0.5 - half, high=0.5 + half)
    return {
        "flips": _plain(flipped),
        "first_slot": _plain(first),
        "points": _plain(scaled(first, 200.0, -100.0)),
    }


def _length(
    p: Floats, words_a: Floats, words_b: Floats, said: Floats, scenario: NDArray[np.int64]
) -> dict[str, Any]:
    ahead = words_a - words_b
    known = ~np.isnan(ahead)
    apart, better = known & (ahead != 0), known & ~np.isnan(said)
    longer = share(np.where(ahead > 0, p, 1 - p)[apart], scenario[apart])
    return {
        "longer": _plain(longer),
        "points": _plain(scaled(longer, 200.0, -100.0)),
        "slope": _plain(_slope(p[known], ahead[known], scenario[known])),
        "slope_adjusted": _plain(_slope(p[better], ahead[better], scenario[better], said[better])),
        "slope_words": SLOPE_WORDS,
    }


def _wins_of_directed(
    p: Floats, directed: NDArray[np.int8], scenario: NDArray[np.int64]
) -> dict[str, Any] | None:
    """How often the one side that speaks to a judge wins; None where no judged pair has one such side."""
    one = directed != 0
    return _plain(share(np.where(directed > 0, p, 1 - p)[one], scenario[one]))


def _slope(
    p: Floats, ahead: Floats, scenario: NDArray[np.int64], said: Floats | None = None
) -> Estimate | None:
    """By how many logits side a's chance grows with each SLOPE_WORDS words that it is ahead, and `said` equal.

    `said` is the probability that side a is the better one, by another source; it needs some other than 0.5.
    """
    if not np.any(ahead) or (said is not None and not np.any(said != 0.5)):
        return None
    # The constant stands for what sets side a apart otherwise, as where sides are arms.
    columns = [np.ones(ahead.size), ahead / SLOPE_WORDS]
    if said is not None:
        columns.append(2 * said - 1)
    fitted = fit(np.column_stack(columns), p, prior_sd=_SLOPE_PRIOR_SD, clusters=scenario)
    value = float(fitted.coefficients[1])
    groups = len(np.unique(scenario))
    if fitted.robust is None:
        return Estimate(value=value, low=None, high=None, n=ahead.size, scenarios=groups)
    half = t95(groups - 1) * math.sqrt(max(float(fitted.robust[1, 1]), 0.0))
    return Estimate(value=value, low=value - half, high=value + half, n=ahead.size, scenarios=groups)


def _plain(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else msgspec.to_builtins(estimate)


def _rounded(value: Any) -> Any:
    """The report with its numbers rounded, so that another machine's arithmetic does not show."""
    if isinstance(value, dict):
        return {key: _rounded(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_rounded(child) for child in value]
    return round(value, 6) + 0.0 if isinstance(value, float) else value
