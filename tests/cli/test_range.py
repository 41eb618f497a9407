"""`edgen generate --range`: a piece of a job, with every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgen.evaluation.data_sets.runs import make_run_data_set
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from tests.cli.command import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def job(folder: Path, **changes: Any) -> Path:
    values = {
        "name": "t", "seed": 5, "conversations": 60, "space": "education_dialogue", "prompt": "education_dialogue",
        "asks": 1, "backends": {"default": {"type": "simulator", "faults": "garbage=0.1"}},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(json.dumps(values | changes))
    return path


def records(run: Path) -> dict[str, Any]:
    found = [json.loads(path.read_text()) for path in sorted(run.glob("shards/conversations_*.json"))]
    return {record["id"]: record for shard in found for record in shard}


def lines(run: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (run / "rejected.jsonl").read_text().splitlines()]


def numbers(ids: Any) -> set[int]:
    return {int(name.split("-")[1]) for name in ids}


class TestAPiece:
    def test_is_the_same_scenarios_of_the_whole(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, replicates=2)
        command("generate", path, "-o", tmp_path / "whole")
        ended = command("generate", path, "-o", tmp_path / "run", "--range", "20:35", "--json")
        assert ended.code == 3, "some were rejected"
        facts = json.loads(ended.out)
        assert facts["range"] == {"first": 20, "end": 35, "of": 60}
        assert (facts["planned"], facts["pending"]) == (30, 0)
        assert facts["accepted"] + sum(facts["rejected"].values()) == 30
        whole, piece = records(tmp_path / "whole"), records(tmp_path / "run")
        assert piece == {name: record for name, record in whole.items() if 20 <= int(name.split("-")[1]) < 35}
        assert lines(tmp_path / "run") == [
            i for i in lines(tmp_path / "whole") if numbers([i]) <= {*range(20, 35)}
        ]
        assert lines(tmp_path / "run"), "nothing was rejected, so nothing is shown"
        manifest = json.loads((tmp_path / "run" / "shards" / "manifest.json").read_text())
        assert manifest["planned"] == 30
        assert (
            manifest["fingerprint"]
            == json.loads((tmp_path / "whole/shards/manifest.json").read_text())["fingerprint"]
        )

    def test_its_status_says_which(self, command: Command, tmp_path: Path) -> None:
        command("generate", job(tmp_path), "-o", tmp_path / "run", "--range", "20:35")
        assert "planned    15 (scenarios 20 to 34 of 60)" in command("status", tmp_path / "run").out

    def test_of_arms(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, arms={"plain": {}, "json": {"prompt": "education_dialogue_json"}})
        ended = command("generate", path, "-o", tmp_path / "run", "--range", "20:35", "--json")
        facts = json.loads(ended.out)
        assert (facts["planned"], facts["range"]) == (30, {"first": 20, "end": 35, "of": 60})
        assert {arm["planned"] for arm in facts["arms"].values()} == {15}

    def test_nothing_else_of_it_is_pending(self, command: Command, tmp_path: Path) -> None:
        """Every reader treats the piece as the whole."""
        path = job(tmp_path, conversations=3000, split={"test": 0.2, "by": "topic"})
        command("generate", path, "-o", tmp_path / "run", "--range", "2900:2960")
        run = tmp_path / "run"
        with RunReader(run) as reader:
            assert (reader.pending, reader.describe()["planned"]) == (0, {"t": 60})
            assert numbers(one.candidate.id for one in reader.conversations()) <= {*range(2900, 2960)}
            split = {one.candidate.id: one.split for one in reader.conversations()}
        shards = {side: records_of(run, side) for side in ("train", "eval")}
        assert split == {**dict.fromkeys(shards["train"], "train"), **dict.fromkeys(shards["eval"], "test")}
        data_set = make_run_data_set(RunFolder(run), "", 0)
        plan = list(data_set.plan() or ())
        assert [fate.scenario.index for fate in plan] == [*range(2900, 2960)]
        assert {each.status for each in plan} == {"accepted", "rejected"}
        assert not [note for note in data_set.notes if "pending" in note]
        stats = json.loads(command("stats", run, "--json").out)
        assert "pending" not in json.dumps(stats.get("notes", []))
        for arguments in (("stats", run), ("report", run), ("validate", run)):
            ended = command(*arguments)
            assert (ended.code, "pending" in ended.err) == (0, False), ended.err
        for form in ("ed", "hf", "trl-sft"):
            ended = command("export", run, "--to", form, "-o", tmp_path / form)
            assert ended.code == 0, ended.err
        card = (tmp_path / "hf" / "README.md").read_text()
        assert "edgen generate RUN/job.yaml -o AGAIN --range 2900:2960" in card
        assert "a part of its job: scenarios 2900 to 2959, of 3000" in card
        assert "2,900 to 2,959 of 3,000, drawn with seed 5" in (run / "report.html").read_text()

    def test_is_compared(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, arms={"plain": {}, "json": {"prompt": "education_dialogue_json"}})
        command("generate", path, "-o", tmp_path / "run", "--range", "20:50")
        ended = command("compare", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        facts = json.loads(ended.out)
        assert facts["shared"] == 30
        assert [(arm["scenarios"], arm["planned"], arm["pending"]) for arm in facts["arms"]] == [
            (30, 30, 0)
        ] * 2
        assert not [text for text in facts["caveats"] if "planned" in text]

    def test_its_pairs(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, replicates=2, backends={"default": {"type": "simulator"}})
        command("generate", path, "-o", tmp_path / "run", "--range", "50:60")
        assert command("pairs", tmp_path / "run", "--by", "oracle").code == 0
        pairs = [json.loads(line) for line in (tmp_path / "run/pairs/pairs.jsonl").read_text().splitlines()]
        assert [pair["scenario"] for pair in pairs] == [*range(50, 60)]


def records_of(run: Path, word: str) -> list[str]:
    return [
        r["id"]
        for path in run.glob(f"shards/conversations_{word}*.json")
        for r in json.loads(path.read_text())
    ]


class TestGoingOn:
    def test_the_same_piece_asks_nothing(self, command: Command, tmp_path: Path) -> None:
        path, run = job(tmp_path), tmp_path / "run"
        command("generate", path, "-o", run, "--range", "20:35")
        before = (run / "shards" / "manifest.json").stat().st_mtime_ns
        again = command("generate", path, "-o", run, "--range", "20:35", "--json")
        assert json.loads(again.out)["calls"]["now"] == 0
        assert (run / "shards" / "manifest.json").stat().st_mtime_ns == before

    def test_more_of_it_asks_what_is_new(self, command: Command, tmp_path: Path) -> None:
        path, run = job(tmp_path), tmp_path / "run"
        command("generate", path, "-o", run, "--range", "20:35")
        more = json.loads(command("generate", path, "-o", run, "--range", "10:40", "--json").out)
        assert (more["calls"]["now"], more["planned"], more["range"]["first"]) == (15, 30, 10)
        everything = json.loads(command("generate", path, "-o", run, "--range", "0:60", "--json").out)
        assert (everything["calls"]["now"], everything["planned"]) == (30, 60)
        assert "range" not in everything
        command("generate", path, "-o", tmp_path / "whole")
        assert records(run) == records(tmp_path / "whole")
        assert json.loads(command("generate", path, "-o", run, "--json").out)["calls"]["now"] == 0

    @pytest.mark.parametrize("part", [None, "0:30", "25:60", "40:50"])
    def test_another_piece_is_refused(self, command: Command, tmp_path: Path, part: str | None) -> None:
        path, run = job(tmp_path), tmp_path / "run"
        command("generate", path, "-o", run, "--range", "20:35")
        before = {p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file() and ".db" not in p.name}
        ended = command("generate", path, "-o", run, *(["--range", part] if part else []))
        assert ended.code == 2
        assert "scenarios 20 to 34" in ended.err
        assert "--range 20:35" in ended.err
        assert {
            p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file() and ".db" not in p.name
        } == before
        assert json.loads(command("status", run, "--json").out)["planned"] == 15

    def test_another_piece_of_arms_is_refused_before_anything_is_written(
        self, command: Command, tmp_path: Path
    ) -> None:
        arms = {"one": {"asks": 2}, "two": {"asks": 4}}
        run = tmp_path / "run"
        command("generate", job(tmp_path, arms=arms), "-o", run, "--range", "20:25")
        before = (run / "job.yaml").read_bytes()
        changed = job(tmp_path, arms=arms, limits={"in_flight": 7})
        ended = command("generate", changed, "-o", run, "--range", "22:30")
        assert (ended.code, "--range 20:25" in ended.err) == (2, True), ended.err
        assert (run / "job.yaml").read_bytes() == before

    def test_a_whole_run_does_not_become_a_piece(self, command: Command, tmp_path: Path) -> None:
        path, run = job(tmp_path), tmp_path / "run"
        command("generate", path, "-o", run)
        ended = command("generate", path, "-o", run, "--range", "0:30")
        assert (ended.code, "holds all scenarios of its job" in ended.err) == (2, True)
        assert command("generate", path, "-o", run, "--range", "0:60").code == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--range", "0:61"], "the job has 60 scenarios, so a range ends at 60 at most"),
        (["--range", "5:5"], "expected A:B with A below B"),
        (["--range", "\uff10:\uff15"], "expected A:B with A below B"),
        (["--range", "a:5"], "expected A:B with A below B"),
        (["--range", "0:5", "--set", "top_up=true"], "--range and `top_up: true` do not go together"),
    ],
)
def test_mistakes_leave_nothing(
    command: Command, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    ended = command("generate", job(tmp_path), "-o", tmp_path / "run", *arguments)
    assert (ended.code, sentence in ended.err) == (2, True), ended.err
    assert not (tmp_path / "run").exists()
