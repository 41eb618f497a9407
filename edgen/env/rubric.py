"""A reward by rubric: the job's judge scores the conversation by named criteria, in one call."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

from edgen.core.errors import UsageError
from edgen.core.values import Rejection, Reply, Request
from edgen.env.reward import Ended, Rewarder, Scored
from edgen.planning.allowed_files import make_unlimited_reach
from edgen.planning.load import load_template
from edgen.planning.plan import Plan
from edgen.protocols.rubric import RUBRIC, Criterion, Judged, score_by_rubric


class RubricReward:
    """The weighted mean of the criteria's scores, in [0, 1]; `info["scores"]` holds each.

    The job's `judge` is asked, with the template `rubric` or your own, a name or a path. None if its answer
    cannot be read. Raises UsageError for a rubric without criteria, with a repeated name, or with weights
    that are not positive.
    """

    roles: tuple[str, ...] = ("judge",)

    def __init__(self, criteria: Sequence[Criterion], template: str = "rubric") -> None:
        self._criteria = tuple(criteria)
        self._template = template
        names = [criterion.name.strip() for criterion in criteria]
        if not names or not all(names) or len({name.casefold() for name in names}) < len(names):
            raise UsageError("a rubric needs at least one criterion, and a name of its own for each.")
        if not all(math.isfinite(one.weight) and one.weight > 0 for one in criteria):
            raise UsageError("the weight of a criterion is a number above 0.")

    def start(self, plan: Plan) -> Rewarder:
        """Read the template. Raises TemplateError."""
        prompt = load_template(
            RUBRIC.template(self._template, plan.space), make_unlimited_reach(), plan.space
        )

        def compute_reward(ended: Ended) -> Generator[Request, Reply, Scored | None]:
            judged = Judged(plan.space, ended.scenario, "policy", ended.turns)
            scores = yield from score_by_rubric(judged, self._criteria, prompt, plan.rules)
            return None if isinstance(scores, Rejection) else Scored(self._compute_mean(scores), scores)

        return compute_reward

    def _compute_mean(self, scores: dict[str, float]) -> float:
        weights = {criterion.name: criterion.weight for criterion in self._criteria}
        return sum(weights[name] * score for name, score in scores.items()) / sum(weights.values())
