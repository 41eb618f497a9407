"""Exports begin with the first turn: an opening line that no role said appears only on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import ShortError
from edgen.export.evidence import ALL, read_figures
from tests import ROOT
from tests.cli.command import Command, call
from tests.cli.conftest import command as command
from tests.export.folders import BAD, GOOD, RUN, write
from tests.export.runs import FORMATS, MemoryRun, compared, turns

LINE = "Hello! I am here for our lesson on fractions."
CHATS = sorted(name for name, format_ in FORMATS.items() if format_.chat and format_.family is None)


def everything(folder: Path) -> str:
    return "\n".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "README.md"
    )


def rows_of(folder: Path, name: str = "train.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


@pytest.mark.parametrize("name", CHATS)
def test_no_line_that_nobody_said_without_opening(name: str, tmp_path: Path) -> None:
    assert write(name, RUN, tmp_path / "out").rows
    assert LINE not in everything(tmp_path / "out")


def test_mtpo_begins_with_the_first_turn(tmp_path: Path) -> None:
    write("mtpo", RUN, tmp_path / "out")
    for row in rows_of(tmp_path / "out"):
        for side in ("first", "second"):
            assert row[side][0] == {"role": "assistant", "content": "What is half of 4?"}


def test_the_line_is_there_where_it_is_asked_for(tmp_path: Path) -> None:
    write("mtpo", RUN, tmp_path / "out", opening="user")
    assert rows_of(tmp_path / "out")[0]["first"][0] == {"role": "user", "content": LINE}


@pytest.mark.parametrize("name", ["sharegpt", "refuel", "llamafactory"])
def test_where_the_user_has_to_speak_first_earlier_words_stand_in_its_first_message(
    name: str, tmp_path: Path
) -> None:
    write(name, RUN, tmp_path / "out")
    first = {
        "sharegpt": lambda row: row["conversations"][0],
        "refuel": lambda row: row["chosen"][0],
        "llamafactory": lambda row: row["conversations"][0],
    }[name]
    files = {"llamafactory": "preference/train.jsonl"}
    (row, *_) = rows_of(tmp_path / "out", files.get(name, "train.jsonl"))
    said = first(row)
    assert said.get("content", said.get("value")) == "Teacher: What is half of 4?\n\nStudent: No idea."
    assert said.get("role", said.get("from")) in ("user", "human")
    if name == "refuel":
        assert row["h"] == 0
        assert row["chosen"][: 2 * row["h"] + 1] == row["reject"][: 2 * row["h"] + 1]
        assert row["chosen"][2 * row["h"] + 1] != row["reject"][2 * row["h"] + 1]


@pytest.mark.parametrize("name", ["trl-dpo", "trl-kto", "openrlhf", "llamafactory", "refuel"])
def test_a_turn_before_which_nothing_was_said_has_no_prompt(name: str, tmp_path: Path) -> None:
    run = MemoryRun(pairs=[compared(0, turns("T Why?", "S Ok."), turns("T How?", "S Ok."))])
    with pytest.raises(ShortError, match=r"no_prompt 1 .* `--opening user` lets the user speak first"):
        write(name, run, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    assert write(name, run, tmp_path / "out", opening="user").rows


@pytest.mark.parametrize("name", ["sft", "trl-prompts"])
def test_single_responses_have_a_prompt_or_are_left_out(name: str, tmp_path: Path) -> None:
    made = write(name, RUN, tmp_path / "out")
    assert made.left_out["no_prompt"] > 0
    assert all(row["prompt"] for row in rows_of(tmp_path / "out"))


def test_a_template_of_an_opening_is_an_opening(tmp_path: Path) -> None:
    write("mtpo", RUN, tmp_path / "out", opening_prompt="export_opening")
    assert rows_of(tmp_path / "out")[0]["first"][0]["content"] == LINE


@pytest.mark.parametrize("name", CHATS)
def test_every_export_says_whom_it_trains(name: str, tmp_path: Path) -> None:
    try:
        made = write(name, RUN, tmp_path / "out", train="student")
    except ShortError:
        return
    assert made.as_json()["trains"] == "Student"
    assert "trains     Student" in made.list_lines()


def test_a_format_that_keeps_the_roles_trains_nobody(tmp_path: Path) -> None:
    made = write("ed", RUN, tmp_path / "out")
    assert made.as_json()["trains"] is None
    assert "trains     no role: all roles stay as they are" in made.list_lines()


class TestForum:
    """The role that answers is trained; the job's members decide it, not a role's name."""

    def make(self, folder: Path, *changes: str) -> Path:
        simulator = "backends={default: {type: simulator}}"
        given = [word for one in ("conversations=4", simulator, *changes) for word in ("--set", one)]
        assert call("generate", ROOT / "jobs" / "homework_help.yaml", *given, "-o", folder) == 0
        return folder

    @pytest.mark.parametrize(
        ("changes", "trained"),
        [
            ((), "Tutor"),
            (("forum={asker: asker, members: {tutor: {actor: User}}}",), "Classmate"),
            (("forum={asker: asker, members: {tutor: {weight: 0}}}",), "Classmate"),
        ],
    )
    def test_the_agent_is_trained(
        self, changes: tuple[str, ...], trained: str, command: Command, tmp_path: Path
    ) -> None:
        run = self.make(tmp_path / "run", *changes)
        ended = command("export", run, "--to", "trl-sft", "-o", tmp_path / "out")
        assert ended.code == 0, ended.err
        assert f"trains     {trained}" in ended.out
        told = command(
            "export", run, "--to", "trl-sft", "--train", "asker", "-o", tmp_path / "asker", "--json"
        )
        assert json.loads(told.out)["trains"] == "Asker"


class TestCredit:
    def test_labels_of_wholes_are_warned_of_where_a_row_holds_a_turn(self, tmp_path: Path) -> None:
        right = {one.credit: one.find_case(ALL).right for one in read_figures().figures if one.by == "oracle"}
        made = write("trl-dpo", RUN, tmp_path / "dpo")
        (warning,) = [one for one in made.remarks if "whole conversations" in one]
        assert warning.startswith("2 of 2 rows hold one turn")
        assert f"{right['whole']:.0%}" in warning
        assert f"{right['response']:.0%}" in warning
        assert "--credit response" in warning

    def test_other_labels_and_other_formats_are_not(self, tmp_path: Path) -> None:
        of_responses = MemoryRun(pairs=[compared(0, GOOD, BAD, compare="response")])
        assert write("trl-dpo", of_responses, tmp_path / "dpo").remarks == ()
        assert write("mtpo", RUN, tmp_path / "mtpo").remarks == ()

    def test_people_judge_wholes_too(self, tmp_path: Path) -> None:
        by_people = MemoryRun(pairs=[compared(0, GOOD, BAD, by="human")])
        assert any(
            "whole conversations" in one for one in write("trl-dpo", by_people, tmp_path / "o").remarks
        )
