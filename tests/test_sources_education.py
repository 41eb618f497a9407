"""Capabilities of Education Dialogue and MTPO (Shani et al. 2024, arXiv 2405.14655).

A short check for each of the fifteen, by number.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from edgen.core import resources
from edgen.core.values import Conversation
from edgen.planning.load import load_plan
from edgen.reading.conversation import read
from edgen.space import load_space
from edgen.space.sampling import Sampler
from edgen.store.run_reader import RunReader
from edgen.validation.schema import conforms
from tests import ROOT
from tests.cli.command import Command, Ended, call
from tests.cli.conftest import command as command

pytestmark = pytest.mark.integration

SIMULATOR = "backends={default: {type: simulator, max_tokens: 600}}"
LISTS = ("topic", "student_preference", "student_reaction", "teacher_preference", "teacher_reaction")


def generate(folder: Path, job: str, *changes: str) -> Path:
    given = [word for one in (SIMULATOR, *changes) for word in ("--set", one)]
    assert call("generate", ROOT / "jobs" / f"{job}.yaml", *given, "-o", folder) == 0
    return folder


@pytest.fixture(scope="module")
def oneshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("oneshot") / "run"
    return generate(folder, "quickstart", "conversations=12", "split={test: 0.3, by: topic}")


@pytest.fixture(scope="module")
def selfplay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two agents, with pairs by a judge."""
    folder = generate(
        tmp_path_factory.mktemp("selfplay") / "run", "selfplay", "conversations=4", "replicates=3"
    )
    assert call("pairs", folder, "--signal", "oracle", "--credit", "whole") == 0
    return folder


def facts(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def pairs_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "pairs" / "pairs.jsonl").read_text().splitlines()]


def records(run: Path) -> list[dict[str, Any]]:
    return [
        one
        for path in sorted((run / "shards").glob("conversations_*.json"))
        for one in json.loads(path.read_text())
    ]


def test_01_five_lists_with_the_two_mistakes_mended_or_kept() -> None:
    mended, faithful = (
        load_space(resources.find("preference_space", name))
        for name in ("education_dialogue", "education_dialogue_faithful")
    )
    assert tuple(mended.names) == tuple(faithful.names) == LISTS
    topics, as_published = (
        Counter(entry.value for entry in space["topic"].entries) for space in (mended, faithful)
    )
    assert (topics["The Respiratory System"], as_published["The Respiratory System"]) == (1, 2)
    assert "The Eiffel Tower" in topics
    assert "Confucius" in topics
    assert "The Eiffel TowerConfucius" in as_published
    drawn = Sampler(mended, 7, "random", 2).scenario(3)
    assert tuple(drawn.values) == LISTS


def test_02_one_request_for_both_sides(oneshot: Path) -> None:
    plan = load_plan(oneshot / "job.yaml")
    (messages,) = plan.opening(plan.scenario(0)).values()
    said = "\n".join(one.content for one in messages)
    assert all(value in said for value in plan.scenario(0).values.values())
    assert "Probability" in said
    assert all(one["provenance"]["attempts"] >= 1 for one in records(oneshot))


def test_03_two_agents_that_know_their_own_side_only(selfplay: Path) -> None:
    plan = load_plan(selfplay / "job.yaml")
    both = ("student_preference", "teacher_preference")
    scenario = next(s for s in map(plan.scenario, range(40)) if s[both[0]] != s[both[1]])
    prompts = {use: "\n".join(m.content for m in given) for use, given in plan.opening(scenario).items()}
    assert scenario["student_preference"] not in prompts["teacher"]
    assert scenario["teacher_preference"] not in prompts["student"]
    assert scenario["teacher_preference"] in prompts["teacher"]
    assert scenario["student_preference"] in prompts["student"]


def test_04_the_published_layout_is_read_with_its_debris() -> None:
    text = (
        'Conversation:\n[\nTeacher: "Hello.",\nStudent: "[sighs] Hi.",\nTeacher: "...",\nStudent: "I see! '
        '[end of conversation]",\n]\nProbability: 0.8'
    )
    found = read(text)
    assert isinstance(found, Conversation)
    assert found.turns[0].text == "Hello."
    assert not any(turn.text.endswith(('",', '"')) for turn in found.turns)
    assert (found.probability, found.ended_by) == (0.8, "Student")


def test_05_the_probability_is_kept_and_a_judge_can_state_it(oneshot: Path, tmp_path: Path) -> None:
    with RunReader(oneshot) as reader:
        known = [one.probability for one in reader.candidates()]
    assert any(isinstance(one, float) and 0 <= one <= 1 for one in known)
    judged = generate(tmp_path / "run", "selfplay", "conversations=1", "selfplay={closing: judge}")
    with RunReader(judged) as reader:
        assert all(one.probability is not None for one in reader.candidates())


def test_06_the_end_marker_is_known_in_turns_and_suffix_in_records(oneshot: Path) -> None:
    with RunReader(oneshot) as reader:
        ended = {one.id: one.ended_by for one in reader.candidates()}
        assert not any(
            "[end of conversation]" in turn.text for one in reader.candidates() for turn in one.turns
        )
    for one in records(oneshot):
        last = one["conversation"][-1]["text"]
        assert last.endswith("[end of conversation]") is (ended[one["id"]] is not None)


def test_07_the_released_files_are_written_and_read(oneshot: Path, command: Command, tmp_path: Path) -> None:
    facts(command("export", oneshot, "--to", "ed", "-o", tmp_path / "ed", "--json"))
    files = sorted(path.name for path in (tmp_path / "ed").glob("*.json"))
    assert any(re.fullmatch(r"conversations_train\d+\.json", name) for name in files)
    assert any(name.startswith("conversations_eval") for name in files)
    for name in files:
        rows = json.loads((tmp_path / "ed" / name).read_text())
        assert all(set(row) == {"background_info", "conversation"} and conforms(row) for row in rows)
    assert command("validate", *(tmp_path / "ed" / name for name in files)).code == 0


def test_08_a_split_that_holds_topics_out(oneshot: Path) -> None:
    with RunReader(oneshot) as reader:
        sides: dict[str, set[str]] = {}
        for one in reader.conversations():
            sides.setdefault(one.scenario["topic"], set()).add(one.split)
    assert all(len(one) == 1 for one in sides.values())
    assert {"train", "test"} == {side for one in sides.values() for side in one}


def test_09_pairs_share_their_scenario_and_a_beginning(selfplay: Path) -> None:
    pairs = pairs_of(selfplay)
    assert {pair["origin"] for pair in pairs} == {"branch"}
    with RunReader(selfplay) as reader:
        for one in reader.compared():
            assert one.a.scenario == one.b.scenario
            prefix = one.pair.prefix_turns
            assert one.a.turns[:prefix] == one.b.turns[:prefix]
    assert any(pair["prefix_turns"] > 0 for pair in pairs)


@pytest.mark.parametrize(("credit", "compared"), [("whole", "conversation"), ("response", "response")])
def test_10_an_oracle_in_both_orders(
    credit: str, compared: str, selfplay: Path, command: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert command("select", selfplay, "--draw", "12", "-o", run).code == 0
    made = facts(
        command(
            "pairs",
            run,
            "--signal",
            "oracle",
            "--credit",
            credit,
            "--json",
            "--set",
            f"prompts.oracle=oracle_{compared}",
        )
    )
    assert made["compare"] == compared
    assert {"calls", "tokens", "cost_usd"} <= made.keys()
    for pair in pairs_of(run):
        for signal in pair["signals"]["oracle"]:
            assert [one["order"] for one in signal["verdicts"]] == ["ab", "ba"]
            assert signal["p"] == (signal["wins_ab"] + signal["wins_ba"]) / 2
            assert signal["tie"] is (signal["p"] == 0.5)


def test_11_a_tournament_of_policies(command: Command, tmp_path: Path) -> None:
    arms = "arms={long: {}, short: {selfplay: {max_turns: 8}}}"
    run = generate(tmp_path / "run", "selfplay", "conversations=3", "replicates=2", "branch=null", arms)
    report = facts(command("pairs", run, "--signal", "oracle", "--report", "--json"))["report"]
    (matrix,) = report["policies"]
    cells = {(cell["row"], cell["column"]): cell for cell in matrix["cells"]}
    assert cells.keys() == {("long", "short"), ("short", "long")}
    for cell in cells.values():
        assert cell["preference"]["low"] <= cell["preference"]["value"] <= cell["preference"]["high"]
        assert cell["replicates"] == 2
        assert cell["sd"] >= 0
    total = sum(cell["preference"]["value"] for cell in cells.values())
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["mtpo", "trl-dpo", "trl-kto", "refuel", "trl-sft"])
def test_12_the_exports(name: str, selfplay: Path, command: Command, tmp_path: Path) -> None:
    made = facts(command("export", selfplay, "--to", name, "-o", tmp_path / "out", "--json"))
    assert made["trains"] == "Teacher"
    rows = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_text().splitlines()]
    assert len(rows) == made["rows"]["train"] > 0
    if name == "mtpo":
        with RunReader(selfplay) as reader:
            first = {one.turns[0].text for one in reader.candidates()}
        for row in rows:
            assert 0 <= row["p"] <= 1
            assert {row[side][0]["content"] for side in ("first", "second")} <= first


def test_12_a_sweet_export_is_read_as_its_programs_do(
    selfplay: Path, command: Command, tmp_path: Path
) -> None:
    made = facts(command("export", selfplay, "--to", "sweet", "-o", tmp_path / "out", "--json"))
    assert made["trains"] == "Teacher"
    read = {
        table: [
            json.loads(line) for line in (tmp_path / "out" / table / "train.jsonl").read_text().splitlines()
        ]
        for table in ("trajectories", "critic", "turns")
    }
    half, rest = divmod(len(read["trajectories"]), 2)  # `evaluate_code.py --k 2`
    assert (half, rest) == (len(read["critic"]), 0)
    assert read["turns"]
    for number, critic in enumerate(read["critic"]):
        chosen, rejected = read["trajectories"][number], read["trajectories"][half + number]
        assert chosen["task"] == rejected["task"]
        assert (chosen["reward"], rejected["reward"]) == (1, 0)
        assert "student preference: " in chosen["task"]["ground_truth"]
        assert "student preference: " not in chosen["task"]["problem_description"]
        for side, row in (("chosen", chosen), ("rejected", rejected)):
            last = row["dialogue_history"][-1]
            told = f"In light that the final answer is: {row['task']['ground_truth']}."
            assert critic[side] == told + last["input"] + last["output"]


def test_13_statistics(oneshot: Path, command: Command) -> None:
    found = facts(command("stats", oneshot, "--json"))
    assert {"overview", "lengths", "coverage", "probability"} <= found.keys()


def test_14_nothing_is_asked_twice_and_each_record_says_whence(oneshot: Path, command: Command) -> None:
    before = {path.name: path.read_bytes() for path in (oneshot / "shards").iterdir()}
    again = command("generate", oneshot / "job.yaml", "-o", oneshot)
    assert again.code == 0
    assert "nothing to do" in again.err
    assert {path.name: path.read_bytes() for path in (oneshot / "shards").iterdir()} == before
    for one in records(oneshot):
        assert {"model", "template_sha256", "seed"} <= one["provenance"].keys()


def test_15_adherence_to_the_persona(selfplay: Path, command: Command) -> None:
    judge = ("--set", "backends.judge={type: simulator}")
    found = facts(command("stats", selfplay, "--only", "adherence", "--judge", "2", *judge, "--json"))
    assert found["adherence"]
