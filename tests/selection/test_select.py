"""`edgen select`: the chosen conversations of a run are a run, its counts add up, and it names its source."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core import resources
from edgen.core.errors import ShortError, UsageError
from edgen.core.values import Conversation, Scenario, Turn
from edgen.expressions.conversation import ConversationNames, Facts
from edgen.expressions.language import Expression
from edgen.space import load_space
from edgen.store.layers import find_layer_file, read_layer
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from tests.cli.command import Command
from tests.layers import put_layer

JOB: dict[str, Any] = {
    "name": "t", "seed": 5, "conversations": 40, "replicates": 2, "space": "education_dialogue", "prompt": "education_dialogue",
    "asks": 1, "backends": {"default": {"type": "simulator", "faults": "garbage=0.1"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("select") / "run"
    with pytest.raises(ShortError):
        edgen.generate(JOB, output=folder)
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def conversations(folder: Path) -> dict[str, edgen.Conversation]:
    return {one.id: one for one in edgen.open(folder).conversations()}


class TestWhatMeasuresSay:
    def test_a_clause_finds_what_a_measure_counts(self, run: Path, tmp_path: Path) -> None:
        """`edgen stats` over the whole run agrees with clauses over its conversations, one by one."""
        stats = edgen.open(run).stats(only=["leaks", "answers", "adherence"], progress=False).as_json()
        leaks = stats["leaks"]["conversations"]
        assert leaks
        keywords = stats["adherence"][0]["student_asks"]
        for clause, count in (
            ("leaks > 0", leaks),
            ("measures.leaks == len(measures.leaks.dimensions) and measures.lengths.turns == turns", None),
            ("measures.adherence.student_asks", round(keywords["value"] * keywords["n"])),
        ):
            chosen = edgen.select(run, tmp_path / clause[:12], [clause])
            assert chosen.status.accepted == (edgen.open(run).status.accepted if count is None else count)

    def test_figures_of_one_conversation(self) -> None:
        space = load_space(resources.find("preference_space", "education_dialogue"))
        turns = (Turn("Teacher", "So it is. So it is!"), Turn("Student", "So."), Turn("Student", "So."))
        facts = Facts(Scenario(0, {}), Conversation(turns), "x")
        for text in (
            "measures.lengths.words == 8 and measures.lengths.longest == 6 and measures.lengths.words_per_turn == 8 / 3",
            "measures.diversity.distinct_1 == 3 / 8 and measures.diversity.distinct_2 == 3 / 5",
            "measures.diversity.repeated_turns == 1 and measures.answers.telling == 1",
            "measures.endings.done is None and measures.adherence.student_asks is None",
        ):
            assert Expression(text, ConversationNames(space)).holds(facts), text


class TestWhatIsChosen:
    def test_the_table_adds_up_and_so_do_the_counts(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        options = ["--where", "turns < 15", "--where", "probability >= .2 or ended_by == 'Teacher'"]
        options += ["--cap", "topic=2", "--balance", "ended_by", "--draw", "20"]
        ended = command("select", run, *options, "-o", tmp_path / "new", "--json")
        assert ended.code == 0, ended.err
        told = json.loads(ended.out)
        left, names = (
            told["selection"]["accepted"],
            ["where1", "where2", "cap_topic", "balance_ended_by", "draw"],
        )
        assert [one["name"] for one in told["selection"]["clauses"]] == names
        for one in told["selection"]["clauses"]:
            assert one["of"] == left
            left -= one["took"]
        assert left == told["selection"]["kept"] == told["accepted"] <= 20
        took = {f"select:{one['name']}": one["took"] for one in told["selection"]["clauses"] if one["took"]}
        before = edgen.open(run).status
        assert told["rejected"] == before.rejected | took
        assert (told["state"], told["pending"], told["planned"]) == ("complete", 0, 80)
        assert told["accepted"] + sum(told["rejected"].values()) == 80
        old, new = conversations(run), conversations(tmp_path / "new")
        assert all(old[name].turns == one.turns and len(one.turns) < 15 for name, one in new.items())
        assert max(Counter(one.scenario["topic"] for one in new.values()).values()) <= 2
        lines = (tmp_path / "new" / "rejected.jsonl").read_text().splitlines()
        reasons = Counter(json.loads(line)["reason"] for line in lines)
        assert reasons == told["rejected"]

    def test_what_is_kept_is_what_holds(self, run: Path, tmp_path: Path) -> None:
        chosen = edgen.select(run, tmp_path / "new", ["probability > .5", "scenario.index < 25"])
        expected = {
            name
            for name, one in conversations(run).items()
            if one.probability is not None and one.probability > 0.5 and one.scenario.index < 25
        }
        assert {one.id for one in chosen.conversations()} == expected

    def test_a_draw_depends_on_its_seed_alone(self, run: Path, tmp_path: Path) -> None:
        drawn = [
            set(conversations(edgen.select(run, tmp_path / str(number), draw=10, seed=seed).folder))
            for number, seed in enumerate([3, 3, 4])
        ]
        assert [*map(len, drawn)] == [10, 10, 10]
        assert drawn[0] == drawn[1] != drawn[2]
        fewer = edgen.select(run, tmp_path / "few", "scenario.index < 25", draw=10, seed=3)
        assert {name for name in drawn[0] if int(name.split("-")[1]) < 25} <= {*conversations(fewer.folder)}

    def test_of_those_that_are_alike_the_first_is_kept(self, tmp_path: Path) -> None:
        said = [
            "Teacher: What is a half?\nStudent: One of two!",
            "Teacher: And a third?\nStudent: One of three.",
        ]

        async def say(request: edgen.Request) -> str:
            return said[request.address.scenario % 2]

        edgen.generate(
            JOB | {"conversations": 6, "name": "alike"}, output=tmp_path / "run", backends={"default": say}
        )
        chosen = edgen.select(tmp_path / "run", tmp_path / "new", "not near_duplicate")
        assert [one.id for one in chosen.conversations()] == ["alike-000000-r0", "alike-000001-r0"]

    def test_labels_of_a_layer(self, run: Path, tmp_path: Path) -> None:
        names = sorted(conversations(run))
        places = {name: i for i, name in enumerate(names)}
        put_layer(
            run, "quality", whole=True,
            labels_of=lambda one, _: [str(places[one.id] % 5)] if one.id != names[-1] else None,
        )  # fmt: skip
        put_layer(
            run, "moves",
            lambda one, turn: ["telling" if places[one.id] % 2 and one.turns[turn or 0].role == "Teacher" else "focus"],
        )  # fmt: skip
        where = "labels.quality >= 3 and 'telling' not in labels.moves.Teacher"
        chosen = edgen.select(run, tmp_path / "new", where)
        wanted = {name for i, name in enumerate(names[:-1]) if i % 5 >= 3 and not i % 2}
        assert {one.id for one in chosen.conversations()} == wanted
        assert {
            unit.id for unit in read_layer(find_layer_file(RunFolder(tmp_path / "new"), "moves"))
        } == wanted
        with pytest.raises(UsageError, match=r"labels\.quality, labels\.moves|labels\.moves"):
            edgen.select(run, tmp_path / "other", "labels.movs == 1")

    def test_labels_of_another_text_are_not_known(self, command: Command, run: Path, tmp_path: Path) -> None:
        file = put_layer(run, "good", lambda *_: ["yes"], whole=True)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines[0]["text_sha256"] = lines[1]["text_sha256"]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        ended = command("select", run, "--where", "'yes' in labels.good", "-o", tmp_path / "new", "--json")
        assert ended.code == 0, ended.err
        assert "1 unit left out of the layer good: the text is another one now." in " ".join(
            ended.err.split()
        )
        assert lines[0]["id"] not in conversations(tmp_path / "new")
        assert len(conversations(tmp_path / "new")) == len(lines) - 1


class TestTheNewRun:
    def test_every_command_accepts_it(self, command: Command, run: Path, tmp_path: Path) -> None:
        new, again = tmp_path / "new", tmp_path / "again"
        assert command("select", run, "--where", "turns >= 11", "-o", new).code == 0
        assert command("select", new, "--draw", "25", "-o", again).code == 0
        for words in (
            ["status", again], ["stats", again, "--only", "overview"], ["compare", run, again], ["validate", again],
            ["show", again, "3"], ["runs", tmp_path], ["pairs", new, "--by", "probability"],
            ["export", new, "--to", "trl-dpo", "--opening", "user", "-o", tmp_path / "pairs"],
        ):  # fmt: skip
            ended = command(*words)
            assert ended.code == 0, (words, ended.err)
        reasons = json.loads(command("status", again, "--json").out)["rejected"]
        assert reasons.keys() > {"select:where1", "select2:draw"}

    def test_it_says_where_it_comes_from(self, command: Command, run: Path, tmp_path: Path) -> None:
        edgen.select(run, tmp_path / "new", "turns >= 11")
        edgen.select(tmp_path / "new", tmp_path / "again", draw=25)
        noted = json.loads((tmp_path / "again" / "shards" / "manifest.json").read_text())["selection"]
        assert (noted["run"], noted["kept"], noted["options"]) == ("new", 25, ["--draw", "25"])
        assert noted["before"]["run"] == "run"
        with RunReader(run) as reader:
            records = hashlib.sha256(b"".join(data for *_, data in reader.views[""].iterate_records()))
        assert noted["before"]["sha256"] == records.hexdigest()
        assert command("export", tmp_path / "again", "--to", "ed", "-o", tmp_path / "ed").code == 0
        card = (tmp_path / "ed" / "README.md").read_text()
        assert "selection.before.where1: `turns >= 11: took" in card
        assert (
            "edgen select MADE --where 'turns >= 11' -o MADE1\nedgen select MADE1 --draw 25 -o AGAIN" in card
        )

    def test_nothing_is_made_in_it(self, command: Command, run: Path, tmp_path: Path) -> None:
        edgen.select(run, tmp_path / "new", draw=25)
        with pytest.raises(UsageError, match=r"this run was selected from run \(`edgen select`\)"):
            edgen.generate(JOB, output=tmp_path / "new")
        ended = command("merge", run, tmp_path / "new", "-o", tmp_path / "merged")
        assert ended.code == 2
        assert "this run was selected from another" in ended.err

    def test_the_first_run_stays_as_it_is(self, run: Path, tmp_path: Path) -> None:
        before = {
            path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != "run.lock"
        }
        edgen.select(run, tmp_path / "new", draw=25)
        assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "say what to keep"),
        (["--where", "turns < 'a'"], 2, "--where, column 9: this compares a number with a text"),
        (["--where", "labels.mvoes == 1"], 2, "there is no labels.mvoes here"),
        (["--where", "turns > 1 " * 200_000], 2, "an expression is at most 2,000 characters long"),
        (["--where", "open('x')"], 2, "this function is unknown"),
        (["--where", "outcome.x == 1"], 3, "nothing is left, so no run was made (where1 took"),
        (["--cap", "topic=0"], 2, "expected NAME=N"),
        (
            ["--cap", "tpic=3"],
            2,
            "there is no such dimension, or it has no single values (did you mean 'topic'?)",
        ),
        (["--balance", "near_duplicate"], 2, "has no single values (known: turns, words, text, participants"),
        (["--balance", "flags"], 2, "has no single values"),
        (["--draw", "0"], 2, "0 is not in the range x>=1"),
    ],
)
def test_mistakes_are_sentences(
    command: Command, run: Path, tmp_path: Path, options: list[str], code: int, said: str
) -> None:
    ended = command("select", run, *options, "-o", tmp_path / "new")
    assert (ended.code, said in " ".join(ended.err.split())) == (code, True), ended.err
    assert [*tmp_path.iterdir()] == []


def test_of_a_run_with_arms_one_arm_is_selected(command: Command, tmp_path: Path) -> None:
    job = {
        **JOB,
        "conversations": 10,
        "arms": {"a": {}, "b": {"asks": 3}},
        "backends": {"default": {"type": "simulator"}},
    }
    edgen.generate(job, output=tmp_path / "run")
    ended = command("select", tmp_path / "run", "--draw", "3", "-o", tmp_path / "new")
    assert ended.code == 2
    assert "this run has arms (a, b), each with its own conversations. Select from one" in ended.err
    assert edgen.select(tmp_path / "run" / "arms" / "b", tmp_path / "new", draw=3).status.accepted == 3
