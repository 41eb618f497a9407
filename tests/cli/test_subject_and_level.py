"""Properties of topics beyond ED's five texts stay with the conversations, in every file."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from edgen.core import resources
from edgen.space import load_space
from tests.cli.command import Command

JOB = """\
name: wide
seed: 3
conversations: 40
space: SPACE
prompt: education_dialogue
backends: {default: {type: simulator}}
shards: {train: 2, test: 1}
"""


@pytest.fixture
def run(tmp_path: Path, command: Command) -> Path:
    (tmp_path / "job.yaml").write_text(JOB.replace("SPACE", "broad"))
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
    return tmp_path / "run"


def records(run: Path) -> list[dict[str, Any]]:
    return [one for path in run.glob("shards/conversations_*.json") for one in json.loads(path.read_bytes())]


def test_shards_hold_them_and_are_valid(run: Path, command: Command) -> None:
    topics = {
        topic.value: topic.fields
        for topic in load_space(resources.find("preference_space", "broad"))["topic"].entries
    }
    made = records(run)
    assert len(made) == 40
    for record in made:
        assert list(record)[-1] == "scenario"
        assert record["scenario"] == topics[record["background_info"]["topic"]]
    assert command("validate", run).code == 0


def test_exports_hold_them_and_the_strict_one_does_not(run: Path, tmp_path: Path, command: Command) -> None:
    wanted = {one["id"]: (one["scenario"]["subject"], one["scenario"]["level"]) for one in records(run)}
    for name in ("csv", "hf", "ed"):
        options = ("--files", "jsonl") if name == "hf" else ()
        assert command("export", run, "--to", name, "-o", tmp_path / name, *options).code == 0
    flat: dict[str, tuple[str, str]] = {}
    for path in (tmp_path / "csv").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            flat |= {row["id"]: (row["subject"], row["level"]) for row in csv.DictReader(file)}
    assert flat == wanted
    lines = [line for path in (tmp_path / "hf/data").iterdir() for line in path.read_bytes().splitlines()]
    rows = list(map(json.loads, lines))
    assert {row["id"]: (row["subject"], row["level"]) for row in rows} == wanted
    for path in (tmp_path / "ed").glob("*.json"):
        assert {tuple(one) for one in json.loads(path.read_bytes())} == {("background_info", "conversation")}


def test_a_space_out_of_shards_has_them(run: Path, tmp_path: Path, command: Command) -> None:
    shards = sorted(run.glob("shards/conversations_*.json"))
    assert command("space", "from-ed", *shards, "-o", tmp_path / "space.yaml").code == 0
    wide = {
        one.value: one.fields
        for one in load_space(resources.find("preference_space", "broad"))["topic"].entries
    }
    made = load_space(tmp_path / "space.yaml")["topic"].entries
    assert made
    assert all(wide[one.value] == one.fields for one in made)


def test_a_conversation_that_is_printed_has_them(tmp_path: Path, command: Command) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("SPACE", "broad"))
    ended = command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run", "-n", "3", "--show", "1")
    assert "  subject: " in ended.out
    assert "  level: " in ended.out


def test_coverage_counts_them_of_a_run_of_its_files_and_of_its_export(
    run: Path, tmp_path: Path, command: Command
) -> None:
    assert command("export", run, "--to", "hf", "-o", tmp_path / "hf", "--files", "jsonl").code == 0
    levels = Counter(one["scenario"]["level"] for one in records(run))
    assert len(levels) == 3
    for path in (run, run / "shards", tmp_path / "hf" / "data"):
        ended = command("stats", path, "--only", "coverage", "--json")
        assert ended.code == 0, ended.err
        found = {one["name"]: one for one in json.loads(ended.out)["coverage"]["dimensions"]}
        assert list(found)[5:] == ["subject", "level"]
        assert {value["value"]: value["accepted"] for value in found["level"]["values"]} == levels
    assert "\n  level " in command("stats", run, "--only", "coverage").out


def test_a_space_without_any_says_nothing_of_them(tmp_path: Path, command: Command) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("SPACE", "education_dialogue"))
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
    assert all("scenario" not in one for one in records(tmp_path / "run"))
    found = json.loads(command("stats", tmp_path / "run", "--only", "coverage", "--json").out)
    assert len(found["coverage"]["dimensions"]) == 5


def test_a_topic_without_is_counted_as_such(tmp_path: Path, command: Command) -> None:
    space = (resources.find_folder("preference_space") / "education_dialogue.yaml").read_text()
    head, _, rest = space.partition("topics:\n")
    topics = (
        "topics:\n  - {value: Rivers, level: primary}\n  - {value: Sums, subject: Mathematics}\n  - Plain\n"
    )
    (tmp_path / "mine.yaml").write_text(head + topics + "\n" + rest[rest.index("student_preferences:") :])
    (tmp_path / "job.yaml").write_text(JOB.replace("SPACE", "mine.yaml"))
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
    of = {"Rivers": {"level": "primary"}, "Sums": {"subject": "Mathematics"}, "Plain": None}
    made = records(tmp_path / "run")
    assert all(one.get("scenario") == of[one["background_info"]["topic"]] for one in made)
    found = json.loads(command("stats", tmp_path / "run", "--only", "coverage", "--json").out)["coverage"]
    level = next(one for one in found["dimensions"] if one["name"] == "level")
    counts = Counter("primary" if one["background_info"]["topic"] == "Rivers" else "(none)" for one in made)
    assert {value["value"]: value["accepted"] for value in level["values"]} == counts
    assert found["planned_cells"] == len({tuple(one["background_info"].values()) for one in made})
