"""`edgen compare` with data sets as arms: independent samples, only applicable metrics, and
clear messages for mistakes."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.values import Scenario, Turn
from edgen.evaluation.comparison import data_arms
from edgen.evaluation.comparison.result import ComparisonResult
from edgen.evaluation.comparison.run_arms import open_comparison
from edgen.evaluation.sample import Sample
from tests.cli.command import Command, call

BACKGROUND = {
    "topic": "rivers", "student_prefrences": "a", "teacher_prefrences": "b", "student_reactions": "c",
    "teacher_reactions": "d",
}  # fmt: skip
ROLES = ("Teacher", "Student")


def conversation(
    rng: random.Random, mean: int, roles: tuple[str, str] = ROLES, words: str = "abcdefgh"
) -> dict[str, Any]:
    said = [
        {"role": roles[place % 2], "text": " ".join(rng.choices(words, k=rng.randint(mean - 2, mean + 2)))}
        for place in range(6)
    ]
    return {"background_info": {**BACKGROUND, "topic": f"topic {rng.randint(0, 50)}"}, "conversation": said}


def data_set(path: Path, count: int, mean: int, seed: int = 1, **more: Any) -> Path:
    rng = random.Random(seed)
    path.write_text(json.dumps([conversation(rng, mean, **more) for _ in range(count)]))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    job = {
        "name": "t", "seed": 3, "conversations": 40, "space": "education_dialogue", "prompt": "education_dialogue",
        "backends": {"default": {"type": "simulator"}}, "arms": {"published": {}, "json": {"prompt": "education_dialogue_json"}},
    }  # fmt: skip
    (folder / "job.yaml").write_text(json.dumps(job))
    assert call("generate", folder / "job.yaml", "-o", folder / "run") == 0
    return folder / "run"


@pytest.fixture
def own(run: Path, tmp_path: Path) -> Path:
    """Copy the run, so that a test may change it."""
    return Path(shutil.copytree(run, tmp_path / "run"))


def compared(*paths: Path, **more: Any) -> ComparisonResult:
    with open_comparison(paths, **more) as found:
        return found


def metric(found: ComparisonResult, name: str) -> Any:
    return next(one for one in found.metrics if one.name == name)


class TestDataSets:
    def test_one_is_an_arm_beside_a_runs(self, command: Command, own: Path, tmp_path: Path) -> None:
        real = data_set(tmp_path / "real.json", 60, 9)
        ended = command("compare", real, own, "--json")
        assert ended.code == 0, ended.err
        found = json.loads(ended.out)
        assert [arm["label"] for arm in found["arms"]] == ["real.json", "run.published", "run.json"]
        assert found["baseline"] == "real.json"
        data = found["arms"][0]["data"]
        assert (data["records"], data["clusters"], data["layout"]) == (60, 60, "Education Dialogue")
        assert "data" not in found["arms"][1]
        assert not any(arm["paired"] for arm in found["arms"][1:])
        words = next(one for one in found["metrics"] if one["name"] == "teacher_words")
        assert words["arms"]["real.json"]["value"] == pytest.approx(9, abs=0.5)
        for difference in words["differences"]:
            assert difference["low"] <= difference["value"] <= difference["high"]
            assert difference["p_holm"] < 0.05
        names = {one["name"] for one in found["metrics"]}
        assert {
            "turns",
            "teacher_words",
            "student_words",
            "distinct_1",
            "self_bleu",
            "near_duplicates",
        } <= names
        assert not names & {"accepted", "calls", "tokens", "repaired", "probability"}
        left_out = {title for one in found["not_compared"] for title in one["what"].split(", ")}
        assert {"accepted", "calls a conversation", "tokens per accepted", "probability"} <= left_out
        stored = json.loads(next((own / "comparisons").glob("real.json-vs-*.json")).read_bytes())
        assert {key: value for key, value in stored.items() if key != "sha256"} == found

    def test_for_a_person(self, command: Command, run: Path, tmp_path: Path) -> None:
        real = data_set(tmp_path / "real.json", 60, 9)
        ended = command(
            "compare", real, run, "--arms", "real.json", "run.json", "-o", tmp_path / "found.json"
        )
        assert ended.code == 0, ended.err
        assert max(map(len, ended.out.splitlines()[:-1])) <= 80
        words = " ".join(ended.out.split())
        for said in (
            "no scenario shared: independent samples", "real.json: 60 conversations, read as Education Dialogue",
            "not paired: p by a permutation test of the studentised difference, intervals by the bootstrap",
            "a data set does not record how it was made", "the comparison cannot separate these", "arms are not proven alike",
            "may have read real.json in training", "a simulator took part in run.json",
        ):  # fmt: skip
            assert said in words, said

    def test_data_sets_alone_are_compared_and_not_stored(self, command: Command, tmp_path: Path) -> None:
        paths = [
            data_set(tmp_path / f"{name}.json", 80, mean, mean)
            for name, mean in (("a", 6), ("b", 12), ("c", 6))
        ]
        ended = command("compare", *paths)
        assert ended.code == 0, ended.err
        assert "stored" not in ended.out
        found = compared(*paths)
        longer, same = metric(found, "teacher_words").differences
        assert longer.low > 4
        assert longer.p_holm < 0.05
        assert same.low < 0 < same.high
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "c.json"]

    def test_from_python(self, own: Path, tmp_path: Path) -> None:
        real = data_set(tmp_path / "real.json", 60, 9)
        found = edgen.compare(real, edgen.open(own), arms=["real.json", "run.json"])
        assert found.file is not None
        assert found.file.parent == own / "comparisons"
        assert found.metrics["turns"].arms["real.json"].value == 6
        alone = edgen.compare(real, data_set(tmp_path / "more.json", 60, 9, 2))
        assert alone.file is None
        assert "real.json" in str(alone)

    def test_roles_of_other_names(self, command: Command, run: Path, tmp_path: Path) -> None:
        """Records with any roles are in edgen's own layout."""
        rng = random.Random(1)
        path = tmp_path / "other.jsonl"
        records = [conversation(rng, 9, ("Tutor", "student")) for _ in range(40)]
        lines = [{"scenario": {"topic": "x"}, "conversation": one["conversation"]} for one in records]
        path.write_text("\n".join(map(json.dumps, lines)))
        arms = ["other.jsonl", "run.json"]
        found = compared(path, run, names=arms)
        assert metric(found, "student_words").arms["other.jsonl"].value == pytest.approx(9, abs=0.5)
        told = {one.why for one in found.not_compared if "words a turn, teacher" in one.what}
        assert told == {"no Teacher speaks in it"}
        words = "Tutor of other.jsonl and Teacher of run.json are not compared; if they are the same, --role Teacher=Tutor"
        assert any(caveat.startswith(words) for caveat in found.caveats)
        found = compared(path, run, names=arms, roles={"Tutor": "Teacher"})
        assert metric(found, "teacher_words").arms["other.jsonl"].value == pytest.approx(9, abs=0.5)
        ended = command(
            "compare", path, run, "--role", "Teacher=Tutor", "--json", "-o", tmp_path / "found.json"
        )
        assert "teacher_words" in {one["name"] for one in json.loads(ended.out)["metrics"]}
        for wrong in ("Teacher", "=Tutor", "Teacher="):
            assert "expected ROLE=WORD" in command("compare", path, run, "--role", wrong).err

    def test_a_folder_is_one(self, own: Path, tmp_path: Path) -> None:
        folder = tmp_path / "released"
        folder.mkdir()
        for number in (1, 2):
            data_set(folder / f"conversations_train{number}.json", 20, 9, number)
        (facts,) = [
            arm.data for arm in compared(folder, own / "arms" / "json").arms if arm.label == "released"
        ]
        assert facts.records == 40  # type: ignore[union-attr]

    @pytest.mark.only_long
    def test_equal_draws_differ_in_one_of_twenty(self, tmp_path: Path) -> None:
        """For two samples of one source, p is below 0.05 in about one of twenty cases."""
        below = 0
        for seed in range(14):
            paths = [
                data_set(tmp_path / f"{name}{seed}.json", 25, 8, 2 * seed + place)
                for place, name in enumerate("ab")
            ]
            (difference,) = metric(compared(*paths), "teacher_words").differences
            below += difference.p < 0.05
        assert below <= 3


def sample(*turns: Turn) -> Sample:
    return Sample(id="", source="", split=None, scenario=Scenario(0, {}), turns=turns, entries=len(turns))


class TestMemory:
    def test_groups_count_every_record(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = [data_set(tmp_path / f"{name}.json", 300, mean, mean) for name, mean in (("a", 6), ("b", 7))]
        whole = compared(*paths)
        monkeypatch.setattr(data_arms, "GROUPS", 40)
        grouped = compared(*paths)
        for name in ("turns", "teacher_words", "student_words", "teacher_share"):
            one, other = metric(whole, name), metric(grouped, name)
            assert one.arms["a.json"].value == other.arms["a.json"].value
            assert one.differences[0].value == other.differences[0].value
        wide, narrow = (metric(found, "teacher_words").differences[0] for found in (grouped, whole))
        assert 0.6 < (wide.high - wide.low) / (narrow.high - narrow.low) < 1.6
        assert grouped.arms[0].data.groups == 40  # type: ignore[union-attr]
        assert any("assigned to 40 groups at random" in caveat for caveat in grouped.caveats)

    def test_the_conversations_that_are_kept_are_any(self) -> None:
        kept = data_arms._KeptConversations("seed")
        sums = [0] * 10
        for _ in range(400):
            for number in range(10):
                kept.offer(0, sample(Turn("A", str(number))))
            sums[int(kept.read_turns(0)[0].text)] += 1
            kept._seen.clear()
        assert min(sums) > 15

    def test_roles_without_number_are_others(self, tmp_path: Path) -> None:
        path = tmp_path / "chat.jsonl"
        turns = [[{"role": f"user{n * 3 + k}", "text": "hello there"} for k in range(3)] for n in range(200)]
        path.write_text("\n".join(json.dumps({"scenario": {}, "conversation": one}) for one in turns))
        other = data_set(tmp_path / "real.json", 60, 9)
        found = compared(path, other)
        assert metric(found, "turns").arms["chat.jsonl"].value == 3
        assert sum(one.what.count("words a turn") for one in found.not_compared) <= data_arms.MOST_ROLES + 1


class TestMistakes:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("", "it is empty"),
            ("[]", "it holds no records"),
            ('{"a": 1}', "none of the layouts that edgen reads: "),
            ("Hello", "none of the layouts that edgen reads: "),
            ('[{"background_info": {}}]', "no record of Education Dialogue in it can be read"),
            ('[{"background_info": {"topic": "x"}}', "line 1 ends in the middle of a value"),
            ("[\x00]", "line 1, column 2"),
        ],
    )
    def test_what_is_no_data_set(
        self, command: Command, run: Path, tmp_path: Path, content: str, said: str
    ) -> None:
        path = tmp_path / "data.json"
        path.write_text(content)
        for paths in ((path, run), (run, path)):
            ended = command("compare", *paths)
            assert (ended.code, ended.out) == (2, "")
            assert said in ended.err
            assert str(path) in ended.err
            assert len(ended.err.strip().splitlines()) == 1

    def test_a_wrong_encoding(self, command: Command, run: Path, tmp_path: Path) -> None:
        path = data_set(tmp_path / "real.json", 3, 9)
        path.write_bytes(path.read_text().encode("utf-16"))
        assert "byte 0 (line 1) is not UTF-8" in command("compare", path, run).err

    def test_names(self, command: Command, run: Path, tmp_path: Path) -> None:
        real = data_set(tmp_path / "real.json", 30, 9)
        for arguments, said in (
            ((real,), "this is one data set; name a run, or another data set"),
            ((real, real), "this data set is named twice"),
            ((real, tmp_path / "nowhere"), "there is no run here"),
            ((real, run, "--arms", "real.json"), "name at least two"),
            ((real, run, "--arms", "real.jsn", "run.json"), "did you mean 'real.json'?"),
        ):
            ended = command("compare", *arguments)
            assert ended.code == 2
            assert said in ended.err, ended.err

    def test_what_cannot_be_read_is_counted(self, run: Path, tmp_path: Path) -> None:
        path = data_set(tmp_path / "real.json", 30, 9)
        listed = json.loads(path.read_text())
        path.write_text(
            json.dumps(
                [*listed, {"background_info": {}}, 5, {**listed[0], "id": "a"}, {**listed[1], "id": "a"}]
            )
        )
        found = compared(path, run)
        data = found.arms[0].data
        assert data.unread == {"background_info without its five texts": 1, "no object": 1}  # type: ignore[union-attr]
        words = " ".join(found.caveats)
        assert (
            "real.json: records that cannot be read are left out: 1 × background_info without its five texts"
            in words
        )
        assert "1 record has the id of an earlier record" in words
