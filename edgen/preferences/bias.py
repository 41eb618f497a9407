"""The bias report: influences on a judge's verdicts other than the conversations.

Pairs are read once, and a few numbers are kept of each. Position is measured on pairs with read verdicts in
both orders. Each side is first equally often, so without bias the first slot wins half of them. Length is
measured on the mean of both orders, which cancels the slot, and in the words that the judge was shown: whole
conversations or single responses. Longer responses may also be better, so a second slope compares pairs at
equal probability of understanding, the only other source for every pair.

Texts that address a judge are counted, with the wins of the sides that have one. Arms are policies, compared
in a matrix (`policies`). `logprob_report` evaluates log probabilities, if they were requested. Intervals are
at 95% and treat the pairs of one scenario as a cluster (`intervals`, `logistic`).
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import edgen.stats.required  # noqa: F401 - first: without numpy, it names the extra that installs it

# isort: split
import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from edgen.core.pair import Compare, OracleSignal, Pair
from edgen.core.values import Turn
from edgen.preferences.comparisons import read_judge_notes
from edgen.preferences.labels import find_preference
from edgen.preferences.logprob_report import LogprobCount
from edgen.preferences.policies import PolicyCounts
from edgen.stats.agreement import agreement
from edgen.stats.calibration import calibration
from edgen.stats.intervals import Estimate, scale_estimate, share
from edgen.stats.logistic import slope
from edgen.store.run_parts import ComparedPair
from edgen.store.run_reader import RunReader

Floats = NDArray[np.float64]

SLOPE_WORDS = 100
_EXAMPLES = 3  # of texts that address a judge
_SLOPE_PRIOR_SD = 10.0  # logits per 100 words: hardly informative, keeps slopes of separated data finite
Words = Mapping[Compare, tuple[int, int]]


class _JudgeSignals:
    """The numbers kept of one judge's signals: a few per pair."""

    def __init__(self, signal: OracleSignal) -> None:
        self.name, self.model, self.compare = signal.judge, signal.model, signal.compare
        self.rows = array("d")  # eight numbers for each pair; nan: unread or unknown
        self.ties = self.abstentions = self.verdicts = self.unread = self.labelled = 0
        self.logprobs = LogprobCount()

    def add(self, pair: Pair, signal: OracleSignal, words: Words) -> None:
        words_a, words_b = words.get(signal.compare, (None, None))
        said = pair.signals.probability.p  # of a being better, by the conversations' probabilities
        known = (signal.wins_ab, signal.wins_ba, words_a, words_b, said)
        sides = (_sign(find_preference(signal)), _find_directed_side(pair))
        self.rows.extend((pair.scenario, *sides, *(math.nan if one is None else one for one in known)))
        self.ties += signal.tie
        self.abstentions += signal.abstain
        self.verdicts += len(signal.verdicts)
        self.unread += sum(verdict.choice is None for verdict in signal.verdicts)
        self.logprobs.add(pair, signal)

    def report(self, asker: str | None) -> dict[str, Any]:
        columns = np.array(self.rows).reshape(-1, 8).T
        scenario, favours, directed, ab, ba, words_a, words_b, said = columns
        known = (favours != 0) & ~np.isnan(said)
        both = ~(np.isnan(ab) | np.isnan(ba))
        abstained = share((~both).astype(np.float64), scenario)
        calibrated = calibration(said[known], favours[known] > 0, scenario[known])
        judged, _, directed, ab, ba, words_a, words_b, said = columns[:, both]
        p, one = (ab + ba) / 2, directed != 0
        tied = np.array((ab - 0.5) * (ba - 0.5) <= 0, dtype=np.float64)
        told = self.logprobs.report()
        return {
            "judge": self.name,
            **({} if asker is None else {"asker": asker}),
            "model": self.model,
            "compare": self.compare,
            "pairs": len(scenario),
            "labelled": self.labelled,
            "judged": len(judged),
            "verdicts": {"n": self.verdicts, "unread": self.unread},
            "ties": {"n": self.ties, "share": share(tied, judged)},
            "abstentions": {"n": self.abstentions, "share": abstained},
            "position": _report_position(ab, ba, judged),
            "length": _report_length(p, words_a - words_b, said, judged),
            "judge_directed": share(np.where(directed > 0, p, 1 - p)[one], judged[one]),
            "calibration": calibrated,
            **({} if told is None else {"logprobs": told}),
        }


class _PairSignals:
    """Numbers kept of all pairs: the side that each source favours, the signals by judge, and the labels."""

    def __init__(self) -> None:
        self.judges: dict[str, _JudgeSignals] = {}
        self.ratings: dict[str, array[int]] = {"human": array("b"), "probability": array("b")}
        self.left_out: Counter[str] = Counter()
        self.labelled: Counter[str] = Counter()
        self.policies = PolicyCounts()
        self.scenarios = array("q")
        self.directed = array("b")  # 1 where a text addresses a judge
        self.found: list[str] = []

    def add(self, pair: Pair, words: Words) -> None:
        signals = pair.signals
        self.policies.add(pair)
        self._rate("probability", find_preference(signals.probability))
        self._rate("human", None if signals.human is None else find_preference(signals.human))
        for signal in signals.oracle:
            if self._rate(f"oracle {signal.judge}", find_preference(signal)):
                self.judges.setdefault(signal.judge, _JudgeSignals(signal)).add(pair, signal, words)
        if signals.judge_directed is not UNSET:
            said = (signals.judge_directed.a, signals.judge_directed.b)
            self.found += [text for text in said if text is not None][: _EXAMPLES - len(self.found)]
        self.directed.append(signals.judge_directed is not UNSET)
        if pair.label is not None:
            self.labelled[pair.label.by] += 1
            if pair.label.judge in self.judges:
                self.judges[pair.label.judge].labelled += 1
        elif pair.left_out is not None:
            self.left_out[pair.left_out] += 1
        self.scenarios.append(pair.scenario)

    def _rate(self, source: str, p: float | None) -> bool:
        """Record the side that a source favours in this pair. Return False if it is already recorded."""
        column = self.ratings.setdefault(source, array("b"))
        behind = len(self.scenarios) - len(column)
        if behind >= 0:
            column.frombytes(bytes(behind))
            column.append(_sign(p))
        return behind >= 0

    def report(self, arms: Sequence[str], askers: Mapping[str, str]) -> dict[str, Any]:
        count = len(self.scenarios)
        policies = self.policies.report(arms)
        for column in self.ratings.values():
            column.extend([0] * (count - len(column)))
        directed = share(np.array(self.directed, dtype=np.float64), np.array(self.scenarios))
        return {
            "pairs": count,
            "scenarios": len(set(self.scenarios)),
            "labelled": dict(sorted(self.labelled.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "judge_directed": {"n": sum(self.directed), "share": directed, "found": self.found},
            "judges": [judge.report(askers.get(name)) for name, judge in self.judges.items()],
            "agreement": agreement(dict(sorted(self.ratings.items())), self.scenarios),
            **({"policies": policies} if policies else {}),
        }


def make_bias_report(
    rows: Iterable[tuple[Pair, Words]], arms: Sequence[str] = (), askers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the report as values for JSON; `render` makes text of it. `arms`: the arms of the run, in order.
    `askers`: the names of the judges' askers, by the judges' ids. With pairs between arms the report has the
    `policies` matrices.

    A row is a pair with the word counts of sides a and b, for each kind of comparison; each judge uses the
    counts of its own kind. Without them a key is missing. Estimates are `{"value", "low", "high", "n",
    "scenarios"}`, or None without data.
    """
    signals = _PairSignals()
    for pair, words in rows:
        signals.add(pair, words)
    rounded: dict[str, Any] = round_values(msgspec.to_builtins(signals.report(arms, askers or {})))
    return rounded


def report_bias_of_compared(rows: Iterable[ComparedPair], reader: RunReader) -> dict[str, Any]:
    """Return the bias report of pairs that come with their two conversations."""
    notes = read_judge_notes(reader.rundir)
    askers = {judge: str(noted.get("asker", "oracle")) for judge, noted in notes.items()}
    return make_bias_report(((row.pair, count_words(row)) for row in rows), reader.arms, askers)


def report_bias_of_run(reader: RunReader) -> dict[str, Any]:
    """Return the bias report of a run's pairs."""
    return report_bias_of_compared(reader.compared(), reader)


def count_words(compared: ComparedPair) -> Words:
    """Count the words of each side that a judge was shown, for each kind of comparison."""
    a, b, prefix = compared.a.turns, compared.b.turns, compared.pair.prefix_turns
    part = slice(prefix, prefix + 1)

    def count(turns: tuple[Turn, ...]) -> int:
        return sum(len(turn.text.split()) for turn in turns)

    return {
        "conversation": (count(a), count(b)),
        "response": (count(a[part]), count(b[part])),
    }


def _find_directed_side(pair: Pair) -> int:
    """Return the only side that addresses a judge: 1 for a, -1 for b; 0 for neither or both."""
    directed = pair.signals.judge_directed
    return 0 if directed is UNSET else (directed.a is not None) - (directed.b is not None)


def _sign(p: float | None) -> int:
    return 0 if p is None or p == 0.5 else (1 if p > 0.5 else -1)


def _report_position(ab: Floats, ba: Floats, scenario: Floats) -> dict[str, Any]:
    """Return the report on position. A pair flips if the two orders favour different sides. In order ba side
    b is first."""
    flips = np.array((ab - 0.5) * (ba - 0.5) < 0, dtype=np.float64)
    slots = (ab + (1 - ba)) / 2
    first, flipped = share(slots, scenario), share(flips, scenario)
    if first is not None and flipped is not None and flipped.high is not None and np.all(slots == 0.5):
        # Without any sign of a slot effect, an unseen pair deviates at most as much as a flip does.
        half = flipped.high / 2
        first = msgspec.structs.replace(first, low=0.5 - half, high=0.5 + half)
    return {
        "flips": flipped,
        "first_slot": first,
        "points": scale_estimate(first, 200.0, -100.0),
    }


def _report_length(p: Floats, ahead: Floats, said: Floats, scenario: Floats) -> dict[str, Any]:
    """Return the report on length. `ahead`: the words by which side a is longer."""
    known = ~np.isnan(ahead)
    apart, better = known & (ahead != 0), known & ~np.isnan(said)
    longer = share(np.where(ahead > 0, p, 1 - p)[apart], scenario[apart])
    return {
        "longer": longer,
        "points": scale_estimate(longer, 200.0, -100.0),
        "slope": _fit_slope(p[known], ahead[known], scenario[known]),
        "slope_adjusted": _fit_slope(p[better], ahead[better], scenario[better], said[better]),
        "slope_words": SLOPE_WORDS,
    }


def _fit_slope(p: Floats, ahead: Floats, scenario: Floats, said: Floats | None = None) -> Estimate | None:
    """Return the increase of side a's chance, in logits for each SLOPE_WORDS words by which it is longer, at
    equal `said`.

    `said` is the probability that side a is better, by another source. Some values must differ from 0.5.
    """
    if not np.any(ahead) or (said is not None and not np.any(said != 0.5)):
        return None
    # The constant absorbs other differences of side a, for example if the sides are arms.
    columns = [np.ones(ahead.size), ahead / SLOPE_WORDS]
    if said is not None:
        columns.append(2 * said - 1)
    return slope(np.column_stack(columns), p, scenario, prior_sd=_SLOPE_PRIOR_SD)


def round_values(value: Any) -> Any:
    """Round the numbers of values for JSON, so that the result is the same on every machine."""
    if isinstance(value, dict):
        return {key: round_values(child) for key, child in value.items()}
    if isinstance(value, list):
        return [round_values(child) for child in value]
    return round(value, 6) + 0.0 if isinstance(value, float) else value
