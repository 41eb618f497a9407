"""Estimate of the calls for the pairs of a run; nothing is sent and nothing is written."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import msgspec

from edgen.api.pairs import PairMaking
from edgen.asking.call_estimates import CallsNeeded, Needs, needs_of
from edgen.asking.ledger_paths import open_for_reading
from edgen.asking.options import PairOptions
from edgen.asking.rollouts import RolloutMaking
from edgen.runtime.control import Control


class RolloutNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Rollouts of `responses`, `k` of each: how many are there, and what the others take. As many turns are
    expected as followed the response in its own conversation."""

    responses: int
    k: int
    there: int
    to_play: int
    calls: CallsNeeded


class JudgeNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Comparisons by the judge: how many are there, and what the others take. Rollouts that are still to be
    played are taken to come to something, so their comparisons count."""

    judge: str
    there: int
    to_judge: int
    calls: CallsNeeded


class PairsEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Estimate of pairs. `rollouts` and `judged` are None if not requested."""

    run: str
    calls: CallsNeeded
    rollouts: RolloutNeeds | None = None
    judged: JudgeNeeds | None = None


def estimate_pairs(run: Path, options: PairOptions, control: Control) -> PairsEstimate:
    """Return the calls of `make_pairs`. Raises its errors before its first call."""
    with open_for_reading(run, options.against) as reader:
        making = PairMaking(reader, options, control)
        making.require_comparable()
        return asyncio.run(_estimate(making))


async def _estimate(making: PairMaking) -> PairsEstimate:
    rollouts = judged = None
    if making.rollouts is not None:
        rollouts = await _estimate_rollouts(making.rollouts)
    if making.options.by == "oracle":
        ((judge, needs),) = await making.judge.estimate()
        judged = JudgeNeeds(judge=judge.id, there=needs.stored, to_judge=needs.missing, calls=needs.calls)
    total = CallsNeeded()
    for one in (rollouts, judged):
        total = total if one is None else total.plus(one.calls)
    return PairsEstimate(run=str(making.run.path), calls=total, rollouts=rollouts, judged=judged)


async def _estimate_rollouts(making: RolloutMaking) -> RolloutNeeds:
    askers = [*(await making.askers()).values()]
    needs = functools.reduce(Needs.plus, (needs_of(one, making.place) for one in askers))
    return RolloutNeeds(
        responses=sum(one.responses for one in askers),
        k=askers[0].k,
        there=needs.stored,
        to_play=needs.missing,
        calls=needs.calls,
    )
