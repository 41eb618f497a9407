"""Every feature of CIMA (Stasaski, Kao and Hearst, BEA 2020), with a short check of each."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.config import parse_job
from edgen.core.pictures import pictures_in
from edgen.core.values import Request
from edgen.domains.tutoring import cima_files as cima
from edgen.domains.tutoring.exercises.grammar import Grammar
from edgen.domains.tutoring.exercises.pool import check_exercises
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import measure
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.space import dump_space, load_space
from tests import pictures
from tests.domains.tutoring.test_exercises import every, session, shipped
from tests.domains.tutoring.test_tutoring import JOB, plan_for, play, said, session_of, simulated

STUDENT = {"Guess", "Question", "Affirmation", "Other"}
TUTOR = {"Question", "Hint", "Correction", "Confirmation", "Other"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Generate sessions of phrases with a labeller next to the speakers, and tutors with wanted actions."""
    tutoring = {"student_turns": 10, "labelled_by": "both", "wanted": {"Hint": 2, "Correction": 1}}
    return made(tmp_path_factory.mktemp("cima") / "run", "italian_prepositions", 6, tutoring)


def made(folder: Path, space: str, conversations: int, tutoring: dict[str, Any]) -> edgen.Run:
    job = {
        "name": "t",
        "seed": 7,
        "conversations": conversations,
        "space": space,
        "protocol": "tutoring",
        "tutoring": tutoring,
        "backends": {"default": {"type": "simulator"}},
    }
    return edgen.generate(job, output=folder, progress=False)


def test_01_exercises_are_made_of_concepts_by_a_grammar_in_tiers_that_share_concepts() -> None:
    assert check_exercises(Grammar(shipped("italian_prepositions"))) == {"phrases": 360}
    assert check_exercises(Grammar(shipped("italian_shapes"))) == {"shapes": 30}
    tiers = Grammar(shipped("fractions")).exercises.tiers
    assert {*tiers["comparing"].concepts} & {*tiers["adding"].concepts}
    one = next(one for one in every("italian_prepositions", "phrases") if "l'albero" in one.answer)
    assert any("Before a vowel" in point for point in one.points)


def test_02_an_exercise_has_answer_points_and_a_picture_that_is_a_file(tmp_path: Path) -> None:
    text = dump_space(shipped("italian_shapes")).replace(
        'picture: "a {{ colour }} {{ shape }}"', 'picture: "img/{{ shape }}_{{ colour }}.png"'
    )
    assert "img/" in text
    (tmp_path / "img").mkdir()
    for place, one in enumerate(every("italian_shapes", "shapes")):
        name = f"{one.concepts['shape']}_{one.concepts['colour']}.png"
        (tmp_path / "img" / name).write_bytes(pictures.png(20, 20, place))
    (tmp_path / "space.yaml").write_text(text, "utf-8")
    space = load_space(tmp_path / "space.yaml")
    assert len(space.pictures) == 30
    job = parse_job({**JOB, "space": "./space.yaml"}, "job.yaml")
    plan = make_plan(job, AllowedFiles.of(tmp_path / "job.yaml"))
    _, asked = play(plan)
    shown = [pictures_in(one.messages[0].content) for one in asked]
    assert all(len(found) == 1 for found in shown), "both sides see the picture of the exercise"
    assert {one[0] for one in shown} <= {*space.pictures.values()}
    tutor = next(one for one in asked if one.role == "tutor").messages[0].content
    assert "The right answer: " in tutor
    assert "What you may tell:\n- " in tutor


def test_03_the_next_exercise_shares_a_concept_with_the_last_or_is_any() -> None:
    exercises = session("italian_prepositions", 1, 30)
    assert all(a.concepts.items() & b.concepts.items() for a, b in itertools.pairwise(exercises))
    assert len({one.question for one in session("italian_shapes", 1, 30)}) == 30, "until none is left"


def test_04_the_tutor_sees_answer_and_rules_and_the_student_does_not() -> None:
    result, asked = play(plan_for(tutoring={"student_turns": 4}))
    answers = [one["answers"][0] for one in (session_of(result).outcome or {})["exercises"]]
    for request in asked:
        brief = request.messages[0].content
        shown = any(answer in brief for answer in answers)
        assert shown == (request.role == "tutor")
        assert ("What you may tell:" in brief) == (request.role == "tutor")


def test_05_every_turn_has_a_set_of_actions_of_a_taxonomy_that_can_be_changed() -> None:
    seen: dict[str, Counter[tuple[str, ...]]] = {"Student": Counter(), "Tutor": Counter()}
    for index in range(4):
        for turn in session_of(play(plan_for(), index=index)[0]).turns:
            for one in (turn, *turn.alternatives):
                if "exercise" not in one.data:
                    assert one.labels
                    seen[one.role][one.labels] += 1
    assert {label for labels in seen["Student"] for label in labels} <= STUDENT
    assert {label for labels in seen["Tutor"] for label in labels} <= TUTOR
    assert any(len(labels) > 1 for labels in seen["Tutor"])
    own = {"student": {"Tries": "guesses"}, "tutor": {"Nods": "agrees", "Asks": "asks back"}}
    answer = {"student": said("rosso?", "Tries"), "tutor": said("No.", "Asks", "Nods")}
    result, _ = play(
        plan_for(tutoring={"actions": own, "student_turns": 2}), lambda request: answer[request.role]
    )
    assert {turn.labels for turn in session_of(result).turns[1:]} == {("Tries",), ("Nods", "Asks")}


def test_06_three_tutors_respond_without_seeing_each_other_and_one_response_goes_on() -> None:
    responses = itertools.count()

    def answer(request: Request) -> str:
        return said(f"Answer {next(responses)}.", "Hint") if request.role == "tutor" else said("No?", "Guess")

    result, asked = play(plan_for(tutoring={"student_turns": 3}), answer)
    tutors = [turn for turn in session_of(result).turns if turn.role == "Tutor" and turn.labels]
    assert [len(turn.alternatives) for turn in tutors] == [2, 2, 2]
    assert all(one.labels == ("Hint",) for turn in tutors for one in (turn, *turn.alternatives))
    for turn in tutors:
        shown = ["\n".join(one.content for one in request.messages) for request in asked]
        assert not any(other.text in text for text in shown for other in turn.alternatives)


POOL: dict[str, Any] = {"choose": "pool", "rounds": 4, "student_turns": 4}


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    return made(tmp_path_factory.mktemp("pool") / "run", "italian_prepositions", 16, POOL)


def served(run: edgen.Run) -> list[tuple[int, str]]:
    """Return each session's number, and the sources of its responses."""
    (data,) = open_data_sets([run.folder])
    return [
        (sample.scenario.index, str(turn.data["served"]))
        for sample in data.samples()
        for turn in sample.turns
        if "served" in turn.data
    ]


def test_07_students_are_served_earlier_responses_or_templates(pooled: edgen.Run) -> None:
    sources = Counter(source for _, source in served(pooled))
    assert sources["pool"] > 0
    assert sources["template"] > 0
    assert sources.keys() <= {"pool", "template", "dry"}
    (data,) = open_data_sets([pooled.folder])
    turns = {sample.id: [one for one in sample.turns if "served" in one.data] for sample in data.samples()}
    given = [(one.data["from"], one.text) for found in turns.values() for one in found if "from" in one.data]
    said_by = {
        (name, other.text) for name, found in turns.items() for one in found for other in one.alternatives
    }
    assert {*given} <= said_by, "each was a tutor's response in the session that is named"


def test_08_the_pool_grows_in_four_rounds(pooled: edgen.Run) -> None:
    from_pool = Counter(index // 4 for index, source in served(pooled) if source == "pool")
    assert from_pool[0] == 0, "the first round has templates alone"
    assert from_pool[1] + from_pool[2] + from_pool[3] > 0
    assert pooled.stats(["served"]).as_json()["served"] is not None


def test_09_a_response_that_makes_no_sense_is_kept_as_a_negative() -> None:
    turns = itertools.count()

    def answer(request: Request) -> str:
        if request.role == "student" and next(turns) == 1:
            return '{"nonsense": true}'
        return simulated(request)

    turn = session_of(play(plan_for(), answer)[0]).turns[-1]
    assert (turn.role, turn.data["nonsense"]) == ("Tutor", True)
    assert turn.labels


@pytest.mark.parametrize(("space", "turns"), [("italian_shapes", 5), ("italian_prepositions", 20)])
def test_10_a_session_has_so_many_turns_and_goes_on_when_an_answer_is_right(space: str, turns: int) -> None:
    plan = plan_for(space=space, tutoring={"student_turns": turns})
    (tier,) = Grammar(shipped(space)).tiers
    right = {one.question: one.answer for one in every(space, tier)}

    def answer(request: Request) -> str:
        if request.role == "tutor":
            return simulated(request)
        brief = request.messages[0].content
        return said(next(text for question, text in right.items() if question in brief), "Guess")

    conversation = session_of(play(plan, answer)[0])
    assert sum(turn.role == "Student" for turn in conversation.turns) == turns
    exercises = (conversation.outcome or {})["exercises"]
    assert all(one["solved"] and one["turns"] == 1 for one in exercises)
    assert len(exercises) == turns


def test_11_a_wanted_action_set_is_asked_for(run: edgen.Run) -> None:
    (data,) = open_data_sets([run.folder])
    wanted = Counter(
        one.data["wanted"]
        for sample in data.samples()
        for turn in sample.turns
        for one in (turn, *turn.alternatives)
        if "wanted" in one.data
    )
    assert wanted.keys() == {"Hint", "Correction"}
    assert wanted["Hint"] > wanted["Correction"]
    assert measure(data, ["wanted_actions"]).values["wanted_actions"] is not None


def test_12_figures_are_those_of_the_paper_s_tables(run: edgen.Run, shared_data: Path) -> None:
    only = ("actions", "action_agreement", "exercises", "tutor_words")
    (ours,) = open_data_sets([run.folder])
    found = measure(ours, only).values
    assert {"Tutor", "Student"} <= found["actions"].roles.keys()
    assert found["exercises"] is not None
    assert found["action_agreement"] is not None
    assert found["tutor_words"] is not None
    (released,) = open_data_sets([shared_data / "cima_prep_head.json"])
    tutor = measure(released, ("actions",)).values["actions"].roles["Tutor"]
    assert tutor.shares["Hint"] == pytest.approx(0.599, abs=0.001)
    assert tutor.shares["Confirmation"] == pytest.approx(0.146, abs=0.001)
    assert tutor.lead == pytest.approx(0.265, abs=0.001)


def test_13_a_response_is_scored_by_the_best_of_the_other_references(run: edgen.Run) -> None:
    (data,) = open_data_sets([run.folder])
    value = measure(data, ["reference_overlap"]).values["reference_overlap"]
    assert value.responses == 3 * 10 * 6
    assert 0 < value.bleu.value <= 100


def test_14_a_labeller_is_scored_by_action(run: edgen.Run) -> None:
    roles = run.stats(["label_agreement"]).as_json()["label_agreement"]["roles"]
    assert roles["Student"]["macro"]["f1"]["value"] == 1
    assert {"Hint", "Correction"} <= roles["Tutor"]["labels"].keys()
    assert all("f1" in one for one in roles["Tutor"]["labels"].values())


@pytest.mark.parametrize(("space", "kind"), [("italian_shapes", str), ("italian_prepositions", bool)])
def test_15_both_layouts_are_written_and_read_with_their_booleans(
    tmp_path: Path, space: str, kind: type
) -> None:
    run = made(tmp_path / "run", space, 3, {"student_turns": 5})
    run.export("cima", tmp_path / "out")
    entries = [
        entry
        for path in sorted((tmp_path / "out").glob("t*.json"))
        for half in json.loads(path.read_bytes()).values()
        for entry in half.values()
    ]
    assert len(entries) == 15
    for entry in entries:
        assert all(type(flag) is kind for flags in entry["tutorActions"] for flag in flags)
        assert ("studentActions" in entry) == (kind is bool)
        turns = cima.read(entry).speech.turns
        flags = [[str(flag) == "True" for flag in one] for one in entry["tutorActions"]]
        assert [len(one.labels) for one in (turns[-1], *turns[-1].alternatives)] == [
            sum(one) for one in flags
        ]
        assert len(entry["tutorResponses"]) == 3
