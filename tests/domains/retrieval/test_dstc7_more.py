"""DSTC7's sub-tasks 3 (an answer and its paraphrases) and 5 (a knowledge file and profiles)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import edgen
from edgen.core import resources
from edgen.core.errors import ShortError, UsageError
from edgen.domains.retrieval.negatives import are_alike
from edgen.domains.retrieval.score import RankingScore
from edgen.space.knowledge import Knowledge
from tests import ROOT
from tests.domains.retrieval.test_dstc7 import SIZE, WORDS, Placed, _sha, after, examples, made, truth, write


def reworded(run: Placed, share: float = 1.0, most: int = 4) -> dict[str, list[str]]:
    """Write paraphrases into a run; return those of each example by its id."""
    rng, lines, found = random.Random(5), [], {}
    for one in run.taught:
        for at, turn in enumerate(one.candidate.turns):
            if turn.role == "Tutor" and rng.random() < share:
                texts = [
                    f"{turn.text} that is", *(" ".join(rng.choices(WORDS, k=4)) for _ in range(rng.randrange(most)))
                ]  # fmt: skip
                line = {"id": one.candidate.id, "turn": at, "role": "Tutor", "writer": "../x", "texts": texts}
                lines.append(json.dumps({**line, "text_sha256": _sha(turn.text)}))
                found[f"{one.candidate.id}-{at + 1}"] = texts
    run.rundir.locate_written_texts("paraphrases").write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8"
    )
    return found


@pytest.mark.parametrize("negatives", ["random", "written"])
def test_paraphrases_are_right_and_nothing_that_says_the_same_is_wrong(
    negatives: str, tmp_path: Path
) -> None:
    run = made(0, tmp_path)
    texts = reworded(run)
    write(run, tmp_path / "out", subtask=3, cuts="all", negatives=negatives)
    found, right, hidden = examples(tmp_path / "out"), after(run), truth(tmp_path / "out")
    assert len(found) > 50
    several = 0
    for one in found:
        pool = {c["candidate-id"]: c["utterance"] for c in one["options-for-next"]}
        assert len(pool) == len({*pool.values()}) == SIZE
        if one["data-split"] == "test":
            assert "options-for-correct-answers" not in one
            ids, first = hidden[one["example-id"]]
        else:
            ids = [c["candidate-id"] for c in one["options-for-correct-answers"]]
            first = one["options-for-correct-answers"][0]["utterance"]
        answers = [pool.pop(name) for name in ids]
        several += len(answers) > 1
        context = right[tuple(m["utterance"] for m in one["messages-so-far"])]
        assert answers[0] == first
        assert first in context
        assert {*answers[1:]} == {*texts[one["example-id"]]} - {first}
        others = context | {*answers}
        assert not any(are_alike(wrong, answer) for wrong in pool.values() for answer in others)
    assert several == len(found)


def test_the_conversations_before_the_cut_have_all_paraphrases_and_tell_no_answer_of_the_test(
    tmp_path: Path,
) -> None:
    run = made(1, tmp_path)
    texts = reworded(run)
    write(run, tmp_path / "out", subtask=3)
    dialogs = json.loads((tmp_path / "out" / "w_dialogs_subtask_3.json").read_text())
    assert [one["dialog-id"] for one in dialogs] == [
        one.candidate.id for one in run.taught if one.split == "train"
    ]
    for dialog in dialogs:
        for number, message in enumerate(dialog["messages"], 1):
            wanted = texts.get(f"{dialog['dialog-id']}-{number}", [])
            assert {*message["paraphrases"]} == {*wanted} - {message["utterance"]}


def test_more_paraphrases_than_candidates_leave_room_for_a_wrong_one(tmp_path: Path) -> None:
    run = made(2, tmp_path)
    reworded(run, most=9)
    write(run, tmp_path / "out", subtask=3, candidates=3)
    for one in examples(tmp_path / "out", "train"):
        assert len(one["options-for-next"]) == 3
        assert len(one["options-for-correct-answers"]) <= 2


def test_missing_paraphrases_are_said_and_none_at_all_is_an_error(tmp_path: Path) -> None:
    run = made(0, tmp_path)
    with pytest.raises(ShortError, match=r"no turn .* has paraphrases.*`edgen annotate .* --write para"):
        write(run, tmp_path / "out", subtask=3)
    reworded(run, share=0.5)
    exported = write(run, tmp_path / "out", subtask=3, cuts="all")
    assert "A model wrote the paraphrases (not known)" in exported.remarks[0]
    assert "examples have one right answer: there are no paraphrases" in exported.remarks[1]
    path = run.rundir.locate_written_texts("paraphrases")
    path.write_text(path.read_text(encoding="utf-8").replace('"text_sha256": "', '"text_sha256": "0'))
    with pytest.raises(ShortError, match="no turn to choose has paraphrases"):
        write(run, tmp_path / "stale", subtask=3)
    assert not (tmp_path / "stale").exists()
    path.write_text('{"id": "w-0', encoding="utf-8")
    with pytest.raises(edgen.errors.DataError, match=r"line 1: these are not written texts"):
        write(run, tmp_path / "half", subtask=3)


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Return a run about courses, with paraphrases: sub-task 2 needs them for its pool, too."""
    run = edgen.generate(
        ROOT / "jobs" / "course_advising.yaml", conversations=40, selfplay={"max_turns": 6},
        output=tmp_path_factory.mktemp("advised") / "run", progress=False, split={"test": 0.3},
    )  # fmt: skip
    edgen.candidates(run, "paraphrases", progress=False)
    return run


PREFERENCES = {"Area", "DaysOfClass", "Easiness", "EndTime", "StartTime", "Workload"}


@pytest.mark.parametrize("subtask", [1, 3, 4, 5])
def test_readers_of_advisings_files_find_what_they_look_up(
    subtask: int, advised: edgen.Run, tmp_path: Path
) -> None:
    """MiuLab/DSTC7 reads record['profile']['Courses']['Suggested'][i]['offering'] and ['instructor'], and
    takes the text before the dash as the course's id. CTinRay/DSTC7 reads each record's `Course` and
    `Description`."""
    advised.export("dstc7", tmp_path / "out", subtask=subtask, prefix="w", candidates=SIZE, speakers="roles")
    shipped = resources.find_folder("preference_space") / "course-info.json"
    assert (tmp_path / "out" / "course-info.json").exists() == (subtask == 5)
    if subtask == 5:
        assert (tmp_path / "out" / "course-info.json").read_bytes() == shipped.read_bytes()
    offered = json.loads(shipped.read_bytes())
    courses = {course["Course"]: course["Description"] for _, course in offered.items()}
    found = examples(tmp_path / "out")
    assert {one["data-split"] for one in found} == {"train", "dev", "test"}
    told: set[str] = set()
    for record in found:
        assert {m["speaker"] for m in record["messages-so-far"]} == {"student", "advisor"}
        profile = record["profile"]
        assert profile.keys() == {"Aggregated", "Courses", "Term", "Standing"}
        suggested = profile["Courses"]["Suggested"]
        assert suggested
        for i in range(len(suggested)):
            offering = record["profile"]["Courses"]["Suggested"][i]["offering"]
            assert offering.split("-")[0] in courses
            assert record["profile"]["Courses"]["Suggested"][i]["instructor"] in offered[offering]["Section"]
        assert {one["offering"] for one in profile["Courses"]["Prior"]} <= offered.keys()
        assert profile["Term"] in ("Fall 2026", "Spring 2027")
        assert profile["Standing"].endswith("year")
        assert all(profile["Aggregated"].keys() <= one.keys() for one in offered.values())
        if record["data-split"] == "test":
            assert profile["Aggregated"] == {}  # the advisor does not know the student's preferences
        else:
            assert "Area" in profile["Aggregated"]
            told |= profile["Aggregated"].keys()
    assert told == PREFERENCES


def test_there_is_no_profile_where_advising_has_none(advised: edgen.Run, tmp_path: Path) -> None:
    advised.export("dstc7", tmp_path / "out", subtask=2, prefix="w")
    assert not any("profile" in one for one in examples(tmp_path / "out"))


def test_the_agent_that_is_chosen_decides_what_the_test_side_may_hold(
    advised: edgen.Run, tmp_path: Path
) -> None:
    advised.export("dstc7", tmp_path / "out", subtask=5, prefix="w", candidates=SIZE, agent="student")
    (first, *_) = examples(tmp_path / "out", "test")
    assert first["profile"]["Courses"]["Suggested"] == []
    assert first["profile"]["Courses"]["Prior"]
    assert "Area" in first["profile"]["Aggregated"]


def test_preferences_are_dimensions_and_fields_named_like_the_records(tmp_path: Path) -> None:
    """In any space, a dimension counts by its own name too; a name that no record has is no preference."""
    (tmp_path / "rooms.json").write_text('[{"Room": "a", "Seats": 4}, {"Floor": 2}]', encoding="utf-8")
    space = {
        "name": "rooms", "description": "Rooms.", "source": "Own.", "knowledge": "rooms.json",
        "dimensions": {
            "Floor": ["1", "2"],
            "wish": [{"value": "many seats", "Seats": 40, "mood": "calm"}, {"value": "few", "Seats": 3, "mood": "shy"}],
            "known": [{"value": "all", "prior": [{"offering": "A-1"}, {"other": 1}, "B"]}],
        },
        "roles": {"Clerk": {"sees": ["known"]}, "Guest": {"sees": ["Floor", "wish", "known"]}},
    }  # fmt: skip
    (tmp_path / "rooms.yaml").write_text(json.dumps(space), encoding="utf-8")
    job = {"name": "r", "seed": 1, "conversations": 30, "space": str(tmp_path / "rooms.yaml"), "protocol": "selfplay",
           "selfplay": {"first": "guest", "max_turns": 6}, "backends": {"default": {"type": "simulator"}}}  # fmt: skip
    run = edgen.generate(job, output=tmp_path / "run", progress=False, allow_outside=True)
    exported = run.export("dstc7", tmp_path / "out", prefix="w", candidates=SIZE)
    assert not any("Aggregated" in one for one in exported.remarks)
    for one in examples(tmp_path / "out", "train"):
        told = one["profile"]
        assert told["Aggregated"].keys() == {"Floor", "Seats"}
        assert told["Courses"] == {"Prior": [{"offering": "A-1"}], "Suggested": []}
        assert (told["Term"], told["Standing"]) == ("", "")


def test_a_space_without_a_knowledge_file_or_a_profile_is_told(tmp_path: Path) -> None:
    run = made(0, tmp_path)
    with pytest.raises(UsageError, match=r"the space .* names none \(`knowledge:` in its file"):
        write(run, tmp_path / "out", subtask=5)
    run.space = replace(run.space, knowledge=Knowledge("facts.json", '{"rope": "long"}'))
    exported = write(run, tmp_path / "out", subtask=5)
    assert "has no courses" in exported.remarks[0]
    assert json.loads((tmp_path / "out" / "facts.json").read_text()) == {"rope": "long"}
    assert not any("profile" in one for one in examples(tmp_path / "out"))


@pytest.mark.parametrize("subtask", [3, 5])
def test_baselines_and_scores_take_them(subtask: int, advised: edgen.Run, tmp_path: Path) -> None:
    edgen.candidates(advised, "paraphrases", progress=False)
    own: dict[str, Any] = {"subtask": subtask, "prefix": "w", "cuts": "all", "candidates": SIZE}
    advised.export("dstc7", tmp_path / "out", **own)
    test, answers = (tmp_path / "out" / f"w_{name}_subtask_{subtask}" for name in ("test", "responses"))
    test, answers = test.with_suffix(".json"), answers.with_suffix(".tsv")
    edgen.baseline(test, tmp_path / "ranked.json", by="tfidf")
    score = edgen.score(answers, tmp_path / "ranked.json", candidates=SIZE, examples=test)
    assert isinstance(score, RankingScore)
    assert score.sound
    assert 0 < score.figures.map.value <= 1
    assert (score.figures.map.value == score.figures.mrr.value) == (subtask == 5)
