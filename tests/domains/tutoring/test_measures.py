"""Measures of tutoring: CIMA's released files against recomputed figures, and generated sessions."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import edgen
from edgen.api.validating import validate
from edgen.cli.app import app
from edgen.cli.output import run_guarded
from edgen.core import resources
from edgen.core.values import Scenario, Turn
from edgen.domains.tutoring import cima_files as cima
from edgen.domains.tutoring.family import TUTORING
from edgen.domains.tutoring.read_cima import READER
from edgen.evaluation.comparison.run_arms import open_comparison
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import ArmMeasures, measure, render
from edgen.evaluation.sample import Sample
from edgen.families.reader import find_reader_of_record
from edgen.families.record_files import is_recognized
from edgen.report.gather import gather
from edgen.report.page import render_page
from edgen.validation.stream import iterate_pieces
from tests.cli.command import get_command
from tests.evaluation.said import count_of

ONLY = ("actions", "action_agreement", "exercises", "tutor_words")


@pytest.fixture(scope="module")
def prep(shared_data: Path) -> ArmMeasures:
    (data,) = open_data_sets([shared_data / "cima_prep_head.json"])
    return measure(data, ONLY)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    job = {
        "name": "t",
        "seed": 7,
        "conversations": 20,
        "space": "italian_prepositions",
        "protocol": "tutoring",
        "backends": {"default": {"type": "simulator"}},
    }
    return edgen.generate(job, output=tmp_path_factory.mktemp("tutoring") / "run", progress=False)


# ---- the released files


def test_the_actions_are_those_of_the_release(prep: ArmMeasures) -> None:
    """Shares recomputed from the release at 3fa4859; the paper counts more responses than were released."""
    found = prep.values["actions"]
    tutor, student = found.roles["Tutor"], found.roles["Student"]
    assert (tutor.utterances, student.utterances) == (3_315, 1_135)
    shares = {name: round(100 * share, 1) for name, share in tutor.shares.items()}
    assert shares == {"Hint": 59.9, "Correction": 28.9, "Question": 28.4, "Confirmation": 14.6, "Other": 1.9}
    assert {name: round(100 * share, 1) for name, share in student.shares.items()} == {
        "Question": 48.5,
        "Guess": 45.3,
        "Affirmation": 14.3,
        "Other": 0.2,
    }
    sets = [(name, round(100 * share, 1)) for name, share in tutor.sets.items()][:6]
    assert sets == [
        ("Hint", 39.0),
        ("Question", 12.5),
        ("Correction", 12.5),
        ("Correction + Hint", 8.1),
        ("Hint + Question", 7.5),
        ("Confirmation", 6.2),
    ]
    assert round(100 * tutor.lead, 1) == 26.5


def test_responses_by_what_the_student_did(prep: ArmMeasures) -> None:
    responses = prep.values["actions"].responses
    assert round(100 * responses["Question"][1]["Hint"], 1) == 83.0
    assert round(100 * responses["Guess"][1]["Correction"], 1) == 55.1


def test_agreement_of_three_tutors(prep: ArmMeasures) -> None:
    found = prep.values["action_agreement"]
    assert (found.contexts, found.responses, found.complete, found.agreed) == (1_135, 3, 992, 200)
    assert round(100 * found.of_all.value, 1) == 17.6
    assert round(100 * found.of_complete.value, 1) == 20.2
    assert round(100 * found.lead, 1) == 75.0
    shares = {name: round(100 * agreed / many, 1) for name, (agreed, many) in found.by_student.items()}
    assert shares["Question"] == 29.6
    assert shares["Affirmation + Question"] == 34.6
    assert shares["Guess"] == 5.7
    assert shares["Affirmation"] == 10.7
    assert 0.2 < found.alpha < 0.3


def test_words_of_tutors_and_students(prep: ArmMeasures) -> None:
    found = prep.values["tutor_words"]
    assert found.responses.n == 3_315
    assert (round(found.responses.mean, 2), round(found.responses.sd, 2)) == (9.75, 6.83)
    assert found.student.n == 1_180
    assert (round(found.student.mean, 2), round(found.student.sd, 2)) == (6.41, 2.58)
    assert found.other_words.mean < found.responses.mean


def test_what_the_release_cannot_tell_is_said_to_be_missing(prep: ArmMeasures) -> None:
    """Only the paper has turns to solve, learning and flags."""
    found = prep.values["exercises"]
    assert (found.exercises, found.learning, found.flagged) == (0, None, None)
    assert "  The records do not state the outcome of exercises." in list(render(prep, ONLY))


def test_shapes_are_read_but_for_the_headings(shared_data: Path) -> None:
    """Of 219 entries, 215 are read. The other four are rows of headings, which others' figures count as
    responses."""
    (data,) = open_data_sets([shared_data / "cima_shape_81abde4.json"])
    found = measure(data, ONLY)
    assert found.overview.records == 215
    assert data.unread == {"a row of the table's headings": 4}
    actions = found.values["actions"].roles
    assert [*actions] == ["Tutor"], "the release has no actions of students in this half"
    assert actions["Tutor"].utterances == 729


def test_the_published_errors_are_told_one_by_one(shared_data: Path) -> None:
    found = validate([shared_data / "cima_prep_head.json"])
    told = [problem.path for file in found.files for problem in file.problems]
    assert (told.count("$.img"), told.count("$.grammarRules"), len(told)) == (1_135, 415, 1_550)
    found = validate([shared_data / "cima_shape_81abde4.json"])
    problems = [problem for file in found.files for problem in file.problems]
    assert sum(problem.path == "$" for problem in problems) == 4
    assert sum(problem.path.startswith("$.tutorActions") for problem in problems) == 6
    assert len(problems) == 10


@pytest.mark.parametrize(
    "share",
    [0.0, 0.001, 0.25, 0.5, 0.999999],
)
@pytest.mark.parametrize("command", ["stats", "validate"])
@pytest.mark.parametrize("name", ["cima_prep_head", "cima_shape_81abde4"])
def test_a_file_that_is_cut_off_is_a_sentence(
    shared_data: Path,
    tmp_path: Path,
    name: str,
    command: str,
    share: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command prints no traceback, and exits with the code for unreadable files."""
    data = (shared_data / f"{name}.json").read_bytes()
    (tmp_path / "half.json").write_bytes(data[: int(len(data) * share)])
    words = [command, str(tmp_path / "half.json")]
    assert run_guarded(lambda: get_command(app)(words, prog_name="edgen", standalone_mode=False)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "ends in the middle of a value" in told.err if share else "it is empty" in told.err


ENTRY: dict[str, Any] = {
    "past_convo": ["What is it?", "is it cane?"],
    "img": "a.png",
    "prep": "e dietro",
    "engPrep": "is behind the",
    "obj": "cane",
    "engObj": "dog",
    "color": "rosa",
    "engColor": "pink",
    "grammarRules": "[]",
    "studentActions": ["True", "False", "False", "False"],
    "tutorResponses": ["Yes!", "Well done"],
    "tutorActions": [[False, False, False, True, False], [True, False, False, True, False]],
}


def test_an_entry_is_a_context_with_responses() -> None:
    assert find_reader_of_record(ENTRY) is READER
    read = cima.read(ENTRY)
    assert [(turn.role, turn.labels) for turn in read.speech.turns] == [
        ("Tutor", ()),
        ("Student", ("Guess",)),
        ("Tutor", ("Confirmation",)),
    ]
    assert [one.labels for one in read.speech.turns[2].alternatives] == [("Question", "Confirmation")]
    assert read.scenario.values == {"preposition": "is behind the", "object": "dog", "colour": "pink"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"past_convo": "x"}, "past_convo that is not a list of texts"),
        ({"past_convo": [3]}, "past_convo that is not a list of texts"),
        ({"tutorResponses": []}, "no tutor's response"),
        ({"tutorResponses": ['" ', 3]}, "no tutor's response"),
        ({"tutorActions": None}, "no list of tutors' responses and their actions"),
    ],
)
def test_an_entry_that_is_none_is_counted_with_its_reason(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        READER.read_file({**ENTRY, **changes})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"img": '"a.png"'}, "$.img"),
        ({"grammarRules": '[["x", ""]], "old": 3'}, "$.grammarRules"),
        ({"grammarRules": "none"}, "$.grammarRules"),
        ({"tutorActions": [[True, False, "maybe", True, False]] * 2}, "$.tutorActions[0][2]"),
        ({"tutorActions": [[True] * 5]}, "$.tutorActions"),
    ],
)
def test_what_is_wrong_with_an_entry(value: dict[str, Any], path: str) -> None:
    assert path in [where for where, _ in cima.find_errors({**ENTRY, **value})]
    assert list(cima.find_errors(ENTRY)) == []


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ({"a": {"past_convo": [], "tutorResponses": []}, "b": {"past_convo": [], "tutorResponses": []}}, 2),
        ({"one": {"0": {"past_convo": [], "tutorResponses": []}, "1": {"past_convo": []}}, "two": {}}, 2),
        (
            {
                "none": {},
                "one": {"0": {"past_convo": [], "tutorResponses": []}},
                "two": {"0": {"pastConvo": ""}},
            },
            2,
        ),
    ],
)
def test_records_by_their_ids_are_records(data: Any, count: int) -> None:
    for text in (json.dumps(data), json.dumps(data, indent=1)):
        assert len(list(iterate_pieces(io.BytesIO(text.encode()), "file", is_recognized))) == count


def test_one_record_alone_is_a_list_of_one() -> None:
    text = json.dumps({"id": "x", "scenario": {}, "conversation": []}, indent=1)
    assert len(list(iterate_pieces(io.BytesIO(text.encode()), "file", is_recognized))) == 1


# ---- sessions


def test_sessions_are_measured(sessions: edgen.Run) -> None:
    found = sessions.stats(ONLY).as_json()
    exercises, actions = found["exercises"], found["actions"]
    made = [one for conversation in sessions.conversations() for one in conversation.turns]
    assert exercises["exercises"] == sum("exercise" in turn.data for turn in made)
    assert exercises["turns"]["n"] == sum(turn.data.get("solved", False) for turn in made)
    assert exercises["at_once"]["n"] == exercises["turns"]["n"]
    assert actions["roles"]["Tutor"]["utterances"] == sum(
        1 + len(turn.alternatives) for turn in made if turn.alternatives
    )
    assert found["action_agreement"]["responses"] == 3
    assert 0 < exercises["revealed"]["value"] < 1


def test_a_tutor_who_puts_the_next_exercise_is_no_warning(sessions: edgen.Run, tmp_path: Path) -> None:
    path = next((sessions.folder / "shards").glob("conversations_train*"))
    found = validate([path])
    assert found.records > 2
    assert [one.kind for file in found.files for one in file.problems] == []
    other = tmp_path / "other.json"
    other.write_text(path.read_text("utf-8").replace('"exercise":', '"other":'), "utf-8")
    kinds = {one.kind for file in validate([other]).files for one in file.problems}
    assert kinds == {"alternation"}, "where nothing begins, it still is"


def test_the_report_shows_the_picture_of_each_exercise(sessions: edgen.Run) -> None:
    found = gather(sessions.folder)
    for one in found.chosen:
        puts = [place for place, turn in enumerate(one.record.turns) if "exercise" in turn.data]
        assert [*one.pictures] == puts
        assert puts
    # without the measures, which draw pictures of their own
    arms = tuple(
        msgspec.structs.replace(arm, quality=msgspec.structs.replace(arm.quality, values={}))
        for arm in found.arms
    )
    html = render_page(msgspec.structs.replace(found, arms=arms))
    assert html.count('<span class="drawn"><svg ') == sum(len(one.pictures) for one in found.chosen)


def test_the_measures_of_files_are_those_of_their_run(sessions: edgen.Run, tmp_path: Path) -> None:
    shards = sorted((sessions.folder / "shards").glob("conversations*.json"))
    records = [record for path in shards for record in json.loads(path.read_bytes())]
    (tmp_path / "all.json").write_text(json.dumps(records))
    (data,) = open_data_sets([tmp_path / "all.json"])
    assert data.family is TUTORING
    files = measure(data, ONLY).values
    run = sessions.stats(ONLY).as_json()
    for name in ("actions", "exercises"):
        for key in run[name].keys() - {"revealed"}:
            assert (
                key in ("learning", "solved", "flagged")
                or msgspec.to_builtins(files[name])[key] == run[name][key]
            )


@pytest.mark.only_long
@pytest.mark.integration
def test_tutors_are_compared_by_scenario_and_the_planted_difference_is_covered(tmp_path: Path) -> None:
    """The simulator's tutor gives the answer away as often as its template says: in 10% and 30% of its
    responses."""
    shipped = resources.find("prompts", "tutoring_tutor").read_text("utf-8")
    for name, percent in (("seldom", 10), ("often", 30)):
        line = f"You are a tutor.\nTell the answer in {percent}% of your turns."
        (tmp_path / f"{name}.j2").write_text(shipped.replace("You are a tutor.", line), "utf-8")
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "name": "t",
                "seed": 7,
                "conversations": 120,
                "space": "italian_prepositions",
                "protocol": "tutoring",
                "tutoring": {"student_turns": 14, "responses": 2},
                "backends": {"default": {"type": "simulator"}},
                "arms": {name: {"prompts": {"tutor": f"./{name}.j2"}} for name in ("seldom", "often")},
            }
        )
    )
    edgen.generate(job, output=tmp_path / "run", progress=False)
    with open_comparison([tmp_path / "run"]) as found:
        metrics = {one.name: one for one in found.metrics}
        for name, planted in (("seldom", 0.1), ("often", 0.3)):
            given = metrics["revealed"].arms[name]
            assert given.low is not None
            assert given.high is not None
            assert given.low <= planted <= given.high
        (difference,) = metrics["revealed"].differences
        assert difference.low is not None
        assert difference.high is not None
        assert 0.1 < difference.low <= 0.2 <= difference.high < 0.3
        assert difference.p_holm is not None
        assert difference.p_holm < 0.05
        (learning,) = metrics["learning"].differences
        assert learning.n >= 10
        assert learning.low is not None, "sessions that solve two in both arms are paired"
        assert {"exercises_solved", "turns_to_solve", "nonsense", "action_tutor_hint"} <= metrics.keys()


def test_turns_by_hand() -> None:
    count = count_of("exercises")
    turns = (
        Turn("Tutor", "cat?", data={"exercise": 0}),
        Turn("Student", "hm", ("Question",)),
        Turn("Tutor", "It is gatto.", ("Hint",), alternatives=(Turn("Tutor", "Think.", ("Hint",)),)),
        Turn("Student", "gatto", ("Guess",), {"solved": True}),
        Turn(
            "Tutor",
            "Yes, gatto!",
            ("Confirmation",),
            alternatives=(Turn("Tutor", "gatto, yes", ("Confirmation",)),),
        ),
        Turn("Tutor", "dog?", data={"exercise": 1}),
        Turn("Student", "cane", ("Guess",), {"solved": True}),
        Turn("Tutor", "What?", ("Question",), {"nonsense": True}),
    )
    outcome = {
        "exercises": [
            {"tier": "t", "answers": ["gatto"], "question": "cat?", "turns": 2, "solved": True},
            {"tier": "t", "answers": ["cane"], "question": "dog?", "turns": 1, "solved": True},
        ]
    }
    for index in range(3):
        count.see(
            Sample(
                id="x",
                source="x",
                split=None,
                scenario=Scenario(index, {}),
                turns=turns,
                entries=8,
                outcome=outcome,
            ),
            [],
        )
    found = count.result()
    assert found.exercises == 6
    estimates = (found.solved, found.learning, found.revealed, found.flagged)
    # Texts after an exercise is solved do not give the answer away.
    assert [one.value for one in estimates if one] == [1, -1, 0.5, pytest.approx(1 / 3)]
