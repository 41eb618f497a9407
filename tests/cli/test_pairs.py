"""`edgen pairs` as its user meets it: labels with evidence, mistakes as sentences, nothing asked twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgen.runreader import RunReader
from tests.cli.command import Command, Ended


def job(folder: Path, **changes: Any) -> Path:
    values: dict[str, Any] = {
        "name": "t", "seed": 3, "conversations": 12, "replicates": 3, "space": "education_dialogue",
        "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(
        json.dumps({key: value for key, value in (values | changes).items() if value is not None})
    )
    return path


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Path:
    assert command("generate", job(tmp_path), "-o", tmp_path / "run").code == 0
    return tmp_path / "run"


def pairs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "pairs" / "pairs.jsonl").read_text().splitlines()]


def facts(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


class TestOracle:
    def test_every_pair_is_judged_in_both_orders_and_all_of_it_is_kept(
        self, command: Command, run: Path
    ) -> None:
        made = facts(command("pairs", run, "--by", "oracle", "--set", "pairs.votes=2", "--json"))
        lines = pairs(run)
        assert made["planned"] == made["judged"] == 36 == len(lines)
        assert made["calls"]["made"] == 36 * 4
        assert sum(made["pairs"].values()) + sum(made["left_out"].values()) == 36
        for line in lines:
            (signal,) = line["signals"]["oracle"]
            assert [(v["order"], v["vote"]) for v in signal["verdicts"]] == [
                ("ab", 0),
                ("ba", 0),
                ("ab", 1),
                ("ba", 1),
            ]
            assert (line["label"] is None) is (line["left_out"] is not None)
            assert line["provenance"]["simulated"] is True

    def test_the_judge_sees_transcripts_without_marker_and_scenario(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        prompt = tmp_path / "mine.j2"
        prompt.write_text(
            "Interaction 1:\n{{ conversation_1 }}\nInteraction 2:\n{{ conversation_2 }}\n{{ topic }}? Output 1 or 2."
        )
        assert command("pairs", run, "--by", "oracle", "--prompt", prompt).code == 0
        prompt.write_text("{{ conversation }}")
        ended = command("pairs", run, "--by", "oracle", "--prompt", prompt)
        assert ended.code == 2
        assert "there is no variable 'conversation'" in ended.err

    def test_started_again_it_asks_nothing(self, command: Command, run: Path) -> None:
        command("pairs", run, "--by", "oracle")
        first = (run / "pairs" / "pairs.jsonl").read_bytes()
        again = facts(command("pairs", run, "--by", "oracle", "--json"))
        assert again["calls"]["made"] == 72
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == first
        more = facts(command("pairs", run, "--by", "oracle", "--set", "pairs.votes=2", "--json"))
        assert (more["calls"]["made"], more["calls"]["replayed"]) == (144, 72)

    def test_another_judge_stands_beside_the_first(self, command: Command, run: Path, tmp_path: Path) -> None:
        command("pairs", run, "--by", "oracle")
        other = job(
            tmp_path, backends={"default": {"type": "simulator"}, "strict": {"type": "simulator"}} | {}
        )
        other.write_text(
            json.dumps(
                json.loads(other.read_text())
                | {"backends": {"default": {"type": "simulator", "faults": "judge_first=1"}}}
            )
        )
        ended = command("pairs", run, "--by", "oracle", "--judge", f"{other}:default", "--json")
        assert ended.code == 3
        for line in pairs(run):
            biased, fair = sorted(line["signals"]["oracle"], key=lambda s: not s["tie"])
            assert biased["tie"]
            assert biased["p"] == 0.5
            assert not fair["tie"]
        facts(command("pairs", run, "--by", "oracle", "--json"))

    def test_no_scenario_is_on_both_sides_and_the_sides_are_the_shards(
        self, command: Command, run: Path
    ) -> None:
        command("pairs", run, "--by", "oracle")
        with RunReader(run) as reader:
            shards = {lesson.candidate.id: lesson.split for lesson in reader.lessons()}
        eval_ids = {r["id"] for r in json.loads((run / "shards" / "conversations_eval.json").read_text())}
        assert {identity for identity, side in shards.items() if side == "test"} == eval_ids
        for line in pairs(run):
            assert shards[line["a"]["id"]] == shards[line["b"]["id"]] == line["split"]

    def test_min_margin_and_max_per_scenario_leave_out_and_say_so(self, command: Command, run: Path) -> None:
        made = facts(command("pairs", run, "--by", "oracle", "--max-per-scenario", "1", "--json"))
        assert sum(made["pairs"].values()) <= 12
        assert made["left_out"]["surplus"] > 0
        per = [line["scenario"] for line in pairs(run) if line["label"]]
        assert len(per) == len(set(per))

    def test_responses_are_judged_where_the_teacher_parts(self, command: Command, tmp_path: Path) -> None:
        changes = {"protocol": "selfplay", "prompt": None, "branch": {"at": 3}, "conversations": 6}
        assert command("generate", job(tmp_path, **changes), "-o", tmp_path / "run").code == 0
        made = facts(
            command("pairs", tmp_path / "run", "--by", "oracle", "--set", "pairs.compare=response", "--json")
        )
        assert made["judged"] > 0
        assert all(
            line["prefix_turns"] == 4 and line["differs_at"] == "Teacher"
            for line in pairs(tmp_path / "run")
            if line["left_out"] != "identical"
        )

    def test_a_tournament_judges_as_many_as_were_asked_for(self, command: Command, tmp_path: Path) -> None:
        assert (
            command("generate", job(tmp_path, replicates=6, conversations=5), "-o", tmp_path / "run").code
            == 0
        )
        made = facts(
            command("pairs", tmp_path / "run", "--by", "oracle", "--set", "pairs.matches=7", "--json")
        )
        assert made["planned"] == 35
        assert all(line["a"]["strength"] for line in pairs(tmp_path / "run"))


class TestJudgesThatAreNone:
    @pytest.mark.parametrize(
        ("faults", "reason"),
        [
            ("judge_prose=1", "name neither side"),
            ("refusal=1", "name neither side"),
            ("empty=1", "name neither side"),
        ],
    )
    def test_a_judge_that_never_answers_stops_it_before_everything_is_paid(
        self, command: Command, run: Path, faults: str, reason: str
    ) -> None:
        ended = command(
            "pairs", run, "--by", "oracle", "--set", f"backends.judge={{type: simulator, faults: '{faults}'}}"
        )
        assert ended.code == 3
        assert reason in ended.err
        assert not (run / "pairs" / "pairs.jsonl").exists()

    def test_a_judge_that_always_says_1_labels_nothing(self, command: Command, run: Path) -> None:
        ended = command(
            "pairs",
            run,
            "--by",
            "oracle",
            "--set",
            "backends.judge={type: simulator, faults: 'judge_first=1'}",
            "--json",
        )
        assert ended.code == 3
        assert "No pair could be labelled by oracle: 36 (tie 36)" in ended.err
        assert json.loads(ended.out)["left_out"] == {"tie": 36}

    def test_some_unread_verdicts_abstain_and_are_no_label(self, command: Command, run: Path) -> None:
        made = facts(
            command(
                "pairs",
                run,
                "--by",
                "oracle",
                "--set",
                "asks=1",
                "--set",
                "backends.judge={type: simulator, faults: 'judge_prose=0.3'}",
                "--json",
            )
        )
        assert made["rejected"]["unread"] == made["left_out"]["abstained"] > 5
        for line in pairs(run):
            unread = [v for v in line["signals"]["oracle"][0]["verdicts"] if v["choice"] is None]
            if unread:
                assert line["label"] is None
                assert unread[0]["text"]

    def test_a_role_that_is_not_there_is_named(self, command: Command, run: Path) -> None:
        ended = command("pairs", run, "--by", "oracle", "--judge", "umpire")
        assert ended.code == 2
        assert "no backend 'umpire' is in the job of this run (there: default)" in ended.err


class TestOtherSources:
    def test_probabilities_label_without_a_call(self, command: Command, run: Path) -> None:
        made = facts(command("pairs", run, "--by", "probability", "--min-margin", "0.2", "--json"))
        assert "calls" not in made
        for line in pairs(run):
            signal = line["signals"]["probability"]
            if line["label"]:
                chosen = "a" if signal["a"] > signal["b"] else "b"
                assert line["label"]["chosen"] == chosen
                assert abs(signal["a"] - signal["b"]) >= 0.2

    def test_votes_label_and_stand_beside_the_oracle(self, command: Command, run: Path) -> None:
        command("pairs", run, "--by", "oracle")
        votes = run / "votes.jsonl"
        votes.write_text('{"a": "t-000000-r1", "b": "t-000000-r0", "choice": "a", "rater": "r1"}\n')
        made = facts(command("pairs", run, "--by", "human", "--json"))
        assert sum(made["pairs"].values()) == 1
        (line,) = [line for line in pairs(run) if line["label"]]
        assert (line["a"]["id"], line["label"]["chosen"]) == ("t-000000-r0", "b")
        assert line["signals"]["oracle"]

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("{oops", "line 1"),
            ('{"a": "t-000000-r0", "b": "nobody", "choice": "a", "rater": "r"}', "nobody"),
            ('{"a": "t-000000-r0", "b": "t-000001-r0", "choice": "a", "rater": "r"}', "line 1"),
            ("", "there is no vote in this file"),
        ],
    )
    def test_votes_that_are_none_are_sentences(
        self, command: Command, run: Path, text: str, complaint: str
    ) -> None:
        votes = run.parent / "votes.jsonl"
        votes.write_text(text)
        ended = command("pairs", run, "--by", "human", "--human", votes)
        assert ended.code == 2
        assert complaint in ended.err
        assert not (run / "pairs").exists()

    def test_no_votes_file_says_what_one_looks_like(self, command: Command, run: Path) -> None:
        ended = command("pairs", run, "--by", "human")
        assert ended.code == 2
        assert '"choice"' in ended.err


class TestRunsThatCannotBePaired:
    def test_one_conversation_of_each_scenario(self, command: Command, tmp_path: Path) -> None:
        command("generate", job(tmp_path, replicates=1), "-o", tmp_path / "run")
        ended = command("pairs", tmp_path / "run", "--by", "oracle")
        assert ended.code == 2
        assert "a pair needs two" in ended.err
        assert "replicates: 4" in ended.err
        assert not (tmp_path / "run" / "pairs").exists()

    def test_nothing_accepted(self, command: Command, tmp_path: Path) -> None:
        changes = {"backends": {"default": {"type": "simulator", "faults": "refusal=1"}}}
        command("generate", job(tmp_path, **changes), "-o", tmp_path / "run")
        ended = command("pairs", tmp_path / "run", "--by", "oracle")
        assert ended.code == 2
        assert "no conversation was accepted" in ended.err

    def test_no_run(self, command: Command, tmp_path: Path) -> None:
        ended = command("pairs", tmp_path / "nowhere", "--by", "oracle")
        assert ended.code == 2
        assert "there is no run here" in ended.err

    def test_nothing_asked_for(self, command: Command, run: Path) -> None:
        ended = command("pairs", run)
        assert ended.code == 2
        assert "--by oracle" in ended.err

    def test_a_report_before_there_are_pairs(self, command: Command, run: Path) -> None:
        ended = command("pairs", run, "--report")
        assert ended.code == 2
        assert "edgen pairs" in ended.err

    def test_pairs_of_a_run_that_was_made_anew_are_not_mixed_up(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        judge = {"judge": {"type": "simulator"}}
        command("pairs", run, "--by", "oracle")
        changed = job(tmp_path, backends={"default": {"type": "simulator", "seed": 5}, **judge})
        command("generate", changed, "-o", run)
        made = facts(command("pairs", run, "--by", "oracle", "--json"))
        assert made["judged"] == 36
        assert made["calls"]["made"] == 144, "other conversations are other questions"


def test_the_report_in_words_and_as_json(command: Command, run: Path) -> None:
    command("pairs", run, "--by", "oracle")
    report = facts(command("pairs", run, "--report", "--json"))
    assert report["pairs"] == 36
    text = command("pairs", run, "--report").out
    assert "position" in text.lower()
    assert "length" in text.lower()


def test_arms_are_candidates_of_one_scenario(command: Command, tmp_path: Path) -> None:
    arms = {
        "plain": {},
        "json": {"prompt": "education_dialogue_json"},
        "other": {"backends": {"default": {"seed": 9}}},
    }
    path = job(tmp_path, replicates=1, conversations=10, arms=arms)
    assert command("generate", path, "-o", tmp_path / "run").code == 0
    made = facts(command("pairs", tmp_path / "run", "--by", "oracle", "--json"))
    assert made["planned"] == 30
    line = pairs(tmp_path / "run")[0]
    assert (line["origin"], line["a"]["arm"], line["b"]["arm"]) == ("arms", "plain", "json")
    assert line["a"]["id"] == "t.plain-000000-r0"
    status = facts(command("status", tmp_path / "run", "--json"))
    assert (status["state"], status["accepted"], set(status["arms"])) == ("complete", 30, set(arms))
