"""Signals from their raw parts: a judge's verdicts, two probabilities, people's votes.

The definitions are those of `edgen.core.pair`. Missing values stay missing.

To ask in both orders and average is the usual remedy against position bias (Zheng et al. 2023, arXiv
2306.05685, who count orders that disagree as a tie; Lee et al. 2023, arXiv 2309.00267, who average the
probabilities of both).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from edgen.core.pair import (
    Compare,
    HumanSignal,
    HumanVote,
    LogprobSignal,
    OracleSignal,
    Order,
    ProbabilitySignal,
    Verdict,
)
from edgen.reading.answers.verdict_logprobs import Bounds

_ORDERS: tuple[Order, Order] = ("ab", "ba")
_DIGITS = 6  # decimals of a probability
_NOISE = 1e-9  # 0.3 - 0.2 is not quite 0.1
_VALUE = {"a": 1.0, "b": 0.0, "tie": 0.5}


def make_oracle_signal(
    judge: str, model: str, compare: Compare, verdicts: Sequence[Verdict], *, simulated: bool = False
) -> OracleSignal:
    """Return the signal of one judge's verdicts on one pair.

    Both orders have the same weight, however many votes were readable in each. The signal abstains unless
    more than half of the verdicts of each order are readable. It is a tie unless both orders favour the same
    side.
    """
    ab, ba = _compute_wins(verdicts, "ab"), _compute_wins(verdicts, "ba")
    p = None if ab is None or ba is None else (ab + ba) / 2
    agree = ab is not None and ba is not None and (min(ab, ba) > 0.5 or max(ab, ba) < 0.5)
    return OracleSignal(
        judge=judge,
        model=model,
        compare=compare,
        verdicts=tuple(verdicts),
        wins_ab=ab,
        wins_ba=ba,
        p=p,
        tie=p is not None and not agree,
        abstain=p is None,
        simulated=simulated,
        logprobs=make_logprob_signal(verdicts),
    )


def make_logprob_signal(verdicts: Sequence[Verdict]) -> LogprobSignal | UnsetType:
    """Return the signal of the verdicts' log probabilities; UNSET if they were not requested."""
    if all(verdict.logprob_p is UNSET for verdict in verdicts):
        return UNSET
    ab, ba = (
        [bounds for v in verdicts if v.order == order and (bounds := _find_bounds(v))] for order in _ORDERS
    )
    of_ab, of_ba = _compute_mean(ab), _compute_mean(ba)
    of_both = None if of_ab is None or of_ba is None else _compute_mean([of_ab, of_ba])
    known = sum(isinstance(verdict.logprob_p, float) for verdict in verdicts)
    p_ab, p_ba, p = (None if one is None else one.preference for one in (of_ab, of_ba, of_both))
    exact = of_both is None or of_both.low == of_both.high
    return LogprobSignal(
        p_ab=p_ab,
        p_ba=p_ba,
        p=p,
        known=known,
        bounds=UNSET if of_both is None or exact else (of_both.low, of_both.high),
    )


def _find_bounds(verdict: Verdict) -> Bounds | None:
    if isinstance(verdict.logprob_bounds, tuple):
        return Bounds(*verdict.logprob_bounds)
    p = verdict.logprob_p
    return Bounds(p, p) if isinstance(p, float) else None


def _compute_mean(values: Sequence[Bounds]) -> Bounds | None:
    if not values:
        return None
    return Bounds(*(round(sum(bounds) / len(values), _DIGITS) for bounds in zip(*values, strict=True)))


def _compute_wins(verdicts: Sequence[Verdict], order: Order) -> float | None:
    """Return side a's share of the readable verdicts in this order; None if the order abstains."""
    choices = [v.choice for v in verdicts if v.order == order]
    read = len(choices) - choices.count(None)
    return choices.count("a") / read if 2 * read > len(choices) else None


def make_probability_signal(a: float | None, b: float | None) -> ProbabilitySignal:
    """Return the signal of the conversations' probabilities of understanding. It is a tie if they are equal,
    and abstains if one is unknown."""
    if a is None or b is None:
        return ProbabilitySignal(a=a, b=b, p=None, tie=False, abstain=True)
    return ProbabilitySignal(a=a, b=b, p=0.5 + (a - b) / 2, tie=abs(a - b) <= _NOISE, abstain=False)


def make_human_signal(votes: Sequence[HumanVote]) -> HumanSignal | None:
    """Return the signal of people's votes; None without votes. It is a tie unless one side has more."""
    if not votes:
        return None
    p = sum(_VALUE[vote.choice] for vote in votes) / len(votes)
    return HumanSignal(votes=tuple(votes), p=p, tie=p == 0.5)
