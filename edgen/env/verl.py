"""A reward function for verl: the judge's score of a reply against the reference.

verl finds it by `reward.custom_reward_function.path=pkg://edgen.env.verl` and passes
`+reward.custom_reward_function.reward_kwargs.job=JOB` to it. Rows are those of `edgen export --to verl-rl`.
Nothing of verl is imported. Each process has one judge per job, with its own budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from edgen.core.errors import UsageError
from edgen.env.replies import Score, judge_of


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    job: str = "",
    overrides: Iterable[str] = (),
    **_: Any,
) -> dict[str, float]:
    """Score a reply: `score` in [0, 1] and `judged`, 1 if the judge gave a verdict in each order, else 0.

    `job` is a job file on the scenarios of the rows, `overrides` as for --set. Raises UsageError for a row of
    another job or data source, the errors of loading the job, and CallError, BudgetExhausted or ProviderError
    if the judge cannot be called.
    """
    asked = _ask(data_source, solution_str, ground_truth, extra_info, job, overrides)
    return _as_numbers(asked.result())


async def compute_score_async(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    job: str = "",
    overrides: Iterable[str] = (),
    **_: Any,
) -> dict[str, float]:
    """Score a reply as `compute_score` does, for reward managers that await it, so that one process calls
    many judges at once."""
    # Creating a judge reads files: do it once per process.
    asked = await asyncio.to_thread(_ask, data_source, solution_str, ground_truth, extra_info, job, overrides)
    return _as_numbers(await asyncio.shield(asyncio.wrap_future(asked)))


def _ask(
    data_source: str,
    reply: str,
    reference: str,
    row: Mapping[str, Any] | None,
    job: str,
    overrides: Iterable[str],
) -> Future[Score]:
    if data_source != "edgen":
        raise UsageError(
            f"edgen scores rows whose data_source is edgen, and this one's is {data_source!r}: give that "
            "data a reward function of its own."
        )
    return judge_of(job, overrides).score(reply, reference, row or {})


def _as_numbers(score: Score) -> dict[str, float]:
    return {"score": score.value, "judged": float(score.judged)}
