"""How many calls the pairs of a run will take, before any is made; nothing is sent and nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.api.judging import open_for_reading, unanswered
from edgen.api.pairs import PairMaking, PairOptions
from edgen.api.rollouts import RolloutMaking, rollout_ledger
from edgen.api.supervision.control import Control
from edgen.preferences.comparisons import name_comparison
from edgen.preferences.rollouts import Rollouts, planned_comparisons, read_rollout


class Amount(msgspec.Struct, frozen=True):
    """Calls: as expected, and if each answer is asked for as often as the job allows and every turn is taken."""

    expected: int = 0
    at_most: int = 0

    def plus(self, other: Amount) -> Amount:
        """The sum of both."""
        return Amount(self.expected + other.expected, self.at_most + other.at_most)


class RolloutNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Rollouts of `responses`, `k` of each: how many are there, and what the others take. As many turns are expected as
    followed the response in its own conversation."""

    responses: int
    k: int
    there: int
    to_play: int
    calls: Amount


class JudgeNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Comparisons by the judge: how many are there, and what the others take."""

    judge: str
    there: int
    to_judge: int
    calls: Amount


class PairsEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What pairs will take. `rollouts` and `judged` are None where none is asked for."""

    run: str
    calls: Amount
    rollouts: RolloutNeeds | None = None
    judged: JudgeNeeds | None = None


def estimate_pairs(run: Path, options: PairOptions, control: Control) -> PairsEstimate:
    """The calls that `make_pairs` would make. Raises what it raises before its first call."""
    with open_for_reading(run) as reader:
        making = PairMaking(reader, options, control)
        making.require_comparable()
        return asyncio.run(_estimate(making))


async def _estimate(making: PairMaking) -> PairsEstimate:
    rollouts = judged = None
    if making.rollouts is not None:
        rollouts = await _rollout_needs(making.rollouts)
    if making.options.by == "oracle":
        judged = await _judge_needs(making)
    calls = [needs.calls for needs in (rollouts, judged) if needs is not None]
    total = Amount()
    for one in calls:
        total = total.plus(one)
    return PairsEstimate(run=str(making.run.path), calls=total, rollouts=rollouts, judged=judged)


async def _rollout_needs(making: RolloutMaking) -> RolloutNeeds:
    responses = k = planned = to_play = 0
    calls = Amount()
    for tasks in (await making.all_tasks()).values():
        responses, k, planned = responses + tasks.responses, tasks.k, planned + tasks.planned
        for unit in unanswered(tasks.units(), rollout_ledger(tasks)):
            to_play += 1
            calls = calls.plus(_calls_of(tasks, *unit))
    return RolloutNeeds(responses=responses, k=k, there=planned - to_play, to_play=to_play, calls=calls)


def _calls_of(tasks: Rollouts, index: int, task: str) -> Amount:
    """The calls of one rollout."""
    response, _ = read_rollout(task)
    turns, most, closing = tasks.turns_to_come(index, response)
    return Amount(turns + closing, (most + closing) * tasks.job.asks)


async def _judge_needs(making: PairMaking) -> JudgeNeeds:
    pairs, judge = making.job.pairs, await making.judge_id()
    ledger = making.run.judged / f"{judge}.db"
    planned = sum(1 for _ in _comparisons(making))
    missing = sum(1 for _ in unanswered(_comparisons(making), ledger))
    calls = missing * 2 * pairs.votes
    amount = Amount(calls, calls * making.job.asks)
    return JudgeNeeds(judge=judge, there=planned - missing, to_judge=missing, calls=amount)


def _comparisons(making: PairMaking) -> Iterator[tuple[int, str]]:
    """Everything that the judge is asked about."""
    for index, names in making.reader.scenarios():
        if len(names) < 2:
            continue
        if making.rollouts is not None:
            yield from ((index, task) for task in planned_comparisons(making.choice, index, names))
        else:
            yield from ((index, name_comparison(*pair)) for pair in making.choice.judged(index, names))
