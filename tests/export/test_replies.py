"""Places where the trained side speaks, in formats for online methods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core.values import END_MARKER, Turn
from edgen.export.chat import make_chat
from edgen.export.formats.shared.replies import TrainedReply, iterate_replies
from edgen.export.rows import LeftOut, Row
from edgen.export.write import export
from tests.export.runs import FORMATS, HALF, SPACE, MemoryRun, chat, lesson, options, turns

TALK = turns(
    "S What is half of 4?",
    "T Draw four dots.",
    "T Now halve them.",
    "S Two!",
    "S Thanks.",
    "T Bye.",
)
ENDS_ALONE = lesson(0, 0, turns("T What is half of 4?", "S Two!"))
ENDS_ALONE = msgspec.structs.replace(
    ENDS_ALONE, candidate=msgspec.structs.replace(ENDS_ALONE.candidate, ended_by="Teacher")
)
REFERENCED = {
    "verl-rl": ("prompt", lambda row: row["reward_model"]["ground_truth"]),
    "skyrl": ("prompt", lambda row: row["reward_spec"]["ground_truth"]),
    "open-instruct": ("messages", lambda row: row["ground_truth"]),
}


def _values(name: str, run: MemoryRun, **how: Any) -> list[dict[str, Any]]:
    return [item.value for item in FORMATS[name].rows(run, chat(**how)) if isinstance(item, Row)]


@pytest.mark.parametrize("name", REFERENCED)
def test_a_row_has_what_stands_before_a_reply_and_the_reply_itself(name: str) -> None:
    prompt, reference = REFERENCED[name]
    first, second = _values(name, MemoryRun(taught=[lesson(0, 0, TALK)]))
    assert [message["content"] for message in first[prompt]] == ["What is half of 4?"]
    assert reference(first) == "Draw four dots.\n\nNow halve them."
    assert [message["role"] for message in second[prompt]] == ["user", "assistant", "user"]
    assert reference(second) == "Bye."


@pytest.mark.parametrize("name", ["verl-rl", "skyrl"])
def test_the_reward_is_told_where_a_reply_stands(name: str) -> None:
    _, row = _values(name, MemoryRun(taught=[lesson(4, 0, TALK, "test")]))
    place = row["extra_info"]
    before = [Turn(**turn) for turn in json.loads(place.pop("before"))]
    assert tuple(before) == TALK[:5]
    assert json.loads(place.pop("scenario")) == HALF.values
    assert place == {"index": 4, "id": "tiny-000004-r0", "turn": 1, "role": "Teacher", "split": "test"}


def test_open_instruct_names_a_verifier() -> None:
    row, *_ = _values("open-instruct", MemoryRun(taught=[lesson(0, 0, TALK)]))
    assert list(row) == ["messages", "ground_truth", "dataset", "id", "turn"]
    assert row["dataset"] == "general-quality_ref"


@pytest.mark.parametrize("train", ["Teacher", "Student"])
def test_turns_and_messages_are_of_one_place(train: Any) -> None:
    """The turns before a reply and the reply are the beginning of the conversation, wherever it opens."""
    for opening in ("user", "system", "both"):
        for found in iterate_replies(MemoryRun(taught=[lesson(0, 0, TALK)]), chat(train, opening)):
            assert isinstance(found, TrainedReply)
            assert found.before == TALK[: len(found.before)]
            assert TALK[len(found.before)].role == train
            assert found.reference is not None
            assert found.reference.split("\n\n")[0] == TALK[len(found.before)].text
            said = [message["content"] for message in found.prompt]
            assert not found.before or found.before[-1].text in said[-1]


@pytest.mark.parametrize("name", REFERENCED)
def test_where_the_trained_side_only_ends_there_is_nothing_to_compare_with(name: str) -> None:
    keeping = make_chat(options("trl-sft", end_marker="keep", opening="user"), SPACE)
    items = list(FORMATS[name].rows(MemoryRun(taught=[ENDS_ALONE]), keeping))
    assert [item.reason for item in items if isinstance(item, LeftOut)] == ["only_ends"]
    assert len([item for item in items if isinstance(item, Row)]) == 1


def test_prompts_go_up_to_the_end_too() -> None:
    """Prompts may include the last turn: TRL's prompts need no reference."""
    keeping = make_chat(options("trl-sft", end_marker="keep", opening="user"), SPACE)
    rows = [item.value for item in FORMATS["trl-prompts"].rows(MemoryRun(taught=[ENDS_ALONE]), keeping)]  # type: ignore[union-attr]
    assert [(row["turn"], row["prompt"][-1]["content"]) for row in rows][1] == (1, "Two!")


@pytest.mark.parametrize("name", ["trl-prompts", *REFERENCED])
def test_the_same_prompt_of_a_scenario_is_there_once(name: str) -> None:
    run = MemoryRun(taught=[lesson(0, 0, TALK), lesson(0, 1, TALK), lesson(1, 0, TALK)])
    items = list(FORMATS[name].rows(run, chat()))
    assert len([item for item in items if isinstance(item, Row)]) == 4
    assert [item.reason for item in items if isinstance(item, LeftOut)] == ["repeated"] * 2


@pytest.mark.parametrize("name", ["trl-prompts", *REFERENCED])
def test_no_card_of_prompts_promises_the_end_marker(name: str, tmp_path: Path) -> None:
    run = MemoryRun(taught=[lesson(0, 0, turns("T What is half of 4?", "S Two!", "T Bye."))])
    export(run, FORMATS[name], tmp_path / "out", options(name, end_marker="keep"))  # type: ignore[arg-type]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "No message holds the end marker: a prompt ends before the trained side's words." in card
    assert END_MARKER not in card
