"""`edgen pairs --credit` and `--min-turns-left` as their user meets them: what a label by turn rests on."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from edgen.config import load_job
from edgen.core.pair import turns_left
from edgen.store.run_reader import RunReader
from tests import ROOT
from tests.cli.command import Command, Ended

JOB = ROOT / "jobs" / "selfplay.yaml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two agents that nobody changes: of each scenario a conversation, and two that leave it."""
    from edgen.api.generation import GenerateOptions, JobSource, generate
    from edgen.api.supervision.control import Control
    from edgen.api.supervision.trust import Trust

    folder = tmp_path_factory.mktemp("credit") / "run"
    source = JobSource.of(JOB, ("conversations=4", "replicates=3"))
    import asyncio

    asyncio.run(generate(source, GenerateOptions(output=folder), Control(trust=Trust())))
    assert load_job(folder / "job.yaml").replicates == 3
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def pairs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "pairs" / "pairs.jsonl").read_text().splitlines()]


def facts(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def left(folder: Path) -> dict[str, int]:
    """How many turns follow where each pair parts, by its id."""
    with RunReader(folder) as reader:
        return {one.pair.id: turns_left(one.a, one.b, one.pair.prefix_turns) for one in reader.compared()}


class TestTurnsLeft:
    def test_pairs_near_their_end_are_neither_judged_nor_labelled_and_counted(
        self, command: Command, run: Path
    ) -> None:
        whole = facts(command("pairs", run, "--by", "oracle", "--json"))
        follow = left(run)
        near = sum(count < 4 for count in follow.values())
        assert 0 < near < len(follow)
        shutil.rmtree(run / "pairs")
        some = facts(command("pairs", run, "--by", "oracle", "--min-turns-left", "4", "--json"))
        assert some["left_out"]["turns_left"] == near
        assert some["planned"] == whole["planned"] - near
        assert some["calls"]["made"] == whole["calls"]["made"] - 2 * near
        assert len(pairs(run)) == len(follow)
        for line in pairs(run):
            assert (line["left_out"] == "turns_left") is (follow[line["id"]] < 4)

    def test_without_it_nothing_changes(self, command: Command, run: Path) -> None:
        command("pairs", run, "--by", "oracle")
        before = (run / "pairs" / "pairs.jsonl").read_bytes()
        command("pairs", run, "--by", "oracle", "--min-turns-left", "0")
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == before

    def test_it_can_be_asked_of_an_export_as_well(self, command: Command, run: Path, tmp_path: Path) -> None:
        command("pairs", run, "--by", "probability")
        labelled = {line["id"] for line in pairs(run) if line["label"]}
        near = sum(count < 6 for name, count in left(run).items() if name in labelled)
        assert near
        for number, format_ in enumerate(("trl-dpo", "mtpo", "trl-conversation")):
            given = ("export", run, "--to", format_, "-o", tmp_path / str(number), "--min-turns-left", "6")
            assert facts(command(*given, "--json"))["left_out"]["turns_left"] == near
        card = (tmp_path / "0" / "README.md").read_text()
        assert f"| turns_left | {near} | fewer turns follow" in card

    def test_what_is_wrong_is_said(self, command: Command, run: Path, tmp_path: Path) -> None:
        assert command("pairs", run, "--by", "oracle", "--min-turns-left", "-1").code == 2
        ended = command("pairs", run, "--by", "oracle", "--set", "pairs.min_turns_left=-1")
        assert (ended.code, "$.pairs.min_turns_left" in ended.err) == (2, True)
        ended = command("export", run, "--to", "ed", "-o", tmp_path / "ed", "--min-turns-left", "2")
        assert (ended.code, "has no pairs" in ended.err) == (2, True)
        ended = command("pairs", run, "--by", "oracle", "--min-turns-left", "900")
        assert ended.code == 3
        assert "A lower --min-turns-left" in ended.err
        assert Counter(line["left_out"] for line in pairs(run)) == {"turns_left": len(pairs(run))}
