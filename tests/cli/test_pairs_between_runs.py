"""`edgen pairs RUN_A RUN_B`: conversations of several runs compared on their common scenarios."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.store.run_reader import RunReader
from edgen.store.several_runs import SeveralRuns
from tests import ROOT
from tests.cli.command import Command, Ended, call

JOB = ROOT / "jobs" / "selfplay.yaml"
SIMULATOR = "backends={default: {type: simulator, planted: 5, max_tokens: 400}}"
OTHER = ("name=other", "protocol=oneshot", "prompts={}", "prompt=education_dialogue", "branch=null")


def generate(folder: Path, *changes: str) -> Path:
    given = [
        word for one in ("conversations=4", "replicates=2", SIMULATOR, *changes) for word in ("--set", one)
    ]
    assert call("generate", JOB, *given, "-o", folder) == 0
    return folder


@pytest.fixture(scope="module")
def above(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("between")
    generate(folder / "a")
    generate(folder / "b", *OTHER)
    return folder


@pytest.fixture
def runs(above: Path, tmp_path: Path) -> tuple[Path, Path]:
    shutil.copytree(above, tmp_path / "runs")
    return tmp_path / "runs" / "a", tmp_path / "runs" / "b"


def facts(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("run.lock", "run.db-wal", "run.db-shm")
    }


def test_a_matrix_of_both_runs(command: Command, runs: tuple[Path, Path]) -> None:
    a, b = runs
    before = tree(b)
    made = facts(command("pairs", a, b, "--signal", "oracle", "--report", "--json"))
    assert (made["scenarios"], made["compare"], made["planned"]) == (4, "conversation", 8)
    (matrix,) = made["report"]["policies"]
    assert matrix["arms"] == ["a", "b"]
    assert [(cell["row"], cell["column"]) for cell in matrix["cells"]] == [("a", "b"), ("b", "a")]
    one, other = (cell["preference"] for cell in matrix["cells"])
    assert one["value"] + other["value"] == pytest.approx(1, abs=1e-5)
    assert (one["n"], one["scenarios"]) == (8, 4)
    assert made["file"] == str(a / "pairs" / "against" / "a-vs-b" / "pairs.jsonl")
    assert not (a / "pairs" / "pairs.jsonl").exists()
    assert tree(b) == before  # the other run is only read
    lines = [json.loads(line) for line in Path(made["file"]).read_text().splitlines()]
    assert {(line["a"]["arm"], line["b"]["arm"]) for line in lines} == {("a", "b")}
    assert {line["b"]["id"].partition("-")[0] for line in lines} == {"other"}


def test_a_second_start_asks_nothing_and_the_report_comes_alone(
    command: Command, runs: tuple[Path, Path]
) -> None:
    a, b = runs
    first = facts(command("pairs", a, b, "--signal", "oracle", "--json"))
    file = Path(first["file"])
    before = file.read_bytes()
    needs = facts(command("pairs", a, b, "--signal", "oracle", "--dry-run", "--json"))
    assert needs["calls"]["expected"] == 0
    assert facts(command("pairs", a, b, "--signal", "oracle", "--json"))["pairs"] == first["pairs"]
    assert file.read_bytes() == before
    assert len(facts(command("pairs", a, b, "--report", "--json"))["policies"]) == 1


def test_compare_and_python_have_it(command: Command, runs: tuple[Path, Path]) -> None:
    a, b = runs
    assert "policies" not in facts(command("compare", a, b, "--json"))
    facts(command("pairs", a, b, "--signal", "oracle", "--json"))
    compared = facts(command("compare", a, b, "--json"))
    (matrix,) = compared["policies"]
    ended = command("compare", a, b)
    assert "Policy matrix by judge" in ended.out
    made = edgen.Run(a).pairs(against=edgen.Run(b))
    assert made.policies == [matrix] == edgen.compare(a, b).policies
    assert {pair.b.arm for pair in made} == {"b"}


def test_scenarios_are_matched_by_what_they_are(
    command: Command, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    """A job with another seed has the same scenarios under other numbers; each is matched
    with one of the other run, once."""
    a, b = runs
    picked = b.with_name("picked")
    assert command("select", b, "--draw", "3", "-o", picked).code == 0
    made = facts(command("pairs", a, picked, "--signal", "oracle", "--json"))
    assert made["scenarios"] in (2, 3)
    space = tmp_path / "small.yaml"
    space.write_text("name: small\ndimensions: {topic: [tides, rocks, rain], mood: [calm, cross]}\n")
    small = (
        f"space={space}",
        "prompt=plain_conversation",
        "design=random",
        "conversations=6",
        "replicates=1",
    )
    one, other = (
        generate(tmp_path / f"seed{seed}", *OTHER, *small, f"seed={seed}", f"name=s{seed}") for seed in (1, 2)
    )
    with SeveralRuns([one, other]) as several, RunReader(one) as first, RunReader(other) as second:
        mine, theirs = (
            Counter(str(reader.scenario(index).values) for index, _ in reader.scenarios())
            for reader in (first, second)
        )
        shared = [index for index, _ in several.scenarios()]
        assert 0 < len(shared) == sum((mine & theirs).values()) < 6
        for index, names in several.scenarios():
            a_side, b_side = (several.candidate(index, name) for name in names)
            assert (a_side.scenario, b_side.scenario) == (index, index)
            place = int(b_side.id.split("-")[1])
            assert second.scenario(place).values == first.scenario(index).values
    assert facts(command("pairs", one, other, "--signal", "oracle", "--json"))["scenarios"] == len(shared)


def test_what_cannot_be_compared_is_said(command: Command, runs: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = runs
    apart = generate(tmp_path / "apart", *OTHER, "seed=99", "conversations=1", "replicates=1")
    for given, said in (
        ((a, apart), "there is nothing to compare. Name runs of the same scenarios"),
        ((a, a), "this run is named twice"),
        ((a, b, "--credit", "rollouts"), "rollouts continue conversations of one run"),
        ((a, tmp_path / "none"), "there is no run here"),
    ):
        ended = command("pairs", *given, "--signal", "oracle")
        assert ended.code == 2, ended.err
        assert said in ended.err
    ended = command("pairs", a, b, "--signal", "human")
    assert (ended.code, "there are no votes" in ended.err) == (2, True)
    ended = command("pairs", a, b, "--report")
    assert (ended.code, "there is no such file" in ended.err) == (2, True)


def test_runs_of_one_name_keep_their_conversations_apart(command: Command, runs: tuple[Path, Path]) -> None:
    a, _ = runs
    same = generate(a.with_name("same"), *OTHER[1:])
    made = facts(command("pairs", a, same, "--signal", "oracle", "--json"))
    lines = [json.loads(line) for line in Path(made["file"]).read_text().splitlines()]
    assert {line["b"]["id"].partition("/")[0] for line in lines} == {"same"}


def test_a_run_with_arms_has_its_matrix_everywhere(command: Command, tmp_path: Path) -> None:
    arms = "arms={x: {}, y: {prompts: {}, protocol: oneshot, prompt: education_dialogue}}"
    run = generate(tmp_path / "run", arms, "branch=null", "replicates=1")
    made = facts(command("pairs", run, "--signal", "oracle", "--report", "--json"))
    (matrix,) = made["report"]["policies"]
    assert (matrix["arms"], matrix["compare"]) == (["x", "y"], "conversation")
    assert facts(command("compare", run, "--json"))["policies"] == [matrix]
    assert facts(command("pairs", run, "--report", "--json"))["policies"] == [matrix]
    assert command("report", run).code == 0
    page = (run / "report.html").read_text()
    assert "row over column" in page
    value = f"{100 * matrix['cells'][0]['preference']['value']:.1f}%"
    assert value in page


def test_pairs_between_runs_are_exported_and_shown(
    command: Command, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    a, b = runs
    facts(command("pairs", a, b, "--signal", "oracle", "--json"))
    alone = command("export", a, "--to", "mtpo", "-o", tmp_path / "alone")
    assert alone.code != 0
    assert "a-vs-b" in alone.err
    assert "--against" in alone.err
    made = facts(command("export", a, "--to", "mtpo", "--against", b, "-o", tmp_path / "mtpo", "--json"))
    labelled = [
        line
        for line in map(json.loads, (a / "pairs/against/a-vs-b/pairs.jsonl").read_text().splitlines())
        if line["label"]
    ]
    assert sum(made["rows"].values()) == len(labelled) > 0
    card = (tmp_path / "mtpo" / "README.md").read_text()
    assert "other" in card
    shown = facts(command("show", a, "0", "--json"))
    assert {(one["a"]["arm"], one["b"]["arm"]) for one in shown["pairs"]} == {("a", "b")}
    assert facts(command("show", b, "0", "--json"))["pairs"] == []


def test_an_export_between_runs_says_what_it_lacks(
    command: Command, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    a, b = runs
    none = command("export", a, "--to", "mtpo", "--against", b, "-o", tmp_path / "x")
    assert none.code != 0
    assert "edgen pairs" in none.err
    other = command("export", a, "--to", "ed", "--against", b, "-o", tmp_path / "x")
    assert "ed does not take --against; " in other.err
    assert not (tmp_path / "x").exists()
