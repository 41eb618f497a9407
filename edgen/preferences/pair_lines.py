"""Pairs as lines of text: each with its label, and with the evidence for the label.

The signal of the label has a star. The label follows from its `p`, or from the strengths if there are any:
the side above one half is chosen, and the margin is 2p - 1, or tanh(d / 2) for strengths that differ by d.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET

from edgen.core.pair import (
    HumanSignal,
    Label,
    MarkSignal,
    OracleSignal,
    Pair,
    ProbabilitySignal,
    RolloutSignal,
    Side,
    Verdict,
)
from edgen.core.text import escape_for_terminal
from edgen.preferences.labels import Signal
from edgen.preferences.rollout_evidence import RolloutOutcome

_STAR = "* "
Rollouts = Mapping[str, Sequence[RolloutOutcome]]


def describe_pairs(pairs: Sequence[Pair], rollouts: Rollouts) -> Iterator[tuple[int, str]]:
    """Yield each line with its indent. `rollouts`: rollouts by the pair's id."""
    if pairs:
        yield 0, ""
        yield 0, "pairs"
    for pair in pairs:
        a, b = (_name(side) for side in (pair.a, pair.b))
        yield 2, escape_for_terminal(f"{a} and {b}: {_describe_label(pair)}")
        for line in _describe_evidence(pair, rollouts.get(pair.id, ())):
            yield 4, escape_for_terminal(line)


def _name(side: Side) -> str:
    """Return the name of a side: a conversation, or one of several responses to a turn of it."""
    if side.response is UNSET:
        return side.id
    return f"{side.id} turn {side.response.turn} response {side.response.number}"


def _describe_label(pair: Pair) -> str:
    label = pair.label
    if label is None:
        return f"no label ({pair.left_out or 'nobody compared them'})"
    chosen = pair.a if label.chosen == "a" else pair.b
    how = "" if label.k is UNSET else f" through {label.k} rollouts of each response"
    said = f"chosen {_name(chosen)} by {label.by}{how}, p {label.p:.9g}, margin {label.margin:.6g}"
    return said if label.se in (UNSET, None) else f"{said}, standard error {label.se:.3g}"


def _describe_evidence(pair: Pair, rollouts: Sequence[RolloutOutcome]) -> Iterator[str]:
    """Yield the signals, with a star at the label's; then strengths, and texts that address a judge."""
    for signal in _list_signals(pair):
        star = _STAR if pair.label is not None and _is_of_label(signal, pair.label) else ""
        yield f"{star}{_describe(signal, pair)}"
    for one in rollouts:
        yield f"  rollout {one.number + 1}: {_describe_rollout(one)}"
    strengths = [side.strength for side in (pair.a, pair.b)]
    if all(strengths):
        said = " and ".join(
            f"{one.value:.6f} ({one.low:.3f} to {one.high:.3f})" for one in strengths if one is not None
        )
        yield f"strengths: {said}, in logits"
    if pair.signals.judge_directed is not UNSET:
        directed = pair.signals.judge_directed
        for which, text in (("the first", directed.a), ("the second", directed.b)):
            if text is not None:
                yield f"speaks to a judge, {which}: {text}"


def _list_signals(pair: Pair) -> Iterator[Signal]:
    signals = pair.signals
    yield from signals.oracle
    if signals.rollouts is not UNSET:
        yield from signals.rollouts
    if signals.probability.a is not None or signals.probability.b is not None:
        yield signals.probability
    if signals.human is not None:
        yield signals.human
    if signals.flag is not UNSET:
        yield signals.flag
    if signals.judged is not UNSET:
        yield signals.judged


def _is_of_label(signal: Signal, label: Label) -> bool:
    """Return whether a label rests on a signal."""
    if label.k is not UNSET:
        return isinstance(signal, RolloutSignal) and signal.by == label.by
    match signal:
        case OracleSignal():
            return label.by == "oracle" and signal.judge == label.judge
        case ProbabilitySignal():
            return label.by == "probability"
        case HumanSignal():
            return label.by == "human"
        case MarkSignal():
            return label.by in ("flag", "judged")
    return False


def _describe(signal: Signal, pair: Pair) -> str:
    match signal:
        case OracleSignal():
            verdicts = ", ".join(_describe_verdict(one, pair) for one in signal.verdicts)
            compared = "whole conversations" if signal.compare == "conversation" else "the two responses"
            told = (
                ""
                if signal.logprobs is UNSET
                else f"; by log probabilities {_describe_preference(signal.logprobs.p)}"
            )
            who = f"judge {signal.model} ({signal.judge}) of {compared}"
            return f"{who}: {_describe_preference(signal.p, tie=signal.tie)} ({verdicts}){told}"
        case RolloutSignal():
            by = f"judge {signal.model} ({signal.judge})" if signal.by == "oracle" else "probability"
            means = "" if signal.a is None else f", means {signal.a:.9g} and {signal.b:.9g}"
            count = f"{signal.counted} of {signal.k} rollouts of each response"
            return f"{count}, by {by}: {_describe_preference(signal.p, tie=signal.tie)}{means}"
        case ProbabilitySignal():
            values = " and ".join("unknown" if one is None else f"{one:g}" for one in (signal.a, signal.b))
            return f"probability: {_describe_preference(signal.p, tie=signal.tie)} ({values})"
        case HumanSignal():
            names = {"a": _name(pair.a), "b": _name(pair.b), "tie": "a tie"}
            votes = ", ".join(f"{vote.rater} {names[vote.choice]}" for vote in signal.votes)
            return f"people: {_describe_preference(signal.p, tie=signal.tie)} of {len(signal.votes)} votes ({votes})"
    marks = " and ".join(one or "no mark" for one in (signal.a, signal.b))
    return f"marks of the run: {_describe_preference(signal.p, tie=signal.tie)} ({marks})"


def _describe_verdict(verdict: Verdict, pair: Pair) -> str:
    names = {"a": _name(pair.a), "b": _name(pair.b)}
    vote = f" vote {verdict.vote + 1}" if verdict.vote else ""
    return f"{verdict.order}{vote} {'unread' if verdict.choice is None else names[verdict.choice]}"


def _describe_rollout(one: RolloutOutcome) -> str:
    values = " and ".join("unknown" if value is None else f"{value:g}" for value in (one.a, one.b))
    judged = "" if one.p is None else f"; judge: {_describe_preference(one.p, tie=one.tie)}"
    return f"probability {values}{judged}"


def _describe_preference(p: float | None, *, tie: bool = False) -> str:
    return "abstains" if p is None else f"p {p:.9g} for the first{', a tie' if tie else ''}"
