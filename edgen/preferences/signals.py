"""Signals from their raw parts: a judge's verdicts, two probabilities, people's votes.

The definitions are those of `edgen.core.pair`. A share is exact or absent: nothing is filled in.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.pair import (
    Compare,
    HumanSignal,
    HumanVote,
    OracleSignal,
    Order,
    ProbabilitySignal,
    Verdict,
)

_NOISE = 1e-9  # 0.3 - 0.2 is not quite 0.1
_VALUE = {"a": 1.0, "b": 0.0, "tie": 0.5}


def oracle_signal(
    judge: str, model: str, compare: Compare, verdicts: Sequence[Verdict], simulated: bool = False
) -> OracleSignal:
    """What the verdicts of one judge on one pair come to.

    Both orders weigh the same, however many votes were read in each. It abstains where an order does,
    which is unless more than half of its verdicts could be read: a judge who mostly names no side has not
    judged. It is a tie where the orders do not both favour the same side.
    """
    ab, ba = _wins(verdicts, "ab"), _wins(verdicts, "ba")
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
    )


def _wins(verdicts: Sequence[Verdict], order: Order) -> float | None:
    """Side a's share of the verdicts read in this order; None where the order abstains."""
    choices = [v.choice for v in verdicts if v.order == order]
    read = len(choices) - choices.count(None)
    return choices.count("a") / read if 2 * read > len(choices) else None


def probability_signal(a: float | None, b: float | None) -> ProbabilitySignal:
    """What the conversations' probabilities of understanding say: a tie where they are equal; it abstains where one is
    not known."""
    if a is None or b is None:
        return ProbabilitySignal(a=a, b=b, p=None, tie=False, abstain=True)
    return ProbabilitySignal(a=a, b=b, p=0.5 + (a - b) / 2, tie=abs(a - b) <= _NOISE, abstain=False)


def human_signal(votes: Sequence[HumanVote]) -> HumanSignal | None:
    """What people's votes come to; None where nobody voted. A tie where neither side has more."""
    if not votes:
        return None
    p = sum(_VALUE[vote.choice] for vote in votes) / len(votes)
    return HumanSignal(votes=tuple(votes), p=p, tie=p == 0.5)
