"""Signals of a pair by rollouts: the mean over the continued conversations of both responses, with its
standard error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, variance
from typing import Any

import msgspec

from edgen.core.pair import OracleSignal, RolloutSignal, digest_texts
from edgen.core.values import RejectionReason, Status
from edgen.preferences.choice import Divergence
from edgen.preferences.comparisons import decode_judged, name_comparison
from edgen.preferences.rollouts import DivergingTurn, PlayedRollouts

_DIGITS = 9
Outcomes = Mapping[Any, tuple[Status, str | None, bytes | None]]


def make_signal_by_probability(
    a: Sequence[float], b: Sequence[float], k: int, *, simulated: bool
) -> RolloutSignal:
    """Return the signal by the probabilities of both responses' rollouts. The two means are independent, so
    their variances add."""
    means = (fmean(a), fmean(b)) if _has_enough(k, a, b) else None
    p = None if means is None else 0.5 + (means[0] - means[1]) / 2
    spread = [variance(one) / len(one) for one in (a, b) if len(one) > 1]
    se = math.sqrt(sum(spread)) / 2 if p is not None and len(spread) == 2 else None
    return _make_signal("probability", k, min(len(a), len(b)), means, p, se, simulated=simulated)


def make_signal_by_judge(signals: Sequence[OracleSignal | None], k: int, *, simulated: bool) -> RolloutSignal:
    """Return the signal by a judge's comparisons of rollouts; None stands for two identical rollouts.
    `simulated`: a simulator played the rollouts."""
    values = [0.5 if one is None or one.tie or one.p is None else one.p for one in signals]
    read = [one for one in signals if one is not None]
    p = fmean(values) if _has_enough(k, values) else None
    se = math.sqrt(variance(values) / len(values)) if p is not None and len(values) > 1 else None
    signal = _make_signal(
        "oracle",
        k,
        len(values),
        None if p is None else (p, 1 - p),
        p,
        se,
        simulated=simulated or any(one.simulated for one in read),
    )
    verdicts = sum(verdict.choice is not None for one in read for verdict in one.verdicts)
    judge = read[0] if read else None
    return msgspec.structs.replace(
        signal, verdicts=verdicts, judge=judge and judge.judge, model=judge and judge.model
    )


def _has_enough(k: int, *values: Sequence[float]) -> bool:
    """Return whether both responses have more than half of their k values."""
    return all(2 * len(one) > k for one in values)


def _make_signal(
    by: Any,
    k: int,
    counted: int,
    means: tuple[float, float] | None,
    p: float | None,
    se: float | None,
    *,
    simulated: bool,
) -> RolloutSignal:
    a, b, p, se = (None if one is None else round(one, _DIGITS) for one in (*(means or (None, None)), p, se))
    tie = p is not None and abs(p - 0.5) < 10.0**-_DIGITS
    return RolloutSignal(
        by=by, k=k, counted=counted, a=a, b=b, p=p, se=se, tie=tie, abstain=p is None, simulated=simulated
    )


def list_rollout_signals(
    played: PlayedRollouts,
    index: int,
    names: tuple[str, str],
    divergence: Divergence,
    judged: Outcomes | None,
) -> Iterator[RolloutSignal]:
    """Yield the signals of a pair by its rollouts: one by their probabilities, and one by the judge with the
    outcomes `judged`."""
    if divergence.responses is None or divergence.is_near_end(played.choice.wanted.min_turns_left):
        return
    responses = [DivergingTurn(name, divergence.prefix + 1) for name in names]
    both = [played.of(index, one) for one in responses]
    known = [
        [one.probability for one in side if one is not None and one.probability is not None] for side in both
    ]
    simulated = any(one.simulated for side in both for one in side if one is not None)
    yield make_signal_by_probability(known[0], known[1], played.k, simulated=simulated)
    if judged is not None:
        yield make_signal_by_judge(
            [*_list_judgements(responses, both, judged)], played.k, simulated=simulated
        )


def _list_judgements(
    responses: Sequence[DivergingTurn], both: Sequence[Sequence[Any]], judged: Outcomes
) -> Iterator[OracleSignal | None]:
    """Yield the judge's comparison of the first rollouts of both responses, of the second ones, and so on, if
    their texts are unchanged."""
    for number, (a, b) in enumerate(zip(*both, strict=True)):
        if a is None or b is None:
            continue
        status, reason, record = judged.get(
            name_comparison(*(one.name_rollout(number) for one in responses)), (None, None, None)
        )
        if reason == RejectionReason.IDENTICAL:
            yield None
        elif status == Status.ACCEPTED and record is not None:
            said = decode_judged(record)
            if said.texts == digest_texts(a, b):
                yield said.signal
