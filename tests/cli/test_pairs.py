"""`edgen pairs` on the command line: labels with evidence, mistakes in one message, no request sent twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from edgen.store.run_reader import RunReader
from tests.cli.command import Command, Ended, call


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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a run that no test changes."""
    folder = tmp_path_factory.mktemp("pairs")
    assert call("generate", job(folder), "-o", folder / "run") == 0
    return folder / "run"


@pytest.fixture(scope="module")
def made_and_judged(made: Path) -> Path:
    """Return the run with a judge's verdicts, and the pairs that follow from them."""
    folder = Path(shutil.copytree(made, made.with_name("judged")))
    assert call("pairs", folder, "--by", "oracle") == 0
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def judged(made_and_judged: Path, run: Path) -> None:
    """Judge the run."""
    shutil.copytree(made_and_judged / "pairs", run / "pairs")


def pairs(folder: Path, name: str = "") -> list[dict[str, Any]]:
    """Return the pairs of the default set, or of a named one."""
    lines = (folder / "pairs" / name / "pairs.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


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
        noted = json.loads((run / "pairs" / "judged" / f"{made['judge']}.json").read_text())
        assert (noted["backend"]["type"], noted["compare"]) == ("simulator", "response")
        assert "{{ guarded_1 }}" in noted["template"]["text"]
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

    def test_a_template_that_shows_nothing_to_judge_is_refused(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        prompt = tmp_path / "mine.j2"
        prompt.write_text("Is {{ conversation_1 }} better? Output 1 or 2.")
        ended = command("pairs", run, "--by", "oracle", "--prompt", prompt)
        assert ended.code == 2
        assert "conversation_2 is never used" in ended.err
        closing = {"protocol": "selfplay", "prompt": None, "selfplay": {"closing": "judge"}}
        path = job(tmp_path, prompts={"closing": "closing_student"}, **closing)
        ended = command("generate", path, "-o", tmp_path / "other")
        assert ended.code == 2
        assert "is never used (closing: judge)" in ended.err
        assert not (tmp_path / "other").exists()

    def test_an_own_template_for_the_other_way_of_comparing_names_the_shipped_one(
        self, command: Command, tmp_path: Path
    ) -> None:
        changes = {"protocol": "selfplay", "prompt": None, "prompts": {"oracle": "oracle_conversation"}}
        assert (
            command("generate", job(tmp_path, conversations=3, **changes), "-o", tmp_path / "run").code == 0
        )
        responses = ("pairs", tmp_path / "run", "--by", "oracle", "--set", "pairs.compare=response")
        ended = command(*responses)
        assert ended.code == 2
        assert "--prompt oracle_response" in ended.err
        assert command(*responses, "--prompt", "oracle_response").code == 0

    @pytest.mark.usefixtures("judged")
    def test_started_again_it_asks_nothing(self, command: Command, run: Path) -> None:
        first = (run / "pairs" / "pairs.jsonl").read_bytes()
        again = facts(command("pairs", run, "--by", "oracle", "--json"))
        assert again["calls"]["made"] == 72
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == first
        more = facts(command("pairs", run, "--by", "oracle", "--set", "pairs.votes=2", "--json"))
        assert (more["calls"]["made"], more["calls"]["replayed"]) == (144, 72)

    @pytest.mark.usefixtures("judged")
    def test_another_judge_stands_beside_the_first(self, command: Command, run: Path, tmp_path: Path) -> None:
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

    @pytest.mark.usefixtures("judged")
    def test_no_scenario_is_on_both_sides_and_the_sides_are_the_shards(
        self, command: Command, run: Path
    ) -> None:
        with RunReader(run) as reader:
            shards = {one.candidate.id: one.split for one in reader.conversations()}
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
        [("judge_prose=1", "unread"), ("refusal=1", "unread"), ("empty=1", "unread")],
    )
    def test_a_judge_that_never_answers_stops_it_before_everything_is_paid(
        self, command: Command, run: Path, faults: str, reason: str
    ) -> None:
        ended = command(
            "pairs", run, "--by", "oracle", "--set", f"backends.judge={{type: simulator, faults: '{faults}'}}"
        )
        assert ended.code == 3
        assert reason in ended.err
        assert "so the run stopped rather than pay for more" in ended.err
        assert "another judge with --backend" in ended.err
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
        assert "no backend 'umpire' is in the job of this run (known: default)" in ended.err


@pytest.mark.usefixtures("judged")
def test_two_sets_are_compared_by_the_words_that_were_judged(command: Command, run: Path) -> None:
    """A judge of single responses saw no later turns."""
    (first, _) = facts(command("pairs", run, "--compare", "default", "default", "--json"))["sets"]
    ahead = []
    with RunReader(run) as reader:
        for one in reader.compared():
            if (label := one.pair.label) is not None:
                assert label.compare == "response"
                a, b = (len(side.turns[one.pair.prefix_turns].text.split()) for side in (one.a, one.b))
                ahead += [(a > b) == (label.chosen == "a")] if a != b else []
    assert first["longer"]["value"] == pytest.approx(sum(ahead) / len(ahead), abs=1e-6)
    assert first["longer"]["n"] == len(ahead)


def test_a_card_names_template_and_settings_of_the_labellers(
    command: Command, run: Path, tmp_path: Path
) -> None:
    """Options can replace the job's judge and templates, so the job's lines do not name them."""
    strict = tmp_path / "strict.j2"
    strict.write_text("Be strict.\n{{ guarded_1 }}\n{{ guarded_2 }}\nAnswer 1 or 2.\n")
    other = "backends.umpire={type: simulator, seed: 4, model: umpire-1, temperature: 0.5}"
    options = ("--backend", "umpire", "--set", other, "--prompt", strict, "--credit", "whole")
    assert command("pairs", run, "--signal", "oracle", *options).code == 0
    (notes,) = [json.loads(path.read_bytes()) for path in (run / "pairs" / "judged").glob("*.json")]
    assert command("annotate", run, "--labels", "quality", "--unit", "conversation").code == 0
    for name in ("mtpo", "csv"):
        assert command("export", run, "--to", name, "-o", tmp_path / name).code == 0
    cards = {name: (tmp_path / name / "README.md").read_text() for name in ("mtpo", "csv")}
    of_judge = f"- judge.{notes['judge']}"
    assert f"{of_judge}.template: `strict`\n" in cards["mtpo"]
    assert f"{of_judge}.template_sha256: `{notes['template']['sha256']}`\n" in cards["mtpo"]
    assert f"{of_judge}.backend.model: `umpire-1`\n" in cards["mtpo"]
    assert "- layer.quality.default.template: `label_turns`\n" in cards["csv"]
    assert ("- layer." in cards["mtpo"], "- judge." in cards["csv"]) == (False, False)


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

    @pytest.mark.usefixtures("judged")
    def test_votes_are_kept_with_the_run_and_stand_beside_the_oracle(
        self, command: Command, run: Path
    ) -> None:
        votes = run.parent / "votes.jsonl"
        votes.write_text('{"a": "t-000000-r1", "b": "t-000000-r0", "choice": "a", "rater": "r1"}\n')
        by_oracle = pairs(run)
        made = facts(command("pairs", run, "--by", "human", "--human", votes, "--json"))
        assert sum(made["pairs"].values()) == 1
        (line,) = [line for line in pairs(run, "human") if line["label"]]
        assert (line["a"]["id"], line["label"]["chosen"]) == ("t-000000-r0", "b")
        assert line["signals"]["oracle"]
        assert pairs(run) == by_oracle  # one vote does not replace the judge's label
        votes.unlink()
        command("pairs", run, "--by", "oracle")
        assert [line["signals"]["human"]["p"] for line in pairs(run) if line["signals"]["human"]] == [0.0]
        more = run.parent / "more.jsonl"
        more.write_text('{"a": "t-000000-r1", "b": "t-000000-r0", "choice": "tie", "rater": "r2"}\n')
        facts(command("pairs", run, "--by", "human", "--human", more, "--json"))
        signals = [line["signals"]["human"] for line in pairs(run, "human")]
        assert [signal["p"] for signal in signals if signal] == [0.25]

    def test_votes_on_other_texts_count_for_nothing(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        votes = run.parent / "votes.jsonl"
        votes.write_text('{"a": "t-000000-r1", "b": "t-000000-r0", "choice": "a", "rater": "r1"}\n')
        facts(command("pairs", run, "--by", "human", "--human", votes, "--json"))
        command("generate", job(tmp_path, backends={"default": {"type": "simulator", "seed": 5}}), "-o", run)
        ended = command("pairs", run, "--by", "human")
        assert ended.code == 3
        assert "No pair could be labelled by human. No vote is about texts that the run has now." in ended.err

    def test_votes_that_replace_earlier_ones_are_noted(self, command: Command, run: Path) -> None:
        """Two raters' files with one name, or one rater who thought again."""
        votes = run.parent / "votes.jsonl"
        line = '{"a": "t-000000-r1", "b": "t-000000-r0", "choice": "%s", "rater": "%s"}\n'
        votes.write_text(line % ("a", "r1"))
        first, again = (command("pairs", run, "--by", "human", "--human", votes) for _ in range(2))
        assert "replaced" not in first.err + again.err
        votes.write_text(line % ("b", " r1 "))
        ended = command("pairs", run, "--by", "human", "--human", votes)
        assert "1 vote replaced earlier votes by r1." in ended.err
        votes.write_text(line % ("a", "r2"))
        ended = command("pairs", run, "--by", "human", "--human", votes)
        assert ended.code == 3
        assert "(tie 1). The votes are as many for one side as for the other" in ended.err

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("{oops", "line 1"),
            ('{"a": "t-000000-r0", "b": "nobody", "choice": "a", "rater": "r"}', "nobody"),
            ('{"a": "t-000000-r0", "b": "t-000000-r7", "choice": "a", "rater": "r"}', "t-000000-r7"),
            ('{"a": "t-000000-r0", "b": "t-000001-r0", "choice": "a", "rater": "r"}', "line 1"),
            ("", "there are no votes"),
            ("\xff", "is not UTF-8; save the file as UTF-8"),
            ("\xff\xfep\0a\0i\0r\0", "is not UTF-8; save the file as UTF-8"),  # UTF-16
            ("u-0123,hello,,,1\nmore\n", "its first line names no column pair, choice"),
            ('[{"a": "t-000000-r0"}]', "each line is a JSON object"),
            ("pair,choice,Choice\nu-0123,1,2\n", "names the column choice more than once"),
        ],
    )
    def test_votes_that_are_none_are_sentences(
        self, command: Command, run: Path, text: str, complaint: str
    ) -> None:
        votes = run.parent / "votes.jsonl"
        votes.write_bytes(text.encode("latin-1"))
        ended = command("pairs", run, "--by", "human", "--human", votes)
        assert ended.code == 2
        assert complaint in ended.err
        assert not (run / "pairs").exists()

    def test_no_votes_say_what_one_looks_like(self, command: Command, run: Path) -> None:
        facts(command("pairs", run, "--by", "probability", "--json"))
        ended = command("pairs", run, "--by", "human")
        assert ended.code == 2
        assert '"choice"' in ended.err
        assert "people's are the set human" not in ended.err  # there is no such set yet


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
        assert "--signal oracle" in ended.err

    def test_a_report_before_there_are_pairs(self, command: Command, run: Path) -> None:
        ended = command("pairs", run, "--report")
        assert ended.code == 2
        assert "edgen pairs" in ended.err

    @pytest.mark.usefixtures("judged")
    def test_pairs_of_a_run_that_was_made_anew_are_not_mixed_up(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        judge = {"judge": {"type": "simulator"}}
        changed = job(tmp_path, backends={"default": {"type": "simulator", "seed": 5}, **judge})
        command("generate", changed, "-o", run)
        made = facts(command("pairs", run, "--by", "oracle", "--json"))
        assert made["judged"] == 36
        assert made["calls"]["made"] == 144, "other conversations are other questions"


class TestPairsHoldWhatWasJudged:
    """Labels belong to judged texts only, and a scenario is on one side of the split."""

    EXPORTS = ("trl-dpo", "trl-conversation", "mtpo", "trl-kto")

    @pytest.mark.parametrize(
        "changes", [{"seed": 99}, {"backends": {"default": {"type": "simulator", "seed": 5}}}]
    )
    @pytest.mark.usefixtures("judged")
    def test_a_run_that_was_made_anew(
        self, command: Command, run: Path, tmp_path: Path, changes: dict[str, Any]
    ) -> None:
        old = (run / "pairs" / "pairs.jsonl").read_bytes()
        assert command("generate", job(tmp_path, **changes), "-o", run).code == 0
        for name in self.EXPORTS:
            ended = command("export", run, "--to", name, "-o", tmp_path / name)
            assert ended.code == 2
            assert "edgen pairs" in ended.err
        (run / "pairs" / "pairs.jsonl").write_bytes(old)
        for arguments in (("pairs", run, "--report"), ("export", run, "--to", "mtpo", "-o", tmp_path / "x")):
            ended = command(*arguments)
            assert ended.code == 2
            assert "is not what it was when the pairs were made" in ended.err

    def test_a_run_that_has_grown(self, command: Command, tmp_path: Path) -> None:
        half, run = {"split": {"test": 0.5}}, tmp_path / "run"
        command("generate", job(tmp_path, **half), "-o", run)
        command("pairs", run, "--by", "oracle")
        refused = 0
        for count in (13, 17, 23, 31, 40):
            assert command("generate", job(tmp_path, conversations=count, **half), "-o", run).code == 0
            ended = command("export", run, "--to", "mtpo", "-o", tmp_path / f"x{count}")
            if ended.code == 0:
                rows = [
                    json.loads(x)
                    for path in (tmp_path / f"x{count}").glob("*.jsonl")
                    for x in path.read_text().splitlines()
                ]
                assert rows
            else:
                refused += 1
                assert "has grown since" in ended.err
        assert refused

    @pytest.mark.usefixtures("judged")
    def test_fewer_replicates(self, command: Command, run: Path, tmp_path: Path) -> None:
        assert command("generate", job(tmp_path, replicates=2), "-o", run, "--yes").code == 0
        ended = command("export", run, "--to", "mtpo", "-o", tmp_path / "x")
        assert ended.code == 2
        assert "edgen pairs" in ended.err

    def test_a_hand_in_the_runs_job(self, command: Command, run: Path) -> None:
        text = (run / "job.yaml").read_text()
        (run / "job.yaml").write_text(text.replace("seed: 3", "seed: 4"))
        ended = command("pairs", run, "--by", "oracle")
        assert (ended.code, "this input of the run was damaged or edited" in " ".join(ended.err.split())) == (
            2,
            True,
        )
        (run / "digests.json").unlink()
        ended = command("pairs", run, "--by", "oracle")
        assert (ended.code, "job.yaml was edited" in ended.err) == (2, True)

    @pytest.mark.parametrize("line", ["{}", "[" * 100_000, '{"id": 3}', "nonsense"])
    @pytest.mark.usefixtures("judged")
    def test_a_line_that_is_no_pair(self, command: Command, run: Path, tmp_path: Path, line: str) -> None:
        with (run / "pairs" / "pairs.jsonl").open("a") as file:
            file.write(line + "\n")
        ended = command("export", run, "--to", "mtpo", "-o", tmp_path / "x")
        assert ended.code == 2
        assert "line 37" in ended.err
        assert not (tmp_path / "x").exists()

    @pytest.mark.usefixtures("judged")
    def test_an_empty_ledger_of_another_judge_is_in_nobodys_way(self, command: Command, run: Path) -> None:
        (run / "pairs" / "judged" / "aaaa.db").touch()
        assert command("pairs", run, "--by", "oracle").code == 0

    def test_arms_may_have_any_number_of_replicates(self, command: Command, tmp_path: Path) -> None:
        arms = {"plain": {}, "other": {"backends": {"default": {"type": "simulator", "seed": 5}}}}
        path = job(tmp_path, replicates=70, conversations=1, arms=arms)
        assert command("generate", path, "-o", tmp_path / "run").code == 0
        ended = command("pairs", tmp_path / "run", "--by", "oracle", "--set", "pairs.matches=150")
        assert ended.code == 0, ended.err
        with RunReader(tmp_path / "run") as reader:
            found = {(side.arm, side.replicate) for pair in reader.pairs() for side in (pair.a, pair.b)}
            assert found == {(arm, replicate) for arm in arms for replicate in range(70)}

    @pytest.mark.only_long
    def test_any_number_of_candidates_can_be_paired(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, replicates=1500, conversations=1)  # the limit was once 1,448
        assert command("generate", path, "-o", tmp_path / "run").code == 0
        ended = command("pairs", tmp_path / "run", "--by", "oracle", "--set", "pairs.matches=5", "--json")
        assert ended.code == 0, ended.err
        assert 0 < json.loads(ended.out)["judged"] <= 5


class TestOptions:
    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (("--by", "probability", "--judge", "x"), "--backend goes with --signal oracle"),
            (("--by", "human", "--prompt", "x"), "--prompt goes with --signal oracle"),
            (("--by", "oracle", "--set", "seed=9"), "does not apply to pairs"),
            (("--by", "oracle", "--set", "split.test=0.5"), "does not apply to pairs"),
            (("--by", "oracle", "--min-margin", "nan"), "a number from 0 to 1"),
            (("--by", "oracle", "--judge", "nowhere.yaml"), "nowhere.yaml"),
        ],
    )
    def test_what_does_not_go_together(
        self, command: Command, run: Path, arguments: tuple[str, ...], complaint: str
    ) -> None:
        ended = command("pairs", run, *arguments)
        assert ended.code == 2
        assert complaint in ended.err

    def test_a_report_hides_no_exit_code(self, command: Command, run: Path) -> None:
        always_1 = "backends.judge={type: simulator, faults: 'judge_first=1'}"
        ended = command("pairs", run, "--by", "oracle", "--report", "--json", "--set", always_1)
        assert ended.code == 3
        shown = json.loads(ended.out)
        assert shown["left_out"] == {"tie": 36}
        assert shown["report"]["judges"][0]["position"]["flips"]["value"] == 1.0

    def test_a_judge_that_is_refused_prints_how_far_it_came(self, command: Command, run: Path) -> None:
        refused = "backends.judge={type: simulator, faults: '401=1'}"
        ended = command("pairs", run, "--by", "oracle", "--json", "--set", refused)
        assert ended.code == 5
        shown = json.loads(ended.out)
        assert (shown["planned"], shown["judged"], shown["pending"]) == (36, 0, 36)

    def test_an_unfinished_run_is_remarked_on(self, command: Command, tmp_path: Path) -> None:
        price = {"prompt": 1.0, "completion": 1.0}
        backends = {"default": {"type": "simulator", "price": price, "max_tokens": 1500}}
        path = job(tmp_path, backends=backends, conversations=40, limits={"max_cost": 0.02, "in_flight": 2})
        assert command("generate", path, "-o", tmp_path / "run").code == 4
        ended = command("pairs", tmp_path / "run", "--by", "probability")
        assert "are pending" in ended.err


@pytest.mark.usefixtures("judged")
def test_the_report_in_words_and_as_json(command: Command, run: Path) -> None:
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


def test_arms_that_come_and_go(command: Command, tmp_path: Path) -> None:
    """Verdicts are found again when arms move; a missing arm is reported in one message."""
    one: dict[str, Any] = {"plain": {}, "json": {"prompt": "education_dialogue_json"}}
    run = tmp_path / "run"

    def generate(arms: dict[str, Any]) -> None:
        path = job(tmp_path, replicates=2, conversations=6, arms=arms)
        assert command("generate", path, "-o", run, "--yes").code == 0

    generate(one)
    first = facts(command("pairs", run, "--by", "oracle", "--json"))
    generate({"first": {"backends": {"default": {"seed": 8}}}, "json": one["json"], "plain": {}})
    more = facts(command("pairs", run, "--by", "oracle", "--set", "pairs.matches=15", "--json"))
    assert more["calls"]["made"] == 2 * 15 * 6
    assert more["calls"]["replayed"] == first["calls"]["made"], "nothing judged is asked again"
    generate({"json": one["json"], "other": {"backends": {"default": {"seed": 9}}}})
    for arguments in (("pairs", run, "--report"), ("export", run, "--to", "mtpo", "-o", tmp_path / "x")):
        ended = command(*arguments)
        assert ended.code == 2
        assert "is not what it was when the pairs were made" in ended.err
    facts(command("pairs", run, "--by", "oracle", "--json"))


def test_one_split_for_all_arms_and_their_pairs(command: Command, tmp_path: Path) -> None:
    arms = {"plain": {}, "bad": {"backends": {"default": {"faults": "refusal=0.5"}}, "asks": 1}}
    path = job(tmp_path, replicates=2, conversations=30, arms=arms, split={"test": 0.3, "by": "topic"})
    assert command("generate", path, "-o", tmp_path / "run").code == 3
    sides: dict[str, set[str]] = {}
    shards: dict[str, str] = {}
    for file in (tmp_path / "run").glob("arms/*/shards/conversations_*.json"):
        side = "test" if "eval" in file.name else "train"
        for record in json.loads(file.read_text()):
            sides.setdefault(record["background_info"]["topic"], set()).add(side)
            shards[record["id"]] = side
    assert {len(side) for side in sides.values()} == {1}
    assert set(shards.values()) == {"train", "test"}
    facts(command("pairs", tmp_path / "run", "--by", "oracle", "--json"))
    for line in pairs(tmp_path / "run"):
        assert shards[line["a"]["id"]] == shards[line["b"]["id"]] == line["split"]


def test_a_run_with_arms_keeps_every_template_it_was_made_with(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "mine.j2").write_text(
        "Simulate a conversation about {{ topic }}. Conversation:\n[\nTeacher: x\n]\n#"
    )
    (folder / "judge.j2").write_text(
        "Interaction 1:\n{{ conversation_1 }}\nInteraction 2:\n{{ conversation_2 }}\nOutput 1 or 2."
    )
    arms = {"plain": {}, "mine": {"prompt": "./mine.j2"}}
    path = job(folder, replicates=1, conversations=4, arms=arms, prompts={"oracle": "./judge.j2"})
    assert command("generate", path, "-o", tmp_path / "run").code == 0
    for name in ("mine.j2", "judge.j2"):
        (folder / name).unlink()
    assert command("pairs", tmp_path / "run", "--by", "oracle").code == 0
    assert command("generate", tmp_path / "run" / "job.yaml", "-o", tmp_path / "again").code == 0
    for arm in arms:
        made, again = (
            sorted((tmp_path / run / "arms" / arm / "shards").glob("conv*")) for run in ("run", "again")
        )
        assert [file.read_bytes() for file in made] == [file.read_bytes() for file in again]
