"""Rows of single responses from sessions with exercises; the prompt states their actions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.values import Turn

JOB: dict[str, Any] = {
    "name": "t",
    "seed": 7,
    "conversations": 3,
    "space": "italian_shapes",
    "protocol": "tutoring",
    "tutoring": {
        "student_turns": 8,
        "turns_per_exercise": 3,
        "wanted": {"Hint": 2, "Question": 1, "Correction": 1},
    },
    "backends": {"default": {"type": "simulator"}},
    "split": {"test": 0},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    return edgen.generate(JOB, output=tmp_path_factory.mktemp("responses") / "run", progress=False)


def rows_of(run: edgen.Run, name: str, folder: Path, **options: Any) -> list[dict[str, Any]]:
    run.export(name, folder, **options)
    return [json.loads(line) for line in (folder / "train.jsonl").read_bytes().splitlines()]


def responses_of(run: edgen.Run) -> list[Turn]:
    """Return the tutor's turns that answer, without the questions of exercises."""
    return [turn for one in run.conversations() for turn in one.turns if turn.role == "Tutor" and turn.labels]


def test_each_response_has_its_prompt(run: edgen.Run, tmp_path: Path) -> None:
    rows = rows_of(run, "sft", tmp_path / "out")
    assert [row["completion"][0]["content"] for row in rows] == [turn.text for turn in responses_of(run)]
    at = 0
    for conversation in run.conversations():
        context: list[str] = []
        for turn in conversation.turns:
            if "exercise" in turn.data:
                context = []
            elif turn.role == "Tutor":
                first, *rest = rows[at]["prompt"]
                assert [message["content"] for message in rest] == context
                assert [message["role"] for message in rest] == ["assistant", "user"] * (len(context) // 2)
                assert first["role"] == "user"
                assert first["content"].startswith("The picture shows")
                assert "\nThe right answer: " in first["content"]
                assert "\nWhat may be told:\n- " in first["content"]
                at += 1
            context.append(turn.text)
    assert at == len(rows)
    assert not any("Do this now" in json.dumps(row["prompt"]) for row in rows)


def test_the_exercise_at_hand_is_told(run: edgen.Run, tmp_path: Path) -> None:
    """A session has several exercises; the concepts of a row are those of its own exercise."""
    rows = rows_of(run, "sft", tmp_path / "out", opening="both")
    exercises = {row["prompt"][2]["content"] for row in rows}
    assert len(exercises) > 3
    for row in rows:
        system, opening, question = (message["content"] for message in row["prompt"][:3])
        assert "Tutor's style: " in system
        assert "The right answer: " in system
        assert opening == "Let us begin."
        assert row["colour"] in question
        assert row["shape"] in question


@pytest.mark.parametrize("by", ["labels", "wanted"])
def test_what_a_response_is_to_do_is_told(run: edgen.Run, tmp_path: Path, by: str) -> None:
    rows = rows_of(run, "sft", tmp_path / by, actions=by)
    told = [row["prompt"][-1]["content"].partition("\n\nDo this now: ")[2] for row in rows]
    said = responses_of(run)
    if by == "labels":
        assert told == [", ".join(turn.labels) for turn in said] == [row["actions"] for row in rows]
    else:
        assert told == [turn.data["wanted"] for turn in said]
    assert (
        f"Do this now: …`: an instruction for the response, which names {'its' if by == 'labels' else 'the'} "
        in (tmp_path / by / "README.md").read_text()
    )


def test_alternatives_are_responses_to_the_same_prompt(run: edgen.Run, tmp_path: Path) -> None:
    rows = rows_of(run, "sft", tmp_path / "out", alternatives=True)
    texts = Counter(row["completion"][0]["content"] for row in rows)
    every = [one.text for turn in responses_of(run) for one in (turn, *turn.alternatives)]
    assert set(texts) == set(every)
    assert len(rows) > len(responses_of(run))
    keys = [json.dumps([row["id"], row["prompt"], row["completion"]]) for row in rows]
    assert len(set(keys)) == len(keys), "no response of a session stands twice behind the same prompt"
    prompts = rows_of(run, "trl-prompts", tmp_path / "prompts", alternatives=True, actions="labels")
    sets = {json.dumps([row["id"].rpartition("-")[0], row["prompt"]]) for row in prompts}  # of a scenario
    assert len(sets) == len(prompts)
    plain = rows_of(run, "trl-prompts", tmp_path / "plain")
    assert len(plain) == len(responses_of(run)) < len(prompts), "a prompt for each thing that is to be done"


async def objecting(request: edgen.Request) -> str:
    """Play a student who says that the third text it receives makes no sense."""
    spoken = sum(message.role == "assistant" for message in request.messages)
    return '{"nonsense": true}' if spoken == 2 else '{"text": "Is it viola?", "actions": ["Guess"]}'


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    folder = tmp_path_factory.mktemp("flagged") / "run"
    return edgen.generate(JOB, backends={"student": objecting}, output=folder, progress=False)


def test_what_was_called_nonsense_is_no_example(flagged: edgen.Run, tmp_path: Path) -> None:
    exported = flagged.export("sft", tmp_path / "out")
    said = [turn for turn in responses_of(flagged) if turn.data.get("nonsense")]
    assert exported.left_out["nonsense"] == len(said) == 3
    assert sum(exported.rows["default"].values()) + sum(exported.left_out.values()) == len(
        responses_of(flagged)
    )


def test_what_was_served_from_elsewhere_is_no_example(tmp_path: Path) -> None:
    """Students are served from a pool: only a tutor's own response to that turn counts as one."""
    served = edgen.generate(
        JOB,
        tutoring={"student_turns": 3, "choose": "pool", "rounds": 2},
        conversations=2,
        output=tmp_path / "run",
        progress=False,
    )
    exported = served.export("sft", tmp_path / "out", alternatives=True)
    turns = responses_of(served)
    assert exported.left_out["served"] == sum(turn.data["served"] != "new" for turn in turns) > 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_bytes().splitlines()]
    given = {one.text for turn in turns for one in turn.alternatives}
    assert {row["completion"][0]["content"] for row in rows} <= given
    assert sum(exported.rows["default"].values()) > 0
    prompts = served.export("trl-prompts", tmp_path / "prompts")
    assert sum(prompts.rows["default"].values()) == len(turns), "there is a prompt before each of them"


def test_the_student_can_be_trained(run: edgen.Run, tmp_path: Path) -> None:
    rows = rows_of(run, "sft", tmp_path / "out", train="student")
    said = [turn.text for one in run.conversations() for turn in one.turns if turn.role == "Student"]
    assert [row["completion"][0]["content"] for row in rows] == said
    text = json.dumps(rows)
    assert "The right answer" not in text
    assert "What may be told" not in text
