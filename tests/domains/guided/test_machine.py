"""`edgen machine check` and `edgen machine draw`: exit codes and output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command

pytestmark = pytest.mark.integration


def test_a_shipped_machine_is_sound(command: Command) -> None:
    ended = command("machine", "check", "lesson_plan", "--json")
    found = json.loads(ended.out)
    assert ended.code == 0
    assert (found["machine"], found["states"], found["findings"]) == ("lesson_plan", 42, [])
    assert found["needs"][:2] == ["topic", "topic.idea"]
    lines = command("machine", "check", "incident_response")
    assert lines.code == 0
    assert "findings   none" in lines.out


def test_faults_are_told_and_end_with_3(command: Command, tmp_path: Path) -> None:
    (tmp_path / "start.yaml").write_text("name: start\ntransition_states: [hello]\n")
    (tmp_path / "hello.yaml").write_text(
        "name: hello\nformulations: ['{greeting}']\ntransition_states: [start]\n"
    )
    ended = command("machine", "check", tmp_path)
    assert ended.code == 3
    assert "error      hello: nothing fills the slot {greeting}" in ended.out
    assert "2 findings; 1 of them prevent a run" not in ended.out
    assert "prevent a run" in ended.err
    found = json.loads(command("machine", "check", tmp_path, "--json").out)["findings"]
    assert found[0]["kind"] == "slot"
    assert found[0]["fatal"]


def test_what_cannot_be_read_ends_with_2(command: Command, tmp_path: Path) -> None:
    ended = command("machine", "check", "lesson_plam")
    assert ended.code == 2
    assert "no shipped machine of this name (did you mean 'lesson_plan'?)" in ended.err
    (tmp_path / "start.yaml").write_text("name: [start\n")
    ended = command("machine", "check", tmp_path)
    assert ended.code == 2
    assert "start.yaml: it is not valid YAML" in ended.err


def test_a_space_without_what_the_machine_needs(command: Command) -> None:
    ended = command("machine", "check", "lesson_plan", "--space", "fractions", "--json")
    said = [one["message"] for one in json.loads(ended.out)["findings"]]
    assert ended.code == 3
    assert "the space has no topic.idea, which the machine needs" in said


def test_a_machine_is_drawn(command: Command, tmp_path: Path) -> None:
    picture = tmp_path / "machine.svg"
    ended = command("machine", "draw", "incident_response", "-o", picture)
    assert ended.code == 0
    assert picture.read_text().startswith("<svg ")
    assert command("machine", "draw", "incident_response", "-o", tmp_path / "no" / "x.svg").code == 2


def test_a_run_without_a_machine_teaches_nothing(command: Command, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "name: j\nconversations: 1\nspace: education_dialogue\nprompt: education_dialogue\n"
        "backends: {default: {type: simulator}}\n"
    )
    assert command("generate", job, "-o", tmp_path / "run").code == 0
    ended = command("machine", "learn", tmp_path / "run")
    assert ended.code == 2
    assert "its job uses no machine; name one with --machine" in ended.err
    ended = command("machine", "learn", tmp_path / "run", "--machine", "lesson_plan")
    assert ended.code == 2
    assert "contain no choice of a state of 'lesson_plan'" in ended.err


def test_a_run_gives_its_machine_back(command: Command, tmp_path: Path) -> None:
    """In a run of random choices, learned weights are close to the machine's; the result loads, and its
    picture has the counts."""
    job = tmp_path / "job.yaml"
    job.write_text(
        "name: j\nconversations: 30\nspace: lesson_plan\nprotocol: guided\nprompts: {partner: guided_partner}\n"
        "guided: {machine: lesson_plan, chooser: chance, questionnaire: null}\nbackends: {default: {type: simulator}}\n"
    )
    assert command("generate", job, "-o", tmp_path / "run").code == 0
    ended = command("machine", "learn", tmp_path / "run", "-o", tmp_path / "learned", "--json")
    learned = json.loads(ended.out)
    assert (ended.code, learned["conversations"], learned["smoothing"]) == (0, 30, 1.0)
    assert learned["choices"] > 300
    start = learned["probabilities"]["start"]
    assert abs(start["greet"] - 0.8) < 0.3
    assert start["greet"] + start["greet_goal"] == 1
    assert command("machine", "check", tmp_path / "learned", "--space", "lesson_plan").code == 0
    again = command("machine", "learn", tmp_path / "run", "-o", tmp_path / "learned")
    assert again.code == 2
    assert "this folder is not empty" in again.err
    drawn = command("machine", "draw", "lesson_plan", "-o", tmp_path / "m.svg", "--run", tmp_path / "run")
    assert drawn.code == 0
    assert "choices in all" in (tmp_path / "m.svg").read_text()
