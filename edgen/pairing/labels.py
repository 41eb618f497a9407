"""From signals to labels, a scenario at a time: every pair ends with a label or with why it has none.

A label rests on what its source said of that very pair; an oracle's, on verdicts in both orders.
Bradley-Terry strengths over all of an oracle's results of the scenario weigh each pair (the margin) and can
take a label away, but never give one. They are fitted from two candidates on, so that margins mean the same
in every scenario: one verdict in each order gives two candidates 0.86, and more votes, or results with
others that bear it out, give more. Wins in a circle bear nothing out: such pairs are contradicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET

from edgen.pairing.model import (
    HumanSignal,
    Label,
    OracleSignal,
    Pair,
    ProbabilitySignal,
    Side,
    Source,
    Strength,
)

# Why a pair has no label, and what a person is told.
LEFT_OUT: dict[str, str] = {
    "identical": "both sides say the same",
    "judge_directed": "a text speaks to whoever judges it",
    "not_judged": "the source says nothing about it",
    "abstained": "half or more of an order's verdicts could not be read, or a probability is missing",
    "tie": "the orders disagree, or the source finds both alike",
    "contradicted": "the verdict goes against the strengths of the scenario's candidates",
    "margin": "the margin is below the one asked for",
    "surplus": "the scenario has enough pairs with a larger margin",
}
_SET_APART = ("identical", "judge_directed")  # whatever a source says of them
_NOISE = 1e-9
_DIGITS = 6

OfDirected = Literal["unlabelled", "label"]
Signal = OracleSignal | ProbabilitySignal | HumanSignal


def label_scenario(
    pairs: Sequence[Pair],
    by: Source,
    judge: str | None = None,
    min_margin: float = 0.0,
    max_per_scenario: int | None = None,
    judge_directed: OfDirected = "unlabelled",
) -> list[Pair]:
    """The pairs of one scenario, in their order, each with `label` or `left_out` and its sides' strengths.

    `judge` is the oracle that counts; None is the one found first. Labels and strengths from before
    are replaced; only a pair that comes with `left_out` "identical" keeps it, for the turns are not
    looked at here. Of more than `max_per_scenario` labels those with the largest margin stay, of
    equal ones those whose id comes first. `judge_directed` says what becomes of pairs that have that signal: where they
    are to be unlabelled, what was said of them counts for no strength either.
    """
    if by == "oracle" and judge is None:
        judge = next((signal.judge for pair in pairs for signal in pair.signals.oracle), None)
    pairs = [_fresh(pair, judge_directed) for pair in pairs]
    signals = [_signal(pair, by, judge) for pair in pairs]
    strong = _tournament(pairs, signals) if by == "oracle" else {}
    labelled = [
        _decided(pair, signal, by, strong, min_margin) for pair, signal in zip(pairs, signals, strict=True)
    ]
    if max_per_scenario is None:
        return labelled
    margins = [(-pair.label.margin, pair.id) for pair in labelled if pair.label is not None]
    stay = {identifier for _, identifier in sorted(margins)[: max(max_per_scenario, 0)]}
    return [pair if pair.label is None or pair.id in stay else _without(pair, "surplus") for pair in labelled]


def _fresh(pair: Pair, judge_directed: OfDirected) -> Pair:
    """The pair without an earlier label or reason, but for what no source is asked about."""
    if pair.left_out == "identical":
        return pair
    apart = judge_directed == "unlabelled" and pair.signals.judge_directed is not UNSET
    return msgspec.structs.replace(pair, label=None, left_out="judge_directed" if apart else None)


def favoured(signal: Signal) -> float | None:
    """The signal's p where it favours a side; None where it abstains or is a tie."""
    if isinstance(signal, HumanSignal):
        return None if signal.tie else signal.p
    return None if signal.tie or signal.abstain else signal.p


def _signal(pair: Pair, by: Source, judge: str | None) -> Signal | None:
    match by:
        case "oracle":
            return next((signal for signal in pair.signals.oracle if signal.judge == judge), None)
        case "probability":
            return pair.signals.probability
        case "human":
            return pair.signals.human


def _tournament(pairs: Sequence[Pair], signals: Sequence[Signal | None]) -> dict[str, Strength]:
    """Strengths by id over all results, a tie counting half, each weighing as much as its read verdicts."""
    from edgen.pairing.strength import strengths

    results: list[tuple[str, str, float, int]] = []
    for pair, signal in zip(pairs, signals, strict=True):
        if isinstance(signal, OracleSignal) and signal.p is not None and pair.left_out not in _SET_APART:
            read = sum(verdict.choice is not None for verdict in signal.verdicts)
            results.append((pair.a.id, pair.b.id, 0.5 if signal.tie else signal.p, read))
    ids = sorted({identifier for a, b, _, _ in results for identifier in (a, b)})
    number = {identifier: k for k, identifier in enumerate(ids)}
    fitted = strengths([(number[a], number[b], p, weight) for a, b, p, weight in results])
    return {identifier: fitted[number[identifier]] for identifier in ids}


def _decided(
    pair: Pair, signal: Signal | None, by: Source, strong: dict[str, Strength], min_margin: float
) -> Pair:
    """The pair with its label, or with the first reason against one."""
    pair = msgspec.structs.replace(pair, a=_side(pair.a, strong), b=_side(pair.b, strong))
    if pair.left_out in _SET_APART:
        return _without(pair, pair.left_out)
    if signal is None:
        return _without(pair, "not_judged")
    if not isinstance(signal, HumanSignal) and (signal.abstain or signal.p is None):
        return _without(pair, "abstained")
    p = favoured(signal)
    if p is None or abs(p - 0.5) <= _NOISE:
        return _without(pair, "tie")
    margin = _margin(pair, p)
    if margin <= 0:
        return _without(pair, "contradicted")
    if margin < min_margin - _NOISE:
        return _without(pair, "margin")
    oracle = signal if isinstance(signal, OracleSignal) else None
    label = Label(
        by=by,
        chosen="a" if p > 0.5 else "b",
        p=max(p, 1 - p),
        margin=margin,
        judge=None if oracle is None else oracle.judge,
        compare=None if oracle is None else oracle.compare,
    )
    return msgspec.structs.replace(pair, label=label, left_out=None)


def _margin(pair: Pair, p: float) -> float:
    """By how much the favoured side is ahead: by strengths where there are any (0 or less: behind), else by p."""
    if pair.a.strength is None or pair.b.strength is None:
        return round(abs(2 * p - 1), 9)
    ahead = math.tanh((pair.a.strength.value - pair.b.strength.value) / 2)  # 2 sigmoid(x) - 1
    return round(ahead if p > 0.5 else -ahead, _DIGITS)


def _side(side: Side, strong: dict[str, Strength]) -> Side:
    return msgspec.structs.replace(side, strength=strong.get(side.id))


def _without(pair: Pair, reason: str) -> Pair:
    return msgspec.structs.replace(pair, label=None, left_out=reason)
