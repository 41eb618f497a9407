"""Sessions of exercises: what each side knows, independent tutors, order of exercises, and refused jobs."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.config import parse_job
from edgen.core import resources
from edgen.core.errors import EdgenError, JobError
from edgen.core.values import Conversation, Rejection, Reply, Request
from edgen.domains.tutoring.config import read_cima_actions
from edgen.domains.tutoring.exercises.pool import iterate_values
from edgen.domains.tutoring.session import MISSING
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.planning.plan import Plan
from edgen.planning.unused_variables import find_unused
from edgen.plugin.answers import NO_ACTIONS
from edgen.protocols.base import find_role_words
from edgen.reading.answers.acted_turn import ActedTurn, choose_actions, read_acted_turn
from edgen.simulator.text import respond

JOB: dict[str, Any] = {
    "name": "t",
    "seed": 7,
    "conversations": 4,
    "space": "italian_prepositions",
    "protocol": "tutoring",
    "backends": {"default": {"type": "simulator"}},
}


def plan_for(**changes: Any) -> Plan:
    job = parse_job({**JOB, **changes}, "job.yaml")
    return make_plan(job, AllowedFiles.of(Path("job.yaml")))


def simulated(request: Request) -> str:
    return respond(request.messages, seed=request.seed, protocol=request.protocol).text


def play(
    plan: Plan, answer: Callable[[Request], str | Reply] = simulated, index: int = 0
) -> tuple[Conversation | Rejection, list[Request]]:
    """Play a session to its end; return the result and all of its requests."""
    session = plan.make_task(index, 0).protocol
    asked: list[Request] = []
    reply: Any = None
    try:
        while True:
            asked.append(session.send(reply))
            said = answer(asked[-1])
            reply = Reply(said) if isinstance(said, str) else said
    except StopIteration as end:
        return end.value, asked


def said(text: str, *actions: str) -> str:
    return json.dumps({"text": text, "actions": actions})


def session_of(result: Conversation | Rejection) -> Conversation:
    assert isinstance(result, Conversation)
    assert result.outcome is not None
    return result


def test_a_cut_turn_is_kept_if_its_actions_are_whole() -> None:
    cut = {
        ("student", 0): '{"actions": ["Question"], "text": "What is it? I do n',
        ("tutor", 0): '{"text": "Think of the first word. It is", "actions": ["Hint", "Corr',
    }

    def answer(request: Request) -> str | Reply:
        text = cut.pop((request.role, request.address.attempt), None)
        return simulated(request) if text is None else Reply(text, "length")

    made, asked = play(plan_for(tutoring={"student_turns": 2}), answer)
    result = session_of(made)
    assert (result.turns[1].text, result.turns[1].labels) == ("What is it?", ("Question",))
    assert result.flags[0] == "cut_off"
    assert [request.retry_reason for request in asked if request.retry_reason] == ["truncated"], (
        "half an action is none"
    )


# ---- what each side knows


@pytest.mark.parametrize("space", ["italian_shapes", "italian_prepositions", "fractions"])
def test_the_student_is_never_told_what_it_does_not_see(space: str) -> None:
    """The student's brief holds neither the answer nor a point nor a field of a concept; texts of tutors are
    not part of it."""
    plan = plan_for(space=space, tutoring={"student_turns": 30})
    result, asked = play(plan)
    outcome = session_of(result).outcome
    assert outcome is not None
    assert len(outcome["exercises"]) > 2
    exercises = {one["question"]: one for one in outcome["exercises"]}
    for request in asked:
        brief = request.messages[0].content
        exercise = next(one for question, one in exercises.items() if question in brief)
        told = [*exercise["answers"]] if space != "fractions" else [f"answer: {exercise['answers'][0]}"]
        if request.role == "student":
            assert "What you may tell" not in brief
            assert "The right answer" not in brief
            assert not any(text in brief for text in told if space != "fractions")
        else:
            assert f"The right answer: {exercise['answers'][0]}" in brief
            assert "What you may tell:\n- " in brief


def test_no_dimension_of_exercises_is_called_unused() -> None:
    for space in ("italian_shapes", "italian_prepositions", "fractions"):
        assert find_unused(plan_for(space=space)) == []


def test_the_mistake_is_the_students_alone() -> None:
    _, asked = play(plan_for(space="fractions"))
    briefs = {
        role: " ".join(one.messages[0].content for one in asked if one.role == role)
        for role in ("student", "tutor")
    }
    assert "Your first answer: " in briefs["student"]
    assert "Your first answer" not in briefs["tutor"]


def test_tutors_do_not_see_each_other() -> None:
    _, asked = play(plan_for())
    groups = [
        list(group) for role, group in itertools.groupby(asked, lambda one: one.role) if role == "tutor"
    ]
    assert {len(group) for group in groups} == {3}
    for group in groups:
        assert len({one.messages for one in group}) == 1
        assert len({one.seed for one in group}) == 3
        assert len({one.address.step for one in group}) == 3


def test_several_backends_respond_each_once() -> None:
    backends = {name: {"type": "simulator"} for name in ("default", "a", "b")}
    result, asked = play(plan_for(backends=backends, tutoring={"tutors": ["a", "b"], "student_turns": 3}))
    assert [one.role for one in asked] == ["student", "a", "b"] * 3
    turns = [turn for turn in session_of(result).turns if turn.alternatives]
    assert len(turns) == 3
    assert all({turn.data["by"], turn.alternatives[0].data["by"]} == {"a", "b"} for turn in turns)


def test_each_tutor_has_a_template_of_its_own(tmp_path: Path) -> None:
    """In a whole session, tutors get different prompts, and the third one gets the template of `tutor`.
    Neither the student's brief nor the texts it receives hold the answer."""
    shipped = resources.find("prompts", "tutoring_tutor").read_text("utf-8")
    for name in ("kind", "strict", "plain"):
        text = shipped.replace("You are a tutor.", f"You are a {name} tutor.")
        (tmp_path / f"{name}.j2").write_text(text, "utf-8")
    job = {
        **JOB,
        "backends": {name: {"type": "simulator"} for name in ("default", "a", "b", "c")},
        "tutoring": {"tutors": ["a", "b", "c"], "turns_per_exercise": 4, "student_turns": 12},
        "prompts": {"a": "./kind.j2", "b": "./strict.j2", "tutor": "./plain.j2"},
    }
    plan = make_plan(parse_job(job, "job.yaml"), AllowedFiles.of(tmp_path / "job.yaml"))
    assert list(plan.opening(plan.scenario(0))) == ["student", "a", "b", "c"]
    result, asked = play(plan, always(said("Is it gatto?", "Guess"), said("Look again.", "Hint")))
    conversation = session_of(result)
    assert [one.role for one in asked] == ["student", "a", "b", "c"] * 12
    for place, name in enumerate(("kind", "strict", "plain")):
        told = [one.messages[0].content for one in asked[1 + place :: 4]]
        assert all(f"You are a {name} tutor." in brief and "The right answer: " in brief for brief in told)
    answers = {answer for one in (conversation.outcome or {})["exercises"] for answer in one["answers"]}
    heard = [message.content for one in asked[::4] for message in one.messages]
    assert len(answers) > 2
    assert not any(answer in text for answer in answers for text in heard)


def test_a_tutor_who_shares_the_students_backend_has_the_tutors_template() -> None:
    backends = {name: {"type": "simulator"} for name in ("default", "student")}
    plan = plan_for(backends=backends, tutoring={"tutors": ["student", "default"], "student_turns": 2})
    assert list(plan.prompts) == ["student", "tutor", "default"]
    _, asked = play(plan)
    assert ["The right answer" in one.messages[0].content for one in asked] == [False, True, True] * 2


def test_the_history_is_what_went_on() -> None:
    result, asked = play(plan_for(tutoring={"student_turns": 4}))
    conversation = session_of(result)
    last = [one for one in asked if one.role == "student"][-1]
    heard = " ".join(message.content for message in last.messages)
    for turn in conversation.turns[:7]:
        assert turn.text in heard
        for other in turn.alternatives:
            assert other.text in heard or other.text not in heard.split(turn.text)[0]


# ---- the course of a session


def always(student: str, tutor: str) -> Callable[[Request], str]:
    return lambda request: student if request.role == "student" else tutor


def test_an_exercise_is_given_up_after_its_turns() -> None:
    answer = always(said("I do not know.", "Other"), said("Think again.", "Other"))
    result, _ = play(plan_for(tutoring={"student_turns": 7, "turns_per_exercise": 3, "responses": 1}), answer)
    conversation = session_of(result)
    assert conversation.outcome is not None
    assert [(one["turns"], one["solved"]) for one in conversation.outcome["exercises"]] == [
        (3, False),
        (3, False),
        (1, False),
    ]
    assert sum("exercise" in turn.data for turn in conversation.turns) == 3


def test_a_right_guess_solves_and_a_right_question_does_not() -> None:
    plan = plan_for(tutoring={"student_turns": 2, "responses": 1})
    for actions, solved in ((["Question"], False), (["Guess"], True), (["Question", "Guess"], True)):
        conversation = session_of(play(plan, _Knowing(actions))[0])
        assert conversation.outcome is not None
        assert conversation.outcome["exercises"][0]["solved"] is solved
        assert any(turn.data.get("solved") for turn in conversation.turns) is solved


class _Knowing:
    """A student who gives the right answer once it has read it in the tutor's brief."""

    def __init__(self, actions: list[str]) -> None:
        self.actions = actions
        self.heard = ""

    def __call__(self, request: Request) -> str:
        if request.role == "student":
            return said(f"It is {self.heard}!", *self.actions) if self.heard else said("Hm.", "Question")
        self.heard = request.messages[0].content.split("The right answer: ")[1].split("\n")[0]
        return said("Go on.", "Other")


def test_tiers_follow_when_enough_is_solved() -> None:
    plan = plan_for(space="fractions", tutoring={"student_turns": 12, "solved_per_tier": 2, "responses": 1})

    def answer(request: Request) -> str:
        if request.role != "student":
            return said("Yes.", "Confirmation")
        question = request.messages[0].content.split("Exercise ")[1].split(": ", 1)[1].split("\n")[0]
        made = next(one for one in every if one.question == question)
        return said(made.answer, "Guess")

    pool = plan.rules.prepared.pool
    every = [
        pool.grammar.tiers[tier].make(values)
        for tier in pool.grammar.tiers
        for values in iterate_values(pool.grammar, tier)
    ]
    conversation = session_of(play(plan, answer)[0])
    assert conversation.outcome is not None
    assert [one["tier"] for one in conversation.outcome["exercises"]] == ["comparing"] * 2 + ["adding"] * 10


def test_a_flag_ends_the_session_and_stays_on_the_response() -> None:
    def answer(request: Request) -> str:
        if request.role == "student" and request.address.step > 3:
            return '{"nonsense": true}'
        return simulated(request)

    result, asked = play(plan_for(), answer)
    conversation = session_of(result)
    assert conversation.turns[-1].role == "Tutor"
    assert conversation.turns[-1].data["nonsense"] is True
    assert asked[-1].role == "student"
    assert len(conversation.turns) == 3


def test_a_wanted_action_is_asked_for_and_noted() -> None:
    plan = plan_for(tutoring={"wanted": {"Hint": 3, "Question": 1}, "student_turns": 20})
    result, asked = play(plan)
    wanted = Counter(
        turn.data["wanted"]
        for one in session_of(result).turns
        for turn in (one, *one.alternatives)
        if "wanted" in turn.data
    )
    assert set(wanted) == {"Hint", "Question"}
    assert wanted["Hint"] > wanted["Question"]
    assert all("Do this now: " in one.messages[0].content for one in asked if one.role == "tutor")


def test_a_response_that_cannot_be_had_is_left_out() -> None:
    def answer(request: Request) -> str:
        if request.role == "tutor" and request.address.step % 4 == 2:
            return "no actions here"
        return simulated(request)

    result, asked = play(plan_for(asks=2), answer)
    conversation = session_of(result)
    assert MISSING in conversation.flags
    assert {
        len(turn.alternatives) for turn in conversation.turns if turn.labels and turn.role == "Tutor"
    } == {1}
    assert sum(one.address.attempt == 1 for one in asked) == 20


def test_without_any_response_or_student_it_is_rejected() -> None:
    for role in ("student", "tutor"):
        result, _ = play(
            plan_for(asks=2),
            lambda request, role=role: "none" if request.role == role else simulated(request),
        )  # type: ignore[misc]
        assert isinstance(result, Rejection)
        assert result.reason == NO_ACTIONS


def test_what_the_simulator_says_is_what_it_names() -> None:
    labels: Counter[str] = Counter()
    for index in range(4):
        result, _ = play(plan_for(), index=index)
        conversation = session_of(result)
        answers = [one["answers"] for one in (conversation.outcome or {})["exercises"]]
        for turn in conversation.turns:
            for one in (turn, *turn.alternatives):
                labels.update((one.role, label) for label in one.labels)  # type: ignore[misc]
                if one.role == "Tutor" and any(
                    word in one.text for word in ("Exactly", "Well done", "Very good, it is")
                ):
                    assert one.labels == ("Confirmation",)
        assert answers
    for side, role in (("student", "Student"), ("tutor", "Tutor")):
        assert {label for who, label in labels if who == role} >= {*read_cima_actions()[side]} - {"Other"}


# ---- a run


def run_of(tmp_path: Path, name: str, **changes: Any) -> edgen.Run:
    job = {**JOB, "conversations": 6, "tutoring": {"student_turns": 8}, **changes}
    return edgen.generate(job, output=tmp_path / name, progress=False)


def shards(run: edgen.Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run.folder / "shards").glob("conversations*")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Generate a run that tests only read."""
    return run_of(tmp_path_factory.mktemp("tutoring"), "whole")


def test_the_same_job_has_the_same_bytes_however_it_is_made(whole: edgen.Run, tmp_path: Path) -> None:
    alone = run_of(tmp_path, "alone", limits={"in_flight": 1})
    part = run_of(tmp_path, "part", conversations=3)
    assert len(shards(part)) == len(shards(whole))
    again = edgen.generate(
        {**JOB, "conversations": 6, "tutoring": {"student_turns": 8}}, output=part.folder, progress=False
    )
    assert shards(whole) == shards(alone) == shards(again)


def test_a_session_is_read_back_with_its_actions_and_alternatives(whole: edgen.Run) -> None:
    conversations = list(whole.conversations())
    assert len(conversations) == 6
    turns = [turn for one in conversations for turn in one.turns if turn.alternatives]
    assert {len(turn.alternatives) for turn in turns} == {2}
    assert all(turn.labels for turn in turns)
    record = json.loads(next(iter(shards(whole).values())))[0]
    assert record["outcome"]["exercises"][0]["question"] == record["conversation"][0]["text"]
    assert whole.status.accepted == 6
    assert "lengths" in whole.stats().as_json()


# ---- refused jobs


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"space": "broad"}, "broad has no exercises"),
        ({"prompt": "education_dialogue"}, "$.prompt: tutoring has a prompt for each role"),
        ({"tutoring": {"tutors": ["a"]}}, "$.tutoring.tutors: there is no backend 'a'"),
        ({"tutoring": {"responses": 0}}, "$.tutoring.responses"),
        ({"tutoring": {"wanted": {"Hnt": 1}}}, "$.tutoring.wanted.Hnt: the tutor has no such action"),
        ({"tutoring": {"actions": {"student": {}, "tutor": {"Say": "says"}}}}, "$.tutoring.actions.student: this is empty"),
        ({"tutoring": {"actions": {"tutor": {"Say": "says"}}}}, "$.tutoring.actions: expected actions of `student` and of"),
        ({"tutoring": {"turns": 3}}, "$.tutoring.turns: unknown key"),
        ({"prompts": {"student": "selfplay_student"}}, "it is for another use"),
        ({"prompts": {"a": "tutoring_tutor"}}, "$.prompts.a: unknown prompt (known: tutor, student, closing, oracle, annotator)"),
        ({"tutoring": {"tutors": ["default"]}, "prompts": {"default": "tutoring_student", "defalt": "x"}}, "$.prompts.defalt: unknown prompt (known: tutor, student, default"),
        ({"prompts": {"student": "tutoring_tutor"}}, "there is no variable 'answer'"),
    ],
)  # fmt: skip
def test_a_wrong_job_is_refused_with_a_sentence(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(EdgenError) as caught:
        plan_for(**changes)
    assert told in str(caught.value)
    assert isinstance(caught.value, JobError) or "template" in str(caught.value)


# ---- reading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"text": "Is it il cane?", "actions": ["Guess"]}', ("Is it il cane?", ("Guess",))),
        (
            '```json\n{"text": "Is it?", "actions": ["question", "GUESS"]}\n```',
            ("Is it?", ("Guess", "Question")),
        ),
        ('Sure! {"text": "Is it?", "actions": "Guess, Question"}', ("Is it?", ("Guess", "Question"))),
        ("Is it il cane?\nActions: Guess, Question", ("Is it il cane?", ("Guess", "Question"))),
        ("**Action:** Guess\nIs it il cane?", ("Is it il cane?", ("Guess",))),
        ("[Guess] Is it il cane?", ("Is it il cane?", ("Guess",))),
        ("(Guess and Question) Student: Is it il cane?", ("Is it il cane?", ("Guess", "Question"))),
        ('<think>hm</think>{"text": "Is it?", "actions": ["Guess"]}', ("Is it?", ("Guess",))),
        ("Is it il cane?", "no_actions"),
        ('{"text": "Is it?", "actions": []}', "no_actions"),
        ('{"text": "Is it?", "actions": ["Dance"]}', "no_actions"),
        ('{"text": "Is it?", "actions": [["Guess"]]}', "no_actions"),
        ('{"text": "", "actions": ["Guess"]}', "empty"),
        ("", "empty"),
    ],
)
def test_actions_are_read_from_any_usual_form(text: str, expected: Any) -> None:
    found = read_acted_turn(
        text, "Student", read_cima_actions()["student"], roles=find_role_words(("Tutor", "Student"))
    )
    if isinstance(expected, str):
        assert isinstance(found, Rejection), found
        assert found.reason == expected
    else:
        assert isinstance(found, ActedTurn), found
        assert (found.text, found.actions) == expected


def test_actions_come_back_as_they_are_written() -> None:
    assert choose_actions(["hint", "QUESTION"], read_cima_actions()["tutor"]) == ("Question", "Hint")
    unknown = choose_actions(["Hnt"], read_cima_actions()["tutor"])
    assert isinstance(unknown, Rejection)
    assert "hnt" in unknown.detail
