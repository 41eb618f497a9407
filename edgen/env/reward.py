"""Rewards of ended conversations. Pass one to the environment. A reward of your own needs the same two
members."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from edgen.config import PairSettings
from edgen.core.errors import JobError, UsageError
from edgen.core.pair import Candidate
from edgen.core.values import Rejection, RejectionReason, Reply, Request, Scenario, Turn
from edgen.planning.allowed_files import allow_all_files
from edgen.planning.load import load_template
from edgen.planning.plan import Plan
from edgen.preferences.signals import make_oracle_signal
from edgen.prompting import Prompt
from edgen.protocols.oracle import ORACLE, CandidatePair, choose_template, judge_pair
from edgen.protocols.rubric import RUBRIC, Criterion, Judged, score_by_rubric
from edgen.space import digest_content
from edgen.store.run_reader import RunReader


class Ended(msgspec.Struct, frozen=True):
    """An ended conversation. `probability` is the answer to the closing question, None without one."""

    scenario: Scenario
    turns: tuple[Turn, ...]
    probability: float | None


class Scored(msgspec.Struct, frozen=True):
    """A reward with its parts. `scores`, by name, become a conversation's `info["scores"]`."""

    reward: float
    scores: dict[str, float]


# Yields its requests, and returns the reward, None if unknown.
Rewarder = Callable[[Ended], Generator[Request, Reply, float | Scored | None]]


class Reward(Protocol):
    """A reward. `roles` are the job's roles that it calls, in lower case, such as `judge`."""

    @property
    def roles(self) -> tuple[str, ...]: ...

    def start(self, plan: Plan) -> Rewarder:
        """Return the rewarder of a plan's conversations. Raises EdgenError if impossible."""


class ProbabilityReward:
    """The probability that the conversation states, from the closing question."""

    roles: tuple[str, ...] = ()

    def start(self, plan: Plan) -> Rewarder:  # noqa: ARG002 - it needs no plan
        """Return the closing question's answer unchanged."""
        return _ask_probability


def _ask_probability(ended: Ended) -> Generator[Request, Reply, float | None]:
    yield from ()
    return ended.probability


class OracleReward:
    """The probability that the job's judge prefers the conversation to the reference policy's of the same
    scenario.

    `reference` is the folder of a run in which the reference policy spoke. The judge is asked as by `edgen
    pairs`: in both orders, `pairs.votes` times in each, with the job's `prompts.oracle`. 0.5 for equal texts;
    None if the run has no conversation of the scenario, or an order has no readable verdict.
    """

    roles: tuple[str, ...] = ("judge",)

    def __init__(self, reference: str | Path) -> None:
        self._reference = Path(reference)

    def start(self, plan: Plan) -> Rewarder:
        """Read the reference's conversations. Raises RunError if there is no run, JobError if it has other
        scenarios."""
        if plan.job.pairs.compared != "conversation":
            raise JobError(
                plan.job.name, "an oracle reward compares conversations: set pairs.compare to conversation."
            )
        prompt, references = judge_prompt(plan), self._read(plan)

        def compute_reward(ended: Ended) -> Generator[Request, Reply, float | None]:
            index = ended.scenario.index
            reference = references.get(index)
            if reference is None:
                return None
            ours = Candidate(
                id=f"policy-{index}", scenario=index, replicate=0, arm="policy", turns=ended.turns
            )
            p = yield from judge_preference(plan, prompt, ended.scenario, ours, reference)
            if isinstance(p, Rejection):
                return 0.5 if p.reason is RejectionReason.IDENTICAL else None
            return p

        return compute_reward

    def _read(self, plan: Plan) -> dict[int, Candidate]:
        """Return the first accepted conversation of each scenario."""
        with RunReader(self._reference) as reader, reader.rundir.lock_for_reading():
            theirs, job = reader.job, plan.job
            alike = (theirs.seed, theirs.design, theirs.strength) == (job.seed, job.design, job.strength)
            if not alike or digest_content(reader.space) != plan.space_sha256:
                raise JobError(
                    job.name,
                    f"the scenarios of {self._reference} are others: take a run with the same space, seed "
                    "and design.",
                )
            return {index: reader.candidate(index, names[0]) for index, names in reader.scenarios()}


def judge_preference(
    plan: Plan, prompt: Prompt, scenario: Scenario, ours: Candidate, theirs: Candidate
) -> Generator[Request, Reply, float | Rejection | None]:
    """Return the probability that the job's judge prefers `ours`; None without a readable verdict in each
    order. The judge is asked in both orders, `pairs.votes` times in each."""
    pair = CandidatePair(plan.space, scenario, f"{ours.name}~{theirs.name}", ours, theirs)
    compared = plan.job.pairs.compared
    asked = PairSettings(compare=compared, votes=plan.job.pairs.votes)
    verdicts = yield from judge_pair(pair, prompt, asked, plan.rules)
    if isinstance(verdicts, Rejection):
        return verdicts
    return make_oracle_signal("judge", "", compared, verdicts).p


def judge_prompt(plan: Plan) -> Prompt:
    """Return the job's template for the judge: its `prompts.oracle`, else the default one."""
    prompt = plan.extra_prompts.get("oracle")
    if prompt is None:
        template = ORACLE.template(choose_template(plan.space), plan.job.pairs.compared, plan.space)
        prompt = load_template(template, allow_all_files(), plan.space)
    return prompt


class RubricReward:
    """The weighted mean of the criteria's scores, in [0, 1]; `info["scores"]` holds each.

    The job's `judge` is asked in one call, with the template `rubric` or your own, a name or a path. None if
    its answer cannot be read. Raises UsageError for a rubric without criteria, with a repeated name, or with
    weights that are not positive.
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
        prompt = load_template(RUBRIC.template(self._template, plan.space), allow_all_files(), plan.space)

        def compute_reward(ended: Ended) -> Generator[Request, Reply, Scored | None]:
            judged = Judged(plan.space, ended.scenario, "policy", ended.turns)
            scores = yield from score_by_rubric(judged, self._criteria, prompt, plan.rules)
            return None if isinstance(scores, Rejection) else Scored(self._compute_mean(scores), scores)

        return compute_reward

    def _compute_mean(self, scores: dict[str, float]) -> float:
        weights = {criterion.name: criterion.weight for criterion in self._criteria}
        return sum(weights[name] * score for name, score in scores.items()) / sum(weights.values())
