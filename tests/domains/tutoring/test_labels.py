"""Sessions with a labeller and a judge: their prompts, the use of their answers, and actions wanted by a
policy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.config import parse_job
from edgen.config.label_set import LabelSetError, find_label_set
from edgen.core.errors import EdgenError, JobError, ShortError
from edgen.core.values import Conversation, Request, Turn
from edgen.domains.tutoring.config import read_cima_actions
from edgen.domains.tutoring.judging import read_best_worst
from edgen.domains.tutoring.labeller import UNLABELLED
from edgen.domains.tutoring.session import AT_ONCE, MISSING
from edgen.domains.tutoring.simulation import rate_response
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.kept_job import make_job_for_run
from edgen.planning.load import make_plan
from edgen.planning.plan import Plan
from edgen.protocols.base import find_role_words
from edgen.reading.answers.acted_turn import ActedTurn, read_acted_turn
from edgen.simulator.text import respond
from tests.domains.tutoring.test_tutoring import JOB, plan_for, play, said, session_of, simulated


def responded(session: Conversation) -> list[list[Turn]]:
    """Return the responses to each turn; the first of them continued the session."""
    return [
        [turn, *turn.alternatives]
        for turn in session.turns
        if turn.role == "Tutor" and "exercise" not in turn.data
    ]


def some(
    settings: dict[str, Any], answer: Callable[[Request], str] = simulated, **changes: Any
) -> tuple[Conversation, list[Request]]:
    """Play a session with these settings; return it and its requests."""
    result, asked = play(plan_for(tutoring={"student_turns": 6, **settings}, **changes), answer)
    return session_of(result), asked


# ---- the labeller


def test_a_turn_and_the_responses_to_it_are_labelled_in_one_request() -> None:
    session, asked = some({"labelled_by": "both"})
    assert [one.role for one in asked] == ["student", "tutor", "tutor", "tutor", "labeller"] * 6
    assert [one.address.step for one in asked] == [*range(30)]
    text = asked[4].messages[0].content
    student = session.turns[1]
    assert f"(1) Student: {student.text}\n(2) Tutor: " in text
    assert "Numbers 2, 3, 4 are alternatives" in text
    for turn in session.turns:
        for one in (turn, *turn.alternatives):
            if "exercise" not in one.data:
                assert one.data["labeller"] == [
                    *one.labels
                ]  # the simulator states its actions, and labels the same actions


def test_in_the_place_of_the_speaker_nobody_else_is_asked_for_actions() -> None:
    session, asked = some({"labelled_by": "labeller"})
    briefs = {one.messages[0].content for one in asked if one.role != "labeller"}
    assert all('"text"' in brief and '"actions"' not in brief for brief in briefs)
    turns = [
        one for turn in session.turns for one in (turn, *turn.alternatives) if "exercise" not in one.data
    ]
    assert {label for turn in turns for label in turn.labels} > {"Hint", "Guess"}
    assert all(turn.labels and "labeller" not in turn.data for turn in turns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"text": "Is it?"}', "Is it?"),
        ('{"text": "Is it?", "actions": ["Dance"]}', "Is it?"),
        ("Is it?", "Is it?"),
        ("[1/2] is more.", "[1/2] is more."),
        ("Actions: none come to my mind.", "Actions: none come to my mind."),
    ],
)
def test_without_actions_all_of_a_reply_is_said(text: str, expected: str) -> None:
    found = read_acted_turn(text, "Student", (), roles=find_role_words(("Tutor", "Student")))
    assert isinstance(found, ActedTurn)
    assert (found.text, found.actions) == (expected, ())


def test_a_labeller_who_cannot_be_read_is_told_and_nothing_is_lost() -> None:
    for by in ("both", "labeller"):
        session, asked = some(
            {"labelled_by": by}, lambda one: "?" if one.role == "labeller" else simulated(one), asks=2
        )
        assert session.flags == (UNLABELLED,)
        assert len(responded(session)) == 6
        assert Counter(one.role for one in asked) == {"student": 6, "tutor": 18, "labeller": 12}
        assert bool(session.turns[1].labels) is (by == "both")


def test_planted_mistakes_of_the_labeller_stand_beside_what_is_said() -> None:
    backends = {
        "default": {"type": "simulator"},
        "labeller": {"type": "simulator", "confusion": {"Hint": {"Other": 0.3}}},
    }
    job = {**JOB, "backends": backends, "tutoring": {"labelled_by": "both"}}
    assert make_plan(parse_job(job, "job.yaml"), AllowedFiles.of(Path("job.yaml"))).roles == (
        "tutor",
        "student",
        "labeller",
    )
    job["backends"] = {"default": {"type": "simulator", "confusion": {"Hint": {"Other": 0.7, "*": 0.7}}}}
    with pytest.raises(JobError, match=r"confusion.Hint: these are shares of one whole, and add up to 1.4"):
        parse_job(job, "job.yaml")


# ---- the judge


def test_the_judge_sees_responses_under_drawn_letters_and_its_best_goes_on() -> None:
    session, asked = some({"choose": "judge"})
    judged = [one for one in asked if one.role == "judge"]
    assert len(judged) == len(responded(session)) == 6
    orders = set()
    for request, (best, *others) in zip(judged, responded(session), strict=True):
        text = request.messages[0].content
        letters = {line[3:]: line[0] for line in text.split("\n") if line[1:3] == ": " and line[0] in "ABC"}
        assert {best.text, *(one.text for one in others)} == {*letters}
        orders.add("".join(letters[one.text] for one in (best, *others)))
        assert "tutor:" not in text  # the text does not name the speakers
        marks = [one.data.get("judged") for one in (best, *others)]
        assert marks[0] == "best"
        assert Counter(marks)["worst"] == 1
        answer = text.split("The right answer: ")[1].split("\n")[0]
        worths = [rate_response(one.text, answer) for one in (best, *others)]
        assert worths[0] == max(worths)
        assert min(worths) == worths[marks.index("worst")]
    assert len(orders) > 2


def test_a_judge_who_cannot_be_read_leaves_it_to_the_draw() -> None:
    session, asked = some(
        {"choose": "judge"},
        lambda one: '{"best": "A", "worst": "A"}' if one.role == "judge" else simulated(one),
        asks=2,
    )
    assert session.flags == ("unjudged",)
    assert sum(one.role == "judge" for one in asked) == 12
    assert not any("judged" in one.data for said in responded(session) for one in said)


def test_nothing_tells_the_judge_which_tutor_spoke() -> None:
    backends = {name: {"type": "simulator"} for name in ("default", "alpha", "beta")}
    session, asked = some({"choose": "judge", "tutors": ["alpha", "beta"]}, backends=backends)
    assert Counter(one.role for one in asked) == dict.fromkeys(("student", "alpha", "beta", "judge"), 6)
    assert not any(
        name in one.messages[0].content for one in asked for name in ("alpha", "beta") if one.role == "judge"
    )
    assert {one.data["by"] for responses in responded(session) for one in responses} == {"alpha", "beta"}


def test_a_single_response_needs_no_judge() -> None:
    _, asked = some({"choose": "judge", "responses": 1})
    assert {one.role for one in asked} == {"student", "tutor"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"best": "B", "worst": "A"}', (1, 0)),
        ('I think so: ```json\n{"best": "c", "worst": "a"}\n```', (2, 0)),
        ("Best: B\nWorst: **C**", (1, 2)),
        ("The best is response A and the worst is C.", (0, 2)),
        ('{"best": "B", "worst": "B"}', None),
        ('{"best": "D", "worst": "A"}', None),
        ('{"best": ["B"], "worst": 1}', None),
        ("B", None),
        ("", None),
    ],
)
def test_best_and_worst_are_read(text: str, expected: Any) -> None:
    found = read_best_worst(text, "ABC")
    assert found == expected if expected else not isinstance(found, tuple)


# ---- label sets


def test_label_sets_are_named_and_a_run_keeps_their_labels(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nother: Else\nlabels: [{name: Try, definition: tries}, {name: Ask, definition: asks}]\n"
    )
    job = parse_job(
        {
            **JOB,
            "tutoring": {
                "actions": {"student": "./mine.yaml", "tutor": "teacher_moves"},
                "wanted": {"Probing": 1},
            },
        },
        "job.yaml",
    )
    allowed = AllowedFiles.of(tmp_path / "job.yaml")
    plan = make_plan(job, allowed)
    moves = find_label_set("teacher_moves").definitions
    assert plan.settings.named_actions == {
        "student": {"Try": "tries", "Ask": "asks", "Else": "anything else"},
        "tutor": moves,
    }
    session = session_of(play(plan)[0])
    labels = {label for turn in session.turns for one in (turn, *turn.alternatives) for label in one.labels}
    assert labels <= {"Try", "Ask", "Else", *moves}
    assert len(labels) > 3
    armed = parse_job(
        {
            **JOB,
            "arms": {
                "a": {"tutoring": {"actions": {"student": "./mine.yaml", "tutor": "cima_tutor"}}},
                "b": {},
            },
        },
        "job.yaml",
    )
    kept, _ = make_job_for_run(armed, allowed)
    assert kept["arms"]["a"]["tutoring"]["actions"] == {
        "student": plan.settings.named_actions["student"],
        "tutor": read_cima_actions()["tutor"],
    }
    assert make_plan(parse_job({**JOB, "tutoring": {}}, "job.yaml"), allowed).job == plan_for(tutoring={}).job


# ---- actions wanted by the student's actions


def test_wanted_actions_by_the_students_last_one() -> None:
    wanted = {"Guess": {"Correction": 1}, "Question": {"Hint": 1}}
    replies = iter(
        [
            said("Is it?", "Guess"),
            said("How?", "Guess", "Question"),
            said("Why?", "Question"),
            said("I see.", "Affirmation"),
        ]
    )
    _, asked = some(
        {"wanted": wanted, "student_turns": 4},
        lambda one: next(replies) if one.role == "student" else said("Hm.", "Hint"),
    )
    tutors = [one.messages[0].content for one in asked if one.role == "tutor"]
    found = [
        brief.split("Do this now: ")[1].split("\n")[0] if "Do this now: " in brief else None
        for brief in tutors
    ]
    assert found == ["Correction"] * 6 + ["Hint"] * 3 + [None] * 3


# ---- bad replies


def test_replies_without_actions_or_with_unknown_ones_are_asked_again_and_told() -> None:
    bad = {"": 0, "Dance": 0}

    def answer(request: Request) -> str:
        if request.address.attempt == 0 and request.address.step == 0:
            bad[""] += 1
            return '{"text": "Is it?"}'
        if request.address.attempt == 0 and request.address.step == 1:
            bad["Dance"] += 1
            return said("Hm.", "Dance")
        return simulated(request)

    session, _ = some({}, answer)
    assert bad == {"": 1, "Dance": 1}
    assert session.flags == ()
    result, _ = play(plan_for(), lambda _: said("Is it?", "Dance"))
    assert str(result.reason) == "no_actions"  # type: ignore[union-attr]
    assert "it names the action" in result.detail  # type: ignore[union-attr]


def test_the_answer_in_the_students_first_turn_is_flagged() -> None:
    answers: list[str] = []

    def answer(request: Request) -> str:
        if request.role == "student" and not answers:
            plan = plan_for()
            first = session_of(play(plan)[0]).outcome["exercises"][0]["answers"][0]  # type: ignore[index]
            answers.append(first)
            return said(f"Is it {first}?", "Guess")
        return simulated(request)

    session, _ = some({}, answer)
    assert AT_ONCE in session.flags
    assert session.outcome is not None
    assert session.outcome["exercises"][0]["turns"] == 1
    assert session.turns[1].data["solved"] is True


def test_k_that_differs_by_turn_keeps_what_there_is() -> None:
    def answer(request: Request) -> str:
        return "" if request.role == "tutor" and request.address.step == 8 else simulated(request)

    session, _ = some({"labelled_by": "both", "choose": "judge"}, answer)
    assert session.flags == (MISSING,)
    assert [len(one) for one in responded(session)] == [3, 2, 3, 3, 3, 3]
    assert all(one.data["labeller"] for responses in responded(session) for one in responses)


# ---- refused jobs


@pytest.mark.parametrize(
    ("tutoring", "told"),
    [
        ({"actions": {"student": "cima_studnt", "tutor": "cima_tutor"}}, "no such label set (did you mean 'cima_student'?)"),
        ({"actions": {"student": "cima_student", "tutor": "cima_tutor"}, "wanted": {"Hnt": 1}}, "$.tutoring.wanted.Hnt: the tutor has no such action"),
        ({"actions": {"tutor": "cima_tutor"}}, "$.tutoring.actions: expected actions of `student` and of `tutor`"),
        ({"actions": {"student": {"A, b": "a", "C": "c", "c": "c"}, "tutor": "cima_tutor"}}, "$.tutoring.actions.student.A, b: a label's name cannot have ','"),
        ({"actions": {"student": {"C": "c", "c": "c"}, "tutor": {"A": "a"}}}, "'c' is already at $.tutoring.actions.student.C"),
        ({"wanted": {"Gess": {"Hint": 1}}}, "$.tutoring.wanted.Gess: the student has no such action"),
        ({"wanted": {"Guess": {"Hnt": 1}}}, "$.tutoring.wanted.Guess.Hnt: the tutor has no such action"),
        ({"wanted": {"Guess": {}}}, "$.tutoring.wanted.Guess: this is empty"),
        ({"wanted": {"Guess": {"Hint": 1}, "Question": 2}}, "$.tutoring.wanted.Question: expected weights of the tutor's"),
        ({"wanted": {"Guess": {"Hint": -1}}}, "$.tutoring.wanted.Guess"),
        ({"labelled_by": "labeller", "wanted": {"Guess": {"Hint": 1}}}, "$.tutoring.wanted: it depends on the student's action"),
        ({"choose": "judge", "tutors": ["default", "judge"]}, "$.tutoring.tutors: 'judge' is the judge in this job"),
        ({"labelled_by": "nobody"}, "$.tutoring.labelled_by: unknown value 'nobody'"),
    ],
)  # fmt: skip
def test_a_wrong_job_is_refused_with_a_sentence(tutoring: dict[str, Any], told: str) -> None:
    backends = {name: {"type": "simulator"} for name in ("default", "judge")}
    with pytest.raises(EdgenError) as caught:
        plan_for(tutoring=tutoring, backends=backends)
    assert told in str(caught.value)
    assert isinstance(caught.value, JobError | LabelSetError)
    assert caught.value.exit_code == 2


def test_a_label_set_outside_of_the_project_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("name: x")
    (tmp_path / "job").mkdir()
    job = parse_job(
        {**JOB, "tutoring": {"actions": {"student": "../secret.txt", "tutor": "cima_tutor"}}}, "job.yaml"
    )
    with pytest.raises(
        LabelSetError, match=r"outside of the job's project .* --set tutoring.actions.student="
    ):
        make_plan(job, AllowedFiles(tmp_path / "job", tmp_path / "job"))


def prompts(plan: Plan) -> dict[str, str]:
    return {use: prompt.name for use, prompt in plan.prompts.items()}


def test_labeller_and_judge_have_templates_of_their_own() -> None:
    plan = plan_for(tutoring={"labelled_by": "both", "choose": "judge"})
    assert prompts(plan) == {
        "student": "tutoring_student",
        "tutor": "tutoring_tutor",
        "labeller": "label_turns",
        "judge": "tutoring_judge",
    }
    assert {*plan.opening(plan.scenario(0))} == {*plan.prompts}
    assert plan.protocol.role_of(plan.job, 4) == "labeller"
    assert len(plan.protocol.expected(plan.job, 1)) == 20 * 6
    with pytest.raises(EdgenError, match="it is for another use"):
        plan_for(tutoring={"choose": "judge"}, prompts={"judge": "tutoring_tutor"})
    assert json.dumps([*plan.protocol.caveats(plan.settings)]).count("judge") == 3


def test_a_served_simulator_knows_each_prompt_without_being_told_who_asks() -> None:
    for settings in ({"labelled_by": "both", "choose": "judge"}, {"labelled_by": "labeller"}):
        _, asked = some(settings, space="fractions")
        for request in asked:
            assert respond(request.messages, seed=request.seed).text == simulated(request), request.role


def test_with_bad_replies_nothing_is_lost(tmp_path: Path) -> None:
    """Every third reply is invalid: each session still has its outcome, and missing labels are reported."""
    settings = {"student_turns": 4, "labelled_by": "both", "choose": "judge"}
    backends = {"default": {"type": "simulator", "faults": "garbage=0.3"}}
    job = {**JOB, "conversations": 20, "asks": 2, "tutoring": settings, "backends": backends}
    with pytest.raises(ShortError, match=r"of 20 conversations were accepted \(no_actions "):
        edgen.generate(job, output=tmp_path / "run", progress=False)
    run = edgen.open(tmp_path / "run")
    status = run.status
    assert status.accepted + sum(status.rejected.values()) == 20
    assert {*status.rejected} <= {"no_actions", "empty", "no_turns"}
    assert 0 < status.accepted < 20
    told = [json.loads(line) for line in (run.folder / "rejected.jsonl").read_text().splitlines()]
    assert len(told) == sum(status.rejected.values())
    assert all(one["detail"] for one in told)
    flags: Counter[str] = Counter()
    for path in (run.folder / "shards").glob("conversations*.json"):
        for record in json.loads(path.read_bytes()):
            flags.update(record["provenance"].get("flags", ()))
            for turn in record["conversation"]:
                assert turn.get("data") or turn["labels"]
    assert {MISSING, UNLABELLED, "unjudged"} <= {*flags}


def test_the_shipped_label_set_has_the_actions_of_the_published_set() -> None:
    assert find_label_set("cima_tutor").names == ("Question", "Hint", "Correction", "Confirmation", "Other")


def test_a_gate_on_labels_of_a_role_that_the_space_has_not_is_refused(tmp_path: Path) -> None:
    job = {
        "name": "t", "conversations": 2, "space": "education_dialogue", "prompt": "education_dialogue",
        "gates": {"good": "'x' in labels.cima_tutor"}, "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    said = "for turns of Tutor, and the job's space has the roles Teacher, Student"
    with pytest.raises(JobError, match=said):
        edgen.generate(job, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
