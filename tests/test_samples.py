"""Samples of every shipped job: they mention their scenario, recite no persona and echo no other turn."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from edgen.core.values import Conversation, Request
from edgen.evaluation.sample import DataSet, Sample, cut
from edgen.evaluation.shared import Shared
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import load_plans
from edgen.planning.plan import Plan
from edgen.protocols.gated import PassedConversation
from edgen.simulator.prompts.prompt_scene import SceneFinder
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
FINDER = SceneFinder()
# The least mean share of mentioned values and key facts; measured with 20 conversations, less a margin.
LEAST_MENTIONED = {
    "course_advising": 0.8,
    "experiment": 0.95,
    "homework_help": 0.75,
    "incident_response": 0.7,
    "language_learning": 0.75,
    "lesson_plan": 0.8,
    "math_misconceptions": 0.85,
    "quickstart": 0.95,
    "rated_pairs": 0.9,
    "selfplay": 0.95,
    "tech_support": 0.75,
    "tutoring": 0.8,
}
USUAL_MENTIONED = 0.7
# A student gives the answer that it was assigned, and a learner the corrected sentence.
MOST_ECHOES = {"tutoring": 0.12, "language_learning": 0.1}
USUAL_ECHOES = 0.04


# The most sentences that a speaker repeats, as a share of all. Exercises and plans repeat explanations on
# purpose.
MOST_REPEATED = {"tutoring": 0.11, "incident_response": 0.12, "lesson_plan": 0.1}
USUAL_REPEATED = 0.05
_SENTENCE = re.compile(r"(?<=[.?!…”]) ")
_LONG = 25  # characters; any speaker repeats shorter sentences


@cache
def conversations(job: str, *, served: bool = False) -> tuple[Plan, dict[int, Conversation]]:
    plan = plan_of(job)
    found = {index: made(plan, index, served=served) for index in range(EACH)}
    return plan, {index: one for index, one in found.items() if one is not None}


def plan_of(job: str) -> Plan:
    path = ROOT / "jobs" / f"{job}.yaml"
    return next(iter(load_plans(path, [], AllowedFiles.of(path))[1].values()))


def made(plan: Plan, index: int, *, served: bool = False) -> Conversation | None:
    work = plan.make_task(index, 0).protocol
    request: Request = next(work)
    while True:
        known: dict[str, Any] = (
            {"find_scene": FINDER.find}
            if served
            else {"protocol": request.protocol, "speakers": request.speakers, "scene": request.scene}
        )
        reply = respond(
            request.messages,
            seed=request.seed,
            schema=request.schema,
            json_mode=request.schema is not None,
            **known,
        )
        try:
            request = work.send(reply)
        except StopIteration as end:
            result = end.value.conversation if isinstance(end.value, PassedConversation) else end.value
            return result if isinstance(result, Conversation) else None


@cache
def figures(job: str, *, served: bool = False) -> dict[str, Any]:
    plan, said = conversations(job, served=served)
    data = DataSet(
        name=job,
        samples=lambda: iter(()),
        family=plan.family,
        roles=plan.space.roles,
        find_space=lambda: plan.space,
    )
    shared = Shared(data)
    shared.start(["mentioned", "recited", "echoes"])
    for index, one in said.items():
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
    assert found.share.value >= LEAST_MENTIONED.get(job, USUAL_MENTIONED), found


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
    for one in conversations(job)[1].values():
        text = "\n".join(turn.text for turn in one.turns)
        assert not any(
            words in text for words in ("today's topic", "my usual method", "another way of learning")
        )
        assert "{" not in text or "}" not in text


def test_every_mathematics_lesson_has_numbers_and_every_talk_on_courses_names_one() -> None:
    for one in conversations("math_misconceptions")[1].values():
        assert any(char.isdigit() for turn in one.turns for char in turn.text)
    plan, talks = conversations("course_advising")
    for index, one in talks.items():
        courses = plan.scenario(index).values["suggested"].split()
        text = "\n".join(turn.text for turn in one.turns)
        assert any(course in text for course in courses if course[-1].isdigit())


@pytest.mark.parametrize(("job", "wrong"), [("homework_help", "mistake"), ("tech_support", "rumour")])
def test_a_wrong_answer_is_rarely_accepted(job: str, wrong: str) -> None:
    path = ROOT / "jobs" / f"{job}.yaml"
    plan = next(iter(load_plans(path, [], AllowedFiles.of(path))[1].values()))
    accepted = deceived = 0
    for index in range(120):
        one = made(plan, index)
        for number in one.outcome["answers"] if one is not None and one.outcome else ():
            accepted += 1
            deceived += plan.scenario(index).values[wrong] in one.turns[number - 1].text  # type: ignore[union-attr]
    assert accepted > 20
    assert deceived <= 0.1 * accepted


@pytest.mark.parametrize(("job", "right"), [("homework_help", "solution"), ("tech_support", "cause")])
def test_an_accepted_answer_says_what_is_right(job: str, right: str) -> None:
    plan = plan_of(job)
    accepted = helped = 0
    for index in range(120):
        one = made(plan, index)
        for number in one.outcome["answers"] if one is not None and one.outcome else ():
            accepted += 1
            helped += plan.scenario(index).values[right] in one.turns[number - 1].text  # type: ignore[union-attr]
    assert accepted > 20
    assert helped >= 0.85 * accepted


@pytest.mark.parametrize("job", JOBS)
def test_a_speaker_rarely_says_a_sentence_again(job: str) -> None:
    again = every = 0
    for one in conversations(job)[1].values():
        seen: set[tuple[str, str]] = set()
        for turn in one.turns:
            for sentence in _SENTENCE.split(turn.text):
                if len(sentence) < _LONG:
                    continue
                every += 1
                again += (turn.role, sentence) in seen
                seen.add((turn.role, sentence))
    assert again <= MOST_REPEATED.get(job, USUAL_REPEATED) * every, (again, every)


@pytest.mark.parametrize("job", JOBS)
def test_a_served_simulator_takes_the_scenario_from_the_prompt(job: str) -> None:
    found = figures(job, served=True)
    assert found["mentioned"].share.value >= LEAST_MENTIONED.get(job, USUAL_MENTIONED) - 0.1, found[
        "mentioned"
    ]
    assert found["recited"].turns == 0
    text = "\n".join(turn.text for one in conversations(job, served=True)[1].values() for turn in one.turns)
    assert not any(words in text for words in ("today's topic", "my usual method"))


def test_a_teacher_of_english_does_not_call_a_right_sentence_wrong() -> None:
    plan, talks = conversations("language_learning")
    for index, one in talks.items():
        error = plan.scenario(index).fields["error"]
        for before, after in zip(one.turns, one.turns[1:], strict=False):
            if after.role == "Teacher" and any(f"“{right}”" in before.text for right in error["corrected"]):
                assert "not correct" not in after.text
                assert not after.text.endswith("”?")


def test_a_learner_answers_the_task_that_the_tutor_sets() -> None:
    plan, talks = conversations("math_misconceptions")
    answered = 0
    for index, one in talks.items():
        task = plan.scenario(index).fields["topic"]["task"]
        digits = set(re.findall(r"\d+", task))
        answered += not digits or bool(digits & set(re.findall(r"\d+", one.turns[1].text)))
    assert answered >= 0.6 * len(talks)


def test_a_student_asks_about_an_order_only_after_a_guess() -> None:
    for one in conversations("tutoring")[1].values():
        guessed = False
        for turn in one.turns:
            guessed = guessed and "Fill in the blank" not in turn.text
            if turn.role == "Student":
                assert guessed or "Is the order right?" not in turn.text
                guessed = guessed or turn.text.startswith(
                    ("I think", "Is it", "My guess", "Maybe", "Then it")
                )


def test_the_same_scenario_is_said_the_same_way() -> None:
    plan, said = conversations("math_misconceptions")
    assert made(plan, 3) == said[3]
