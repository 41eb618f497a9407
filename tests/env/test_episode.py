"""The environment for online methods: the data's scenarios, the student's secrets kept, reproducible."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import CallError, JobError, UsageError
from edgen.env import EducationEnv, heard
from tests.env.jobs import job

SECRET = ("student_preference", "student_reaction")
SAID = [
    "Good morning! What do you know about it already?",
    "Let me explain the main idea step by step.",
    "Shall we try it with our hands?",
    "Tell me in your own words what we found.",
    "Look at this picture: what do you see?",
]


async def episode(env: EducationEnv, index: int, rng: random.Random) -> list[Any]:
    """Play a random policy: any sentence at any time, sometimes the end marker."""
    seen: list[Any] = [await env.reset(index)]
    for step in range(100):
        text = f"{rng.choice(SAID)} ({step})"
        if step > 3 and rng.random() < 0.2:
            text += " [end of conversation]"
        seen.append(await env.step(text))
        if seen[-1].done:
            return seen
    raise AssertionError("an episode ends")


async def test_a_random_policy_for_twenty_episodes_twice_the_same(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path)) as env:
        one = [await episode(env, index, random.Random(index)) for index in range(len(env))]
        other = [await episode(env, index, random.Random(index)) for index in range(len(env))]
    assert one == other
    for index, seen in enumerate(one):
        messages, _, done, info = seen[-1]
        assert done
        assert 0 <= info["probability"] <= 1
        assert 2 <= info["turns"] <= 12
        scenario = env.scenario(index)
        text = json.dumps(seen)
        for name in SECRET:
            known = scenario[name] in (scenario["teacher_preference"], scenario["teacher_reaction"])
            assert known or scenario[name] not in text
        assert scenario["topic"] in messages[0]["content"]
    assert {seen[-1].info["ended_by"] for seen in one} >= {"Teacher", "Student"}


async def test_scenarios_are_those_of_the_data(tmp_path: Path) -> None:
    from edgen.planning.load import load_plan

    path = job(tmp_path)
    async with EducationEnv.from_job(path) as env:
        assert [env.scenario(i) for i in range(50)] == [load_plan(path).scenario(i) for i in range(50)]
        assert len(env) == 20


async def test_observations_are_what_a_teacher_would_be_asked_with(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path)) as env:
        start = await env.reset(0)
        assert [message["role"] for message in start] == ["system", "user"]
        after, _, done, info = await env.step("Good morning!")
        assert [message["role"] for message in after] == ["system", "user", "assistant", "user"]
        assert after[2]["content"] == "Good morning!"
        assert not done
        assert (info["turns"], info["ended_by"], info["rejected"]) == (2, None, None)


async def test_a_student_who_opens_has_spoken_after_reset(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path, selfplay={"first": "student"})) as env:
        start = await env.reset(4)
        assert start[-1]["role"] == "user"
        assert start[-1]["content"] != "The lesson begins."


@pytest.mark.parametrize(
    ("text", "reason"),
    [("Hello.\nStudent: Hi!\nTeacher: Well.", "speaks_for_other"), ("", "empty"), ("...", "empty")],
)
async def test_words_that_are_no_turn_end_the_episode_by_name(tmp_path: Path, text: str, reason: str) -> None:
    async with EducationEnv.from_job(job(tmp_path)) as env:
        await env.reset(0)
        _, _, done, info = await env.step(text)
        assert done
        assert info["rejected"] == reason
        with pytest.raises(UsageError, match="reset"):
            await env.step("Again.")


async def test_no_episode_without_reset_and_no_negative_scenario(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path)) as env:
        with pytest.raises(UsageError, match="reset"):
            await env.step("Hello.")
        with pytest.raises(UsageError, match="counted from 0"):
            await env.reset(-1)


async def test_a_step_that_got_no_answer_can_be_tried_again(tmp_path: Path) -> None:
    backends = {"default": {"type": "simulator", "faults": "500=0.9"}}
    async with EducationEnv.from_job(job(tmp_path, backends=backends, limits={"attempts": 1})) as env:
        await env.reset(0)
        failed = 0
        for _ in range(200):
            try:
                observation, *_, info = await env.step("Good morning!")
                break
            except CallError:
                failed += 1
        assert failed > 0
        assert info["turns"] == 2
        assert [message["content"] for message in observation].count("Good morning!") == 1


def test_a_job_that_is_no_two_agents_is_refused(tmp_path: Path) -> None:
    path = job(tmp_path, protocol="oneshot", prompt="education_dialogue")
    with pytest.raises(JobError, match="selfplay"):
        EducationEnv.from_job(path)


async def test_the_first_prompt_takes_no_call(tmp_path: Path) -> None:
    path = job(tmp_path, backends={"default": {"type": "simulator", "faults": "500=1"}})
    env = EducationEnv.from_job(path)  # no connection is open, so none has to be closed
    assert [env.first_prompt(index) for index in range(5)] == [await env.reset(index) for index in range(5)]
    with pytest.raises(UsageError, match="counted from 0"):
        env.first_prompt(-1)
    await env.aclose()


async def test_a_first_prompt_that_takes_a_call_says_so(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path, selfplay={"first": "student"})) as env:
        with pytest.raises(
            UsageError, match=r"the Student speaks first.*use reset, or set selfplay.first to teacher"
        ):
            env.first_prompt(0)


async def test_a_stop_gives_what_an_end_gives(tmp_path: Path) -> None:
    """An episode stopped after some turns has the probability of a conversation that ends at that length."""
    async with EducationEnv.from_job(job(tmp_path)) as env:
        for turns in (2, 4, 6):
            settings = {"closing": "student", "max_turns": turns}
            async with EducationEnv.from_job(job(tmp_path, selfplay=settings)) as short:
                await env.reset(1)
                await short.reset(1)
                for number in range(turns // 2):
                    before, *_ = await env.step(f"{SAID[number]} ({number})")
                    ended = await short.step(f"{SAID[number]} ({number})")
                stopped = await env.stop()
            assert stopped == ended
            assert stopped.messages == before
            assert 0 <= stopped.info["probability"] <= 1
            with pytest.raises(UsageError, match="reset"):
                await env.stop()


async def test_a_stop_before_the_first_word_asks_nobody(tmp_path: Path) -> None:
    path = job(tmp_path, backends={"default": {"type": "simulator", "faults": "500=1"}})
    async with EducationEnv.from_job(path) as env:
        await env.reset(0)
        _, _, done, info = await env.stop()
    assert done
    assert info == {
        "turns": 0,
        "ended_by": None,
        "rejected": None,
        "flags": [],
        "probability": None,
        "reward": None,
    }


async def test_whose_words_were_no_turn(tmp_path: Path) -> None:
    path = job(tmp_path, backends={"default": {"type": "simulator", "faults": "empty=1"}}, asks=1)
    async with EducationEnv.from_job(path) as env:
        await env.reset(0)
        assert (await env.step("")).info["rejected_by"] == "Teacher"
        await env.reset(0)
        assert (await env.step(SAID[0])).info["rejected_by"] == "Student"


async def test_what_was_heard_is_what_the_policy_has_not_seen(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path)) as env:
        await env.reset(0)
        step = await env.step(SAID[0])
        assert heard(step) == step.messages[-1:]
        assert heard(await env.step("Goodbye. [end of conversation]")) == []
        await env.reset(0)
        await env.step(SAID[0])
        assert heard(await env.step("")) == [], "it was heard before"
    async with EducationEnv.from_job(job(tmp_path), "selfplay.order=[teacher, teacher, student]") as env:
        await env.reset(0)
        with pytest.raises(UsageError, match=r"twice in a row.*change selfplay\.order"):
            heard(await env.step(SAID[0]))


async def test_words_that_are_no_turn_have_the_reward_that_was_said(tmp_path: Path) -> None:
    broken = {"default": {"type": "simulator", "faults": "empty=1"}}
    for worth, told in ((0.0, {}), (-1.0, {"broken": -1.0}), (None, {"broken": None})):
        async with EducationEnv.from_job(job(tmp_path), **told) as env:
            await env.reset(0)
            assert (await env.step(SAID[0])).reward is None, "it goes on"
            step = await env.step("")
            assert (step.reward, step.info["reward"], step.done) == (worth, worth, True)
    async with EducationEnv.from_job(job(tmp_path, backends=broken, asks=1), broken=-1.0) as env:
        await env.reset(0)
        assert (await env.step(SAID[0])).reward is None, "it is the student's fault"
