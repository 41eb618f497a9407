"""Pairs of responses to one turn: by a student's flag, and by the judge of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

import edgen
from edgen.core import resources
from edgen.core.errors import RunError, ShortError, UsageError
from edgen.core.pair import Pair, ResponsePlace
from edgen.core.values import Turn
from edgen.store.run_reader import RunReader

SCHEMA = json.loads((resources.find_folder("validators") / "pair.schema.json").read_bytes())
JOB: dict[str, Any] = {
    "name": "t",
    "seed": 10,
    "conversations": 3,
    "space": "italian_shapes",
    "protocol": "tutoring",
    "tutoring": {"student_turns": 5, "choose": "judge"},
    "backends": {"default": {"type": "simulator"}},
    "split": {"test": 0},
}


async def objecting(request: edgen.Request) -> str:
    """Play a student who says that the third text it receives makes no sense."""
    spoken = sum(message.role == "assistant" for message in request.messages)
    return '{"nonsense": true}' if spoken == 2 else '{"text": "Is it viola?", "actions": ["Guess"]}'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    """Generate sessions with a judge, which end with a flag."""
    folder = tmp_path_factory.mktemp("responses") / "run"
    return edgen.generate(JOB, backends={"student": objecting}, output=folder, progress=False)


def lines_of(run: edgen.Run) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run.folder / "pairs" / "pairs.jsonl").read_bytes().splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    return lines


def rows_of(run: edgen.Run, name: str, folder: Path, **options: Any) -> list[dict[str, Any]]:
    run.export(name, folder, **options)
    return [json.loads(line) for line in (folder / "train.jsonl").read_bytes().splitlines()]


def responses(turn: Turn) -> tuple[Turn, ...]:
    return (turn, *turn.alternatives)


def expected(run: edgen.Run, by: str) -> set[tuple[str, str, str]]:
    """Return the expected preferences: (conversation, chosen, rejected)."""
    found = set()
    for conversation in run.conversations():
        for turn in conversation.turns:
            if by == "judged":
                marked = {one.data["judged"]: one.text for one in responses(turn) if "judged" in one.data}
                pairs = [(marked["best"], marked["worst"])] if marked else []
            else:
                bad = [one.text for one in responses(turn) if one.data.get("nonsense")]
                pairs = [
                    (one.text, said) for said in bad for one in responses(turn) if "nonsense" not in one.data
                ]
            found |= {(conversation.id, good, worse) for good, worse in pairs if good != worse}
    return found


@pytest.mark.parametrize("by", ["flag", "judged"])
def test_a_pair_for_each_two_that_a_mark_tells_apart(run: edgen.Run, by: Any) -> None:
    run.pairs(by)
    with RunReader(run.folder) as reader:
        labelled = [one for one in reader.compared() if one.pair.label is not None]
    found = set()
    for one in labelled:
        label = one.pair.label
        assert label is not None
        assert (label.by, label.p, label.margin, label.compare, label.judge) == (by, 1, 1, "response", None)
        assert one.a.turns[:-1] == one.b.turns[:-1], "they share their context to the letter"
        assert one.pair.prefix_turns == len(one.a.turns) - 1
        sides = (one.a, one.b) if label.chosen == "a" else (one.b, one.a)
        chosen, rejected = (side.turns[-1] for side in sides)
        mark = getattr(one.pair.signals, by)
        assert {mark.a, mark.b} == ({None, "nonsense"} if by == "flag" else {"best", "worst"})
        found.add((one.a.id, chosen.text, rejected.text))
    assert found == expected(run, by)
    assert found
    for line in lines_of(run):
        assert (line["label"] is None) == (line["left_out"] is not None)
        assert line["origin"] == "responses"


@pytest.mark.parametrize(
    "name", ["trl-dpo", "trl-conversation", "openrlhf", "llamafactory", "mtpo", "refuel", "trl-kto"]
)
def test_every_format_of_pairs_takes_them(run: edgen.Run, tmp_path: Path, name: str) -> None:
    run.pairs("judged")
    exported = run.export(name, tmp_path / name)
    assert next(iter(exported.rows.values()))["train"] > 0
    card = (tmp_path / name / "README.md").read_text()
    assert "it found the chosen one best and the rejected one worst" in card
    assert "rows with a preference by `judged · compare=response`" in card


def test_a_row_holds_the_exercise_and_both_responses(run: edgen.Run, tmp_path: Path) -> None:
    run.pairs("flag")
    rows = rows_of(run, "trl-dpo", tmp_path / "dpo")
    texts = {(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in rows}
    assert texts == {(good, bad) for _, good, bad in expected(run, "flag")}
    for row in rows:
        assert "The right answer: " in row["prompt"][0]["content"]
        assert row["prompt"][-1] == {"role": "user", "content": "Is it viola?"}
    sft = {json.dumps(row["prompt"]) for row in rows_of(run, "sft", tmp_path / "sft", alternatives=True)}
    assert {json.dumps(row["prompt"]) for row in rows} <= sft, "prompts are those of single responses"
    assert (
        "which the student did not see: nobody rated it as good"
        in (tmp_path / "dpo" / "README.md").read_text()
    )


def test_with_actions_told_only_those_that_do_the_same_are_pairs(run: edgen.Run, tmp_path: Path) -> None:
    run.pairs("judged")
    with RunReader(run.folder) as reader:
        pairs = [one for one in reader.compared() if one.pair.label is not None]
    alike = [one for one in pairs if one.a.turns[-1].labels == one.b.turns[-1].labels]
    rows = rows_of(run, "trl-dpo", tmp_path / "out", actions="labels")
    assert len(rows) == len(alike) < len(pairs)
    for row, one in zip(rows, alike, strict=True):
        told = f"\n\nDo this now: {', '.join(one.a.turns[-1].labels)}"
        assert row["prompt"][-1]["content"].endswith(told)
    with pytest.raises(ShortError, match="no_actions"):
        run.export("trl-dpo", tmp_path / "none", actions="wanted")


def test_the_other_side_is_not_trained_by_them(run: edgen.Run, tmp_path: Path) -> None:
    run.pairs("flag")
    with pytest.raises(ShortError, match="differs_at_other_side"):
        run.export("trl-dpo", tmp_path / "out", train="student")


def test_pairs_of_a_run_that_was_changed_are_refused(run: edgen.Run) -> None:
    run.pairs("flag")
    path = run.folder / "pairs" / "pairs.jsonl"
    first = msgspec.json.decode(path.read_bytes().splitlines()[0], type=Pair)
    gone = msgspec.structs.replace(first.b, response=ResponsePlace(first.prefix_turns, 9))
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(first, b=gone)) + b"\n")
    (run.folder / "digests.json").unlink()
    with (
        RunReader(run.folder) as reader,
        pytest.raises(RunError, match=r"a response of t-0.* is not what it was"),
    ):
        list(reader.compared())


def test_what_does_not_go_together_is_a_sentence(run: edgen.Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--signal flag is about single responses alone"):
        run.pairs("flag", credit="rollouts")
    with pytest.raises(UsageError, match="--backend goes with --signal oracle"):
        run.pairs("judged", judge="default")
    plain = edgen.generate(
        JOB, tutoring={"student_turns": 1}, conversations=1, output=tmp_path / "run", progress=False
    )
    with pytest.raises(ShortError, match="No turn of this run has a response that was called nonsense"):
        plain.pairs("flag")
    with pytest.raises(
        ShortError, match="No turn of this run has responses that a judge found best and worst"
    ):
        plain.pairs("judged")
