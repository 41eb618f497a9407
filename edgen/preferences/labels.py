"""From signals to labels, one scenario at a time: every pair gets a label, or the reason for none.

A label rests on its source's signal about the same pair. An oracle's label rests on verdicts in both orders.
Bradley-Terry strengths, fitted to all of an oracle's results in the scenario, weigh each pair (the margin).
They can remove a label but never give one. They are fitted from two candidates on, so that margins mean the
same in every scenario. One verdict in each order gives two candidates a margin of 0.86. More votes and
consistent results of other pairs increase it. Pairs whose results form a circle are contradicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET

from edgen.core.pair import (
    Compare,
    HumanSignal,
    Label,
    MarkSignal,
    OracleSignal,
    Pair,
    ProbabilitySignal,
    RolloutSignal,
    Source,
    Strength,
)

# The reasons for a pair without a label, with the text for a person.
UNLABELLED: dict[str, str] = {
    "identical": "both sides say the same",
    "turns_left": "after the two conversations part, fewer turns follow than requested (min_turns_left)",
    "judge_directed": "a text addresses the judge",
    "not_judged": "the source says nothing about it",
    "abstained": "half or more of an order's verdicts could not be read, or a probability is missing",
    "tie": "the orders disagree, or the source finds both alike",
    "contradicted": "the verdict goes against the strengths of the scenario's candidates",
    "margin": "the margin is below the requested one",
    "surplus": "the scenario has enough pairs with a larger margin",
}
_OF_TURNS = ("identical", "turns_left")  # decided from the turns, which are not read here
_SET_APART = (*_OF_TURNS, "judge_directed")  # left out for every source
_NOISE = 1e-9
_DIGITS = 6

Signal = OracleSignal | ProbabilitySignal | HumanSignal | RolloutSignal | MarkSignal


class LabelRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of labels: their source, and the pairs to keep."""

    by: Source  # source of the labels
    judge: str | None = None  # id of the judge that counts; None: the first one found
    min_margin: float = 0.0  # pairs with a smaller margin stay unlabelled
    max_per_scenario: int | None = None  # keep labels with the largest margin, then the first id; None: all
    judge_directed: Literal["unlabelled", "label"] = "unlabelled"
    """If such pairs are unlabelled, their signals do not count for strengths either."""
    rollouts: bool = False
    """Label by rollouts. Strengths are then of the responses at which pairs part."""


def label_scenario(pairs: Sequence[Pair], rules: LabelRules) -> list[Pair]:
    """Return the pairs of one scenario, in order, each with `label` or `left_out`, and the strengths of its
    sides.

    Replaces earlier labels and strengths, except `left_out` "identical" and "turns_left", since turns are not
    read here.
    """
    judge = rules.judge
    if judge is None:
        judge = next((signal.judge for pair in pairs for signal in pair.signals.oracle), None)
    pairs = [_unlabel(pair, rules) for pair in pairs]
    signals = [_find_signal(pair, rules, judge) for pair in pairs]
    strong = _fit_strengths(pairs, signals) if rules.by == "oracle" else {}
    labelled = [_label(pair, signal, rules, strong) for pair, signal in zip(pairs, signals, strict=True)]
    if rules.max_per_scenario is None:
        return labelled
    margins = [(-pair.label.margin, pair.id) for pair in labelled if pair.label is not None]
    stay = {identifier for _, identifier in sorted(margins)[: max(rules.max_per_scenario, 0)]}
    return [pair if pair.label is None or pair.id in stay else _without(pair, "surplus") for pair in labelled]


def _unlabel(pair: Pair, rules: LabelRules) -> Pair:
    """Return the pair without an earlier label or reason, except for reasons that do not depend on a
    source."""
    if pair.left_out in _OF_TURNS:
        return pair
    apart = rules.judge_directed == "unlabelled" and pair.signals.judge_directed is not UNSET
    return msgspec.structs.replace(pair, label=None, left_out="judge_directed" if apart else None)


def find_preference(signal: Signal) -> float | None:
    """Return the signal's p if it favours a side; None if it abstains or is a tie."""
    return None if signal.tie else signal.p


def _find_signal(pair: Pair, rules: LabelRules, judge: str | None) -> Signal | None:
    if rules.rollouts:
        found = () if pair.signals.rollouts is UNSET else pair.signals.rollouts
        return next((signal for signal in found if signal.by == rules.by), None)
    if rules.by == "oracle":
        return next((signal for signal in pair.signals.oracle if signal.judge == judge), None)
    marks = {"flag": pair.signals.flag, "judged": pair.signals.judged}
    if rules.by in marks:
        return None if (mark := marks[rules.by]) is UNSET else mark
    return pair.signals.probability if rules.by == "probability" else pair.signals.human


def _read_result(signal: Signal | None) -> tuple[float, int] | None:
    """Return a judge's preference for the fit of strengths, and its number of readable verdicts; None without
    a preference."""
    if isinstance(signal, RolloutSignal):
        return None if signal.p is None or not signal.verdicts else (signal.p, signal.verdicts)
    if not isinstance(signal, OracleSignal) or signal.p is None:
        return None
    return 0.5 if signal.tie else signal.p, sum(verdict.choice is not None for verdict in signal.verdicts)


def _find_place(pair: Pair, signal: Signal | None) -> int | None:
    """Return what the strengths are of: the responses after this number of turns, or None for whole
    conversations."""
    return pair.prefix_turns if isinstance(signal, RolloutSignal) else None


Strengths = dict[int | None, dict[str, Strength]]  # by place (see `_find_place`) and conversation


def _fit_strengths(pairs: Sequence[Pair], signals: Sequence[Signal | None]) -> Strengths:
    """Fit strengths to all results. A tie counts half, and a result weighs as much as its number of read
    verdicts."""
    from edgen.stats.bradley_terry import strengths

    results: dict[int | None, list[tuple[str, str, float, int]]] = {}
    for pair, signal in zip(pairs, signals, strict=True):
        if pair.left_out not in _SET_APART and (found := _read_result(signal)) is not None:
            results.setdefault(_find_place(pair, signal), []).append((pair.a.id, pair.b.id, *found))
    return {place: strengths(those) for place, those in results.items()}


def _label(pair: Pair, signal: Signal | None, rules: LabelRules, strong: Strengths) -> Pair:
    """Return the pair with its label, or with the first reason against a label."""
    own = strong.get(_find_place(pair, signal), {})
    a, b = (msgspec.structs.replace(side, strength=own.get(side.id)) for side in (pair.a, pair.b))
    pair = msgspec.structs.replace(pair, a=a, b=b)
    made = _make_label(pair, signal, rules)
    return _without(pair, made) if isinstance(made, str) else msgspec.structs.replace(pair, label=made)


def _make_label(pair: Pair, signal: Signal | None, rules: LabelRules) -> Label | str:
    """Return the label by a signal, or the first reason against it."""
    if pair.left_out in _SET_APART:
        return pair.left_out
    if signal is None or (isinstance(signal, MarkSignal) and signal.abstain):
        return "not_judged"
    if not isinstance(signal, HumanSignal) and (signal.abstain or signal.p is None):
        return "abstained"
    p = find_preference(signal)
    if p is None or abs(p - 0.5) <= _NOISE:
        return "tie"
    margin = _compute_margin(pair, p)
    if margin <= 0:
        return "contradicted"
    if margin < rules.min_margin - _NOISE:
        return "margin"
    label = Label(by=rules.by, chosen="a" if p > 0.5 else "b", p=max(p, 1 - p), margin=margin)
    if isinstance(signal, OracleSignal):
        return msgspec.structs.replace(label, judge=signal.judge, compare=signal.compare)
    if isinstance(signal, MarkSignal):
        return msgspec.structs.replace(label, compare="response")
    if isinstance(signal, RolloutSignal):
        compare: Compare | None = "conversation" if signal.by == "oracle" else None
        return msgspec.structs.replace(label, judge=signal.judge, compare=compare, k=signal.k, se=signal.se)
    return label


def _compute_margin(pair: Pair, p: float) -> float:
    """Return the lead of the favoured side, by strengths if there are any, else by p. It is 0 or less if the
    favoured side has the lower strength."""
    if pair.a.strength is None or pair.b.strength is None:
        return round(abs(2 * p - 1), 9)
    ahead = math.tanh((pair.a.strength.value - pair.b.strength.value) / 2)  # 2 sigmoid(x) - 1
    return round(ahead if p > 0.5 else -ahead, _DIGITS)


def _without(pair: Pair, reason: str) -> Pair:
    return msgspec.structs.replace(pair, label=None, left_out=reason)
