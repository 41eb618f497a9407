"""Samples of every shipped job: they speak of their scenario, recite no persona and echo nobody."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import pytest

from edgen.core.registry import find
from edgen.core.values import Conversation, Request
from edgen.evaluation.measure import Shared
from edgen.evaluation.sample import DataSet, Sample, cut
from edgen.planning.allowed_files import Reach
from edgen.planning.load import load_plans
from edgen.planning.plan import Plan
from edgen.protocols.gated import Passed
from edgen.simulator.text import respond
from tests import ROOT

pytestmark = pytest.mark.integration

# The job real.yaml asks a model: tests/real. People answer those with `type: human`: tests/web/test_play.py.
JOBS = sorted(
    path.stem
    for path in (ROOT / "jobs").glob("*.yaml")
    if "type: simulator" in (text := path.read_text("utf-8")) and "type: human" not in text
)
EACH = 10
# The least share of values and key facts that are mentioned, on average; measured with 20 conversations, less a margin.
LEAST_MENTIONED = {
    "course_advising": 0.8,
    "experiment": 0.95,
    "homework_help": 0.75,
    "incident_response": 0.7,
    "language_learning": 0.75,
    "lesson_plan": 0.8,
    "math_misconceptions": 0.85,
    "quickstart": 0.95,
    "selfplay": 0.95,
    "tech_support": 0.75,
    "tutoring": 0.8,
}
MOST_ECHOES = {"tutoring": 0.12}  # a student says the answer that it was asked to say
USUAL_ECHOES = 0.04


@cache
def conversations(job: str) -> tuple[Plan, tuple[Conversation, ...]]:
    path = ROOT / "jobs" / f"{job}.yaml"
    plan = next(iter(load_plans(path, [], Reach.of(path))[1].values()))
    found = (made(plan, index) for index in range(EACH))
    return plan, tuple(one for one in found if one is not None)


def made(plan: Plan, index: int) -> Conversation | None:
    work = plan.task(index, 0).protocol
    request: Request = next(work)
    while True:
        reply = respond(
            request.messages,
            seed=request.seed,
            protocol=request.protocol,
            speakers=request.speakers,
            schema=request.schema,
            json_mode=request.schema is not None,
            scene=request.scene,
        )
        try:
            request = work.send(reply)
        except StopIteration as end:
            result = end.value.result if isinstance(end.value, Passed) else end.value
            return result if isinstance(result, Conversation) else None


@cache
def figures(job: str) -> dict[str, Any]:
    plan, said = conversations(job)
    data = DataSet(
        name=job, samples=lambda: iter(()), family=plan.family, roles=plan.space.roles, space=plan.space
    )
    shared = Shared(data, partial(find, "measure"))
    shared.start(["mentioned", "recited", "echoes"])
    for index, one in enumerate(said):
        sample = Sample(
            id=str(index),
            source=job,
            split=None,
            scenario=plan.scenario(index),
            turns=one.turns,
            entries=len(one.turns),
        )
        shared.see(sample, cut(sample.turns))
    return shared.results(["mentioned", "recited", "echoes"])


@pytest.mark.parametrize("job", JOBS)
def test_its_conversations_mention_their_scenario(job: str) -> None:
    found = figures(job)["mentioned"]
    assert found.share is not None
    assert found.share.value >= LEAST_MENTIONED[job], found


@pytest.mark.parametrize("job", JOBS)
def test_none_recites_a_persona(job: str) -> None:
    found = figures(job)["recited"]
    assert found.turns == 0, found


@pytest.mark.parametrize("job", JOBS)
def test_few_turns_echo(job: str) -> None:
    found = figures(job)["echoes"]
    assert found.share is not None
    assert found.share.value <= MOST_ECHOES.get(job, USUAL_ECHOES), found


@pytest.mark.parametrize("job", JOBS)
def test_its_conversations_hold_no_slot_and_no_stand_in(job: str) -> None:
    for one in conversations(job)[1]:
        text = "\n".join(turn.text for turn in one.turns)
        assert not any(
            words in text for words in ("today's topic", "my usual method", "another way of learning")
        )
        assert "{" not in text or "}" not in text


def test_every_mathematics_lesson_has_numbers_and_every_talk_on_courses_names_one() -> None:
    for one in conversations("math_misconceptions")[1]:
        assert any(char.isdigit() for turn in one.turns for char in turn.text)
    plan, talks = conversations("course_advising")
    for index, one in enumerate(talks):
        courses = plan.scenario(index).values["suggested"].split()
        text = "\n".join(turn.text for turn in one.turns)
        assert any(course in text for course in courses if course[-1].isdigit())


@pytest.mark.parametrize(("job", "wrong"), [("homework_help", "mistake"), ("tech_support", "rumour")])
def test_a_wrong_answer_is_rarely_accepted(job: str, wrong: str) -> None:
    path = ROOT / "jobs" / f"{job}.yaml"
    plan = next(iter(load_plans(path, [], Reach.of(path))[1].values()))
    accepted = deceived = 0
    for index in range(60):
        one = made(plan, index)
        for number in one.outcome["answers"] if one is not None and one.outcome else ():
            accepted += 1
            deceived += plan.scenario(index).values[wrong] in one.turns[number - 1].text  # type: ignore[union-attr]
    assert accepted > 20
    assert deceived <= 0.1 * accepted


def test_the_same_scenario_is_said_the_same_way() -> None:
    plan, said = conversations("math_misconceptions")
    assert made(plan, 3) == said[3]
