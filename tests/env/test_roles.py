"""Spaces with custom roles: the policy plays one of them, and each side is shown only its own facts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import JobError, UsageError
from edgen.env import EducationEnv
from tests.env.jobs import SAID, Watching, job
from tests.execution.service import serve
from tests.open_space import tutoring, write

ROLES = ("Tutor", "Learner", "Learner2")


def job_with(folder: Path, url: str, count: int, **changes: Any) -> Path:
    """Return a job of the open space with a server that answers for each role, named by its model."""
    backend = {"type": "openai", "base_url": url, "seed": "auto"}
    backends = {role.lower(): {**backend, "model": role} for role in ROLES[:count]}
    return write(
        folder, tutoring(count), backends={"default": {**backend, "model": "none"}, **backends}, **changes
    )


@pytest.mark.integration
@pytest.mark.parametrize(("count", "plays"), [(n, role) for n in (2, 3) for role in ROLES[:n]])
async def test_views_are_kept_whichever_role_the_policy_plays(tmp_path: Path, count: int, plays: str) -> None:
    space = tutoring(count)
    sees = {role.name: role.sees for role in space.roles}
    async with serve(Watching()) as service:
        assert isinstance(service, Watching)
        async with EducationEnv.from_job(job_with(tmp_path, service.url, count), plays=plays.lower()) as env:
            assert env.role == plays
            for index in range(len(env)):
                service.seen.clear()
                rendered = await play(env, index)
                asked = [*service.seen, *((plays, text) for text in rendered)]
                assert plays not in {role for role, _ in service.seen}, "the policy's own backend was asked"
                assert {role for role, _ in asked} == {*sees}
                values = env.scenario(index).values
                for role, text in asked:
                    for name, value in values.items():
                        assert (value in text) == (name in sees[role]), f"{role} and {name}: {text}"


async def play(env: EducationEnv, index: int) -> list[str]:
    """Play some turns; return all texts that the policy was shown."""
    shown = [await env.reset(index)]
    for number in range(3):
        messages, _, done, info = await env.step(f"{SAID} This is point {number}.")
        assert info["rejected"] is None
        shown.append(messages)
        if done:
            break
    return ["\n".join(message["content"] for message in messages) for messages in shown]


async def test_three_roles_speak_in_turn_and_are_named(tmp_path: Path) -> None:
    async with EducationEnv.from_job(write(tmp_path, tutoring(3)), plays="Learner") as env:
        start = await env.reset(0)
        assert start[-1]["role"] == "user"
        assert "Tutor: " in start[-1]["content"]
        messages, _, done, info = await env.step("I do not know where to begin.")
        assert not done
        assert info["turns"] == 4  # Tutor, the policy, Learner2, Tutor
        assert messages[-2] == {"role": "assistant", "content": "I do not know where to begin."}
        assert messages[-1]["content"].startswith("Learner2: ")
        assert "\n\nTutor: " in messages[-1]["content"]


async def test_a_drawn_order_may_give_the_policy_any_turn(tmp_path: Path) -> None:
    order = {"tutor": 1, "learner": 1, "learner2": 1}
    path = write(tmp_path, tutoring(3), selfplay={"order": order, "max_turns": 12})
    async with EducationEnv.from_job(path, plays="Learner2") as env:
        for index in range(20):
            rng, done = random.Random(index), False
            await env.reset(index)
            while not done:
                _, _, done, info = await env.step(f"And what about the number {rng.random()}?")
            assert info["turns"] <= 12


async def test_the_policy_may_be_the_student(tmp_path: Path) -> None:
    async with EducationEnv.from_job(job(tmp_path), "selfplay.closing=judge", plays="Student") as env:
        start = await env.reset(0)
        scenario = env.scenario(0)
        assert scenario["student_preference"] in start[0]["content"]
        *_, info = await env.step("I would like to try it myself.")
        assert info["turns"] == 3
        assert 0 <= (await env.stop()).info["probability"] <= 1


@pytest.mark.parametrize(
    ("plays", "said"), [(None, r"plays=ROLE, one of .* Tutor, Learner"), ("Parent", "cannot play 'Parent'")]
)
def test_a_role_that_the_space_has_not(tmp_path: Path, plays: str | None, said: str) -> None:
    with pytest.raises(JobError, match=said):
        EducationEnv.from_job(write(tmp_path, tutoring(2)), plays=plays)


def test_the_closing_question_is_not_the_policys(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"selfplay.closing .* `judge`"):
        EducationEnv.from_job(job(tmp_path), plays="student")


async def test_a_policy_that_never_has_a_turn_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, tutoring(3), selfplay={"order": ["tutor", "learner"]})
    async with EducationEnv.from_job(path, plays="Learner2") as env:
        with pytest.raises(UsageError, match=r"Learner2 has none of the first 20 turns"):
            await env.reset(0)


async def test_a_policy_that_speaks_twice_in_a_row_is_asked_twice(tmp_path: Path) -> None:
    path = write(tmp_path, tutoring(2), selfplay={"order": ["tutor", "tutor", "learner"]})
    async with EducationEnv.from_job(path, plays="Tutor") as env:
        await env.reset(0)
        *_, info = await env.step("Good morning!")
        assert info["turns"] == 1
        messages, *_, info = await env.step("What do you know about it already?")
        assert info["turns"] == 3
        assert messages[-2]["content"] == "Good morning!\n\nWhat do you know about it already?"
