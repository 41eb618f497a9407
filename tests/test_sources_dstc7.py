"""Features of DSTC7's track 1, point by point, on one run of the shipped advising job.

One short check for each capability of the source; the domain's own tests have the details. IBM's own
programs, ParlAI's and others' are run on the same exports in tests/rl/apart.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen

pytestmark = pytest.mark.integration
Example = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    made = edgen.generate(
        "jobs/course_advising.yaml",
        conversations=80,
        output=tmp_path_factory.mktemp("dstc7") / "run",
        progress=False,
    )
    for kind in ("paraphrases", "wrong"):
        edgen.candidates(made, kind, count=3, after=0, progress=False)
    return made


class Exported:
    """An export: the examples of each side, and the right answers of the test side."""

    def __init__(self, run: edgen.Run, folder: Path, **own: Any) -> None:
        self.folder, self.subtask = folder, own.get("subtask", 1)
        run.export("dstc7", folder, prefix="w", **own)
        self.sides: dict[str, list[Example]] = {side: self.read(side) for side in ("train", "dev", "test")}
        self.all = [one for examples in self.sides.values() for one in examples]
        lines = self.file("responses", "tsv").read_text(encoding="utf-8").splitlines()
        self.truth = {line.split("\t")[0]: line.split("\t")[1].split(",") for line in lines}

    def file(self, what: str, suffix: str = "json") -> Path:
        return self.folder / f"w_{what}_subtask_{self.subtask}.{suffix}"

    def read(self, side: str) -> list[Example]:
        return json.loads(self.file(side).read_text(encoding="utf-8"))

    def right(self, one: Example) -> list[str]:
        if one["data-split"] == "test":
            return self.truth[one["example-id"]]
        return [answer["candidate-id"] for answer in one["options-for-correct-answers"]]


@pytest.fixture(scope="module")
def plain(run: edgen.Run, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return Exported(run, tmp_path_factory.mktemp("plain") / "out", cuts="all", speakers="roles")


def test_dstc7_01_dialogs_are_cut_at_one_or_every_turn_after_three(
    run: edgen.Run, plain: Exported, tmp_path: Path
) -> None:
    dialogs = {one.id: one.turns for one in run.conversations()}
    places = {f"{name}-{at + 1}" for name, turns in dialogs.items() for at, turn in enumerate(turns)
              if at >= 3 and turn.role == "Advisor"}  # fmt: skip
    assert {one["example-id"] for one in plain.all} <= places
    assert min(len(one["messages-so-far"]) for one in plain.all) == 3
    one_each = Exported(run, tmp_path / "one", cuts="one")
    assert max(Counter(one["example-id"].rpartition("-")[0] for one in one_each.all).values()) == 1
    assert len(one_each.all) < len(plain.all)


@pytest.mark.parametrize("negatives", ["random", "same-topic", "bm25", "written"])
def test_dstc7_02_a_hundred_candidates_without_false_negatives(
    negatives: str, run: edgen.Run, tmp_path: Path
) -> None:
    found = Exported(run, tmp_path / "out", cuts="all", negatives=negatives)
    after: dict[tuple[str, ...], set[str]] = {}
    for one in run.conversations():
        texts = [" ".join(turn.text.split()) for turn in one.turns]
        for at, text in enumerate(texts):
            after.setdefault(tuple(texts[:at]), set()).add(text)
    for one in found.all:
        pool = {c["candidate-id"]: c["utterance"] for c in one["options-for-next"]}
        assert len(pool) == len({*pool.values()}) == 100
        (right,) = found.right(one)
        context = tuple(message["utterance"] for message in one["messages-so-far"])
        assert {text for name, text in pool.items() if name != right}.isdisjoint(after[context])


def test_dstc7_03_one_pool_for_all_examples_with_ids_that_stay(
    run: edgen.Run, plain: Exported, tmp_path: Path
) -> None:
    found = Exported(run, tmp_path / "out", subtask=2, cuts="all", pool=300)
    pool = dict(
        line.split("\t")
        for line in found.file("candidate_pool", "tsv").read_text(encoding="utf-8").splitlines()
    )
    assert 100 <= len(pool) <= 300
    assert all(name in pool for one in found.all for name in found.right(one))
    assert not any("options-for-next" in one for one in found.all)
    own = {c["utterance"]: c["candidate-id"] for one in plain.all for c in one["options-for-next"]}
    assert all(own.get(text, name) == name for name, text in pool.items())


def test_dstc7_04_paraphrases_are_right_too_and_the_dialogs_before_the_cut_are_there(
    run: edgen.Run, tmp_path: Path
) -> None:
    found = Exported(run, tmp_path / "out", subtask=3)
    assert max(len(found.right(one)) for one in found.all) > 1
    dialogs = json.loads(found.file("dialogs").read_text(encoding="utf-8"))
    assert {one["data-split"] for one in dialogs} == {"train", "dev"}
    assert any(message["paraphrases"] for one in dialogs for message in one["messages"])


def test_dstc7_05_a_share_of_examples_has_no_right_candidate(run: edgen.Run, tmp_path: Path) -> None:
    found = Exported(run, tmp_path / "out", subtask=4, cuts="all", none=0.3)
    none = [one for one in found.all if found.right(one) == ["NONE"]]
    assert 0.15 < len(none) / len(found.all) < 0.45
    for one in found.all:
        ids = {c["candidate-id"] for c in one["options-for-next"]}
        assert (found.right(one)[0] in ids) == (one not in none)


def test_dstc7_06_a_course_file_with_the_documented_fields_and_links_to_it(
    run: edgen.Run, tmp_path: Path
) -> None:
    found = Exported(run, tmp_path / "out", subtask=5)
    courses = json.loads((tmp_path / "out" / "course-info.json").read_text(encoding="utf-8"))
    documented = {
        "Area", "Category", "ClarityRating", "ClassSize", "Course", "CourseTitle", "Credits", "DaysOfClass", "Description",
        "EasinessRating", "EndTime", "HasDiscussion", "HasLab", "HelpfulnessRating", "Section", "Semester", "StartTime",
        "Workload", "Year", "EnforcedReq", "AdvisoryReq", "MeetingInfo", "Easiness", "Helpfulness",
    }  # fmt: skip
    for one in courses.values():
        assert documented <= one.keys()
        assert one["Semester"] in ("Fall", "Winter", "Spring", "Summer", "Spring-Summer")
        assert all(1 <= one[name] <= 5 for name in ("ClarityRating", "EasinessRating", "HelpfulnessRating"))
        assert 1 <= one["ClassSize"] <= 250
        assert one["Workload"] in (1, 2, 3, 4)
        assert {one["HasLab"], one["HasDiscussion"]} <= {"Y", "N"}
    listed = [
        one
        for example in found.all
        for courses_ in example["profile"]["Courses"].values()
        for one in courses_
    ]
    assert {one["offering"] for one in listed} <= courses.keys()


@pytest.mark.parametrize("subtask", [1, 3, 4, 5])
def test_dstc7_07_every_example_has_a_profile_and_the_test_tells_what_the_advisor_knows(
    subtask: int, run: edgen.Run, tmp_path: Path
) -> None:
    found = Exported(run, tmp_path / "out", subtask=subtask)
    courses = json.loads((Path("preference_space") / "course-info.json").read_text(encoding="utf-8"))
    fields = {name for one in courses.values() for name in one}
    for one in found.all:
        profile = one["profile"]
        assert profile.keys() == {"Aggregated", "Courses", "Term", "Standing"}
        assert profile["Courses"].keys() == {"Prior", "Suggested"}
        assert profile["Aggregated"].keys() <= fields
        assert bool(profile["Aggregated"]) == (one["data-split"] != "test")


def test_dstc7_08_two_ways_to_name_speakers_and_unique_ids(
    run: edgen.Run, plain: Exported, tmp_path: Path
) -> None:
    named = Exported(run, tmp_path / "out", cuts="all")
    for found, names in ((plain, {"student", "advisor"}), (named, {"participant_1", "participant_2"})):
        assert {message["speaker"] for one in found.all for message in one["messages-so-far"]} == names
        assert {one["scenario"] for one in found.all} == {1}
        assert all(one["data-split"] == side for side, examples in found.sides.items() for one in examples)
        ids = [one["example-id"] for one in found.all]
        assert len(ids) == len({*ids})


def test_dstc7_09_the_test_file_hides_its_answers_in_a_table(plain: Exported) -> None:
    assert not any("options-for-correct-answers" in one for one in plain.sides["test"])
    assert {*plain.truth} == {one["example-id"] for one in plain.sides["test"]}
    for line in plain.file("responses", "tsv").read_text(encoding="utf-8").splitlines():
        example, candidate, utterance = line.split("\t")
        (one,) = (one for one in plain.sides["test"] if one["example-id"] == example)
        assert {"candidate-id": candidate, "utterance": utterance} in one["options-for-next"]


def test_dstc7_10_scores_are_those_of_the_task(plain: Exported, tmp_path: Path) -> None:
    """tests/rl/apart/test_noesis.py compares tables of figures with IBM's metrics.py."""
    rng, ranking, places = random.Random(1), [], []
    for one in plain.sides["test"]:
        ids = [c["candidate-id"] for c in one["options-for-next"]]
        rng.shuffle(ids)
        ranking.append({"example-id": one["example-id"], "candidate-ranking": [
            {"candidate-id": name, "confidence": 1 - n / 100} for n, name in enumerate(ids)]})  # fmt: skip
        places.append(ids.index(plain.truth[one["example-id"]][0]) + 1)
    (tmp_path / "ranking.json").write_text(json.dumps(ranking))
    score = edgen.score(
        plain.file("responses", "tsv"), tmp_path / "ranking.json", examples=plain.file("test")
    )
    assert score.sound
    figures = score.figures
    for k in (1, 10, 50):
        assert figures.recall[k].value == pytest.approx(
            sum(place <= k for place in places) / len(places), rel=1e-5
        )
    assert figures.mrr.value == pytest.approx(sum(1 / place for place in places) / len(places), rel=1e-5)
    ranking[0]["candidate-ranking"][0]["candidate-id"] = "OTHER"
    (tmp_path / "ranking.json").write_text(json.dumps(ranking))
    assert not edgen.score(
        plain.file("responses", "tsv"), tmp_path / "ranking.json", examples=plain.file("test")
    ).sound


def test_dstc7_11_baselines_rank_every_example(plain: Exported, tmp_path: Path) -> None:
    for by in ("chance", "tfidf", "bm25"):
        edgen.baseline(plain.file("test"), tmp_path / f"{by}.json", by=by)
        assert edgen.score(plain.file("responses", "tsv"), tmp_path / f"{by}.json").sound


def test_dstc7_12_both_kinds_of_tests(run: edgen.Run, tmp_path: Path) -> None:
    train = {one.id for one in run.conversations() if one.split == "train"}
    for kind in (1, 2):
        found = Exported(run, tmp_path / str(kind), cuts="all", tests=kind)
        sources = {
            one["example-id"].rpartition("-")[0].removesuffix("-paraphrased") for one in found.sides["test"]
        }
        assert sources
        assert sources <= train if kind == 1 else not sources & train
        seen = {
            c["utterance"]
            for one in (*found.sides["train"], *found.sides["dev"])
            for c in one["options-for-next"]
        }
        said = {
            c["candidate-id"]: c["utterance"] for one in found.sides["test"] for c in one["options-for-next"]
        }
        if kind == 1:
            assert not {said[name] for ids in found.truth.values() for name in ids} & seen
