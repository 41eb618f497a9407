"""Rewards: the probability, a judge who compares with a reference policy, a custom one."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.errors import CallError, JobError, TemplateError, UsageError
from edgen.core.values import Reply, Request
from edgen.env import Criterion, EducationEnv, Ended, OracleReward, Rewarder, RubricReward
from edgen.execution.client.budget import BudgetExhausted
from edgen.planning.plan import Plan
from tests.env.jobs import SAID, Watching, job, served
from tests.execution.service import Service, completion, error, serve

pytestmark = pytest.mark.integration


async def end_of(env: EducationEnv, index: int = 0, text: str = SAID) -> dict[str, Any]:
    conversation = env.conversation(index)
    await conversation.reset()
    await conversation.step(text)
    return (await conversation.stop()).info


async def play_on(env: EducationEnv) -> None:
    """Play one conversation after the other until the environment ends."""
    while True:
        await end_of(env)


async def test_the_probability_is_the_reward_where_nothing_else_is_said(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path)) as env:
        info = await end_of(env)
    assert info["reward"] == info["probability"]
    assert 0 <= info["reward"] <= 1


class Shorter:
    """A custom reward: the fewer turns the better; it makes no request."""

    roles: tuple[str, ...] = ()

    def start(self, plan: Plan) -> Rewarder:
        most: int = plan.settings.max_turns

        def reward(ended: Ended) -> Generator[Request, Reply, float | None]:
            yield from ()
            return 1 - len(ended.turns) / most

        return reward


async def test_a_reward_of_ones_own(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path), reward=Shorter()) as env:
        assert (await end_of(env))["reward"] == 1 - 2 / 12


def reference_run(folder: Path, conversations: int = 3) -> Path:
    """Make a run in which the simulator teaches; return its path."""
    edgen.generate(str(job(folder)), output=folder / "reference", conversations=conversations, progress=False)
    return folder / "reference"


class Partial:
    """A judge that prefers the interaction with the policy's sentence, or always the first."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.judged = 0

    async def __call__(self, prompt: str) -> str:
        self.judged += 1
        ours, theirs = prompt.find("Interaction 1 begins"), prompt.find("Interaction 2 begins")
        assert 0 < ours < theirs
        is_first = ours < prompt.find(SAID) < theirs
        return {
            "policy": "1" if is_first else "2",
            "reference": "2" if is_first else "1",
            "first": "1",
            "mute": "Hm.",
        }[self.how]


def judging(judge: Partial) -> Watching:
    service = Watching()

    async def trouble(_: Service, __: int) -> Any:
        role, prompt = service.seen[-1]
        return completion(await judge(prompt)) if role == "judge" else None

    service.trouble = trouble
    return service


@pytest.mark.parametrize(
    ("how", "reward"), [("policy", 1.0), ("reference", 0.0), ("first", 0.5), ("mute", None)]
)
async def test_a_judge_compares_with_the_reference_in_both_orders(
    tmp_path: Path, how: str, reward: float | None
) -> None:
    reference = await asyncio.to_thread(reference_run, tmp_path)
    judge = Partial(how)
    async with serve(judging(judge)) as service:
        path = served(tmp_path, service.url, ("student", "judge"), asks=1, pairs={"votes": 2})
        async with EducationEnv.from_job(path, reward=OracleReward(reference)) as env:
            info = await end_of(env, 1)
            assert info["reward"] == reward
            assert judge.judged == 4
            assert (await end_of(env, 7))["reward"] is None, "the reference has three scenarios"
            assert judge.judged == 4


async def test_the_same_words_as_the_reference_are_worth_a_half(tmp_path: Path) -> None:
    reference = await asyncio.to_thread(reference_run, tmp_path, 1)
    run = edgen.open(reference)
    (known,) = run.conversations()
    async with EducationEnv.from_job(job(tmp_path), reward=OracleReward(reference)) as env:
        await env.reset(0)
        said = [turn.text for turn in known.turns if turn.role == "Teacher"]
        for text in said:
            _, _, done, info = await env.step(text)
        if not done:
            *_, info = await env.stop()
    assert info["turns"] == len(known.turns)
    assert info["reward"] == 0.5


async def test_the_judge_is_paid_from_the_same_budget(tmp_path: Path) -> None:
    reference = await asyncio.to_thread(reference_run, tmp_path)
    judge = Partial("policy")
    async with serve(judging(judge)) as service:
        path = served(
            tmp_path,
            service.url,
            ("student", "judge"),
            limits={"max_tokens": 6_000},
            selfplay={"max_turns": 12},
        )
        async with EducationEnv.from_job(path, reward=OracleReward(reference)) as env:
            with pytest.raises(BudgetExhausted):
                await play_on(env)
            assert env.spent is not None
            assert env.spent.tokens <= 6_000
            assert judge.judged > 0


async def test_a_judge_that_fails_is_asked_again_and_nobody_else(tmp_path: Path) -> None:
    reference = await asyncio.to_thread(reference_run, tmp_path)
    judge, fails = Partial("policy"), iter((True, False, True))
    service = judging(judge)
    answer = service.trouble
    assert answer is not None

    async def trouble(of: Service, seed: int) -> Any:
        return error(500) if service.seen[-1][0] == "judge" and next(fails, False) else await answer(of, seed)

    service.trouble = trouble
    async with serve(service):
        path = served(tmp_path, service.url, ("student", "judge"), limits={"attempts": 1})
        async with EducationEnv.from_job(path, reward=OracleReward(reference)) as env:
            await env.reset(0)
            await env.step(SAID)
            for _ in range(2):
                with pytest.raises(CallError):
                    await env.stop()
            assert (await env.stop()).info["reward"] == 1.0
    asked = [role for role, _ in service.seen]
    assert asked.count("student") == 2  # a turn and the closing question
    assert asked.count("judge") == 4  # two orders, two failures
    assert judge.judged == 2


def test_a_reference_of_other_scenarios_is_refused(tmp_path: Path) -> None:
    reference = reference_run(tmp_path, 1)
    with pytest.raises(JobError, match="same space, seed and design"):
        EducationEnv.from_job(job(tmp_path), "seed=4", reward=OracleReward(reference))
    with pytest.raises(JobError, match=r"set pairs\.compare to conversation"):
        EducationEnv.from_job(job(tmp_path), "pairs.compare=response", reward=OracleReward(reference))


RUBRIC = [
    Criterion("asks", "The teacher asks what the student knows.", weight=3),
    Criterion("warm", "It is kind."),
]


@pytest.mark.parametrize(
    ("says", "reward", "scores"),
    [
        ('{"asks": 8, "warm": 4}', 0.7, {"asks": 0.8, "warm": 0.4}),
        ("I would rather not.", None, None),
    ],
)
async def test_a_rubric_is_one_call_and_keeps_each_score(
    tmp_path: Path, says: str, reward: float | None, scores: dict[str, float] | None
) -> None:
    service = Watching()

    async def judged(_: Service, __: int) -> Any:
        return completion(says) if service.seen[-1][0] == "judge" else None

    service.trouble = judged
    async with serve(service):
        path = served(tmp_path, service.url, ("student", "judge"), asks=1, limits={"max_tokens": 50_000})
        async with EducationEnv.from_job(path, reward=RubricReward(RUBRIC)) as env:
            info = await end_of(env)
            assert env.spent is not None
            spent = env.spent.tokens
    assert info["reward"] == (reward if reward is None else pytest.approx(reward))
    assert info.get("scores") == scores
    assert [role for role, _ in service.seen] == ["student", "student", "judge"]
    assert spent > sum(len(prompt) for role, prompt in service.seen if role == "judge") / 8, (
        "the judge is charged"
    )
    assert SAID in service.seen[-1][1]


async def test_the_simulator_judges_by_a_rubric_the_same_again(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path), reward=RubricReward(RUBRIC)) as env:
        one, other = await end_of(env), await end_of(env)
    assert one == other
    assert set(one["scores"]) == {"asks", "warm"}
    assert one["reward"] == pytest.approx((3 * one["scores"]["asks"] + one["scores"]["warm"]) / 4)


def test_a_rubric_that_is_none_is_refused(tmp_path: Path) -> None:
    for criteria in ([], [Criterion("", "x")], [Criterion("a", "x"), Criterion("A", "y")]):
        with pytest.raises(UsageError, match="a name of its own for each"):
            RubricReward(criteria)
    with pytest.raises(UsageError, match="a number above 0"):
        RubricReward([Criterion("a", "x", weight=0)])
    (tmp_path / "blind.j2").write_text("Score it: {{ criteria }} {{ form }}")
    with pytest.raises(TemplateError, match="guarded is never used"):
        EducationEnv.from_job(job(tmp_path), reward=RubricReward(RUBRIC, str(tmp_path / "blind.j2")))
