"""Layers in runs that are made of others: the labels of a divided run are those of the undivided one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.store.layers import read_layer
from tests.cli.command import Command
from tests.layers import put_layer

JOB: dict[str, Any] = {
    "name": "t", "seed": 5, "conversations": 5, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip
LABELS = Path("layers", "teacher_moves", "labels.jsonl")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def piece(command: Command, folder: Path, part: str | None = None, **more: Any) -> Path:
    folder.mkdir()
    (folder / "job.yaml").write_text(json.dumps(JOB | more))
    ended = command(
        "generate", folder / "job.yaml", "-o", folder / "run", *(["--range", part] if part else [])
    )
    assert ended.code == 0, ended.err
    return folder / "run"


def annotate(run: Path, **more: Any) -> edgen.Layer:
    return edgen.annotate(run, "teacher_moves", annotators=2, progress=False, **more)


def test_merged_pieces_have_the_labels_of_the_whole(command: Command, tmp_path: Path) -> None:
    arms: Any = {"arms": {"x": {}, "a": {"prompt": "education_dialogue_json"}}}
    whole = piece(command, tmp_path / "whole", **arms)
    annotate(whole)
    pieces = [piece(command, tmp_path / part[0], part, **arms) for part in ("0:3", "2:5")]
    for run in pieces:
        annotate(run)
    merged = tmp_path / "merged"
    ended = command("merge", *reversed(pieces), "-o", merged)
    assert (ended.code, ended.err) == (0, "")
    assert (merged / LABELS).read_bytes() == (whole / LABELS).read_bytes()
    assert (merged / "layers/teacher_moves/layer.json").is_file()
    assert command("status", merged).out.count("layer      teacher_moves") == 2
    again = annotate(merged)
    assert again.made is not None
    assert [one.labelled for one in again.made.annotators] == [sum(1 for _ in read_layer(whole / LABELS))] * 2
    assert (merged / LABELS).read_bytes() == (whole / LABELS).read_bytes()
    edgen.select(merged / "arms" / "a", tmp_path / "chosen", "scenario.index < 2")
    chosen = {unit.id for unit in read_layer(tmp_path / "chosen" / LABELS)}
    assert chosen == {f"t.a-{number:06}-r0" for number in range(2)}


def test_layers_that_differ_stay_where_they_are(command: Command, tmp_path: Path) -> None:
    a, b = (piece(command, tmp_path / part[0], part) for part in ("0:3", "3:5"))
    annotate(a)
    annotate(b, backends={"default": {"type": "simulator", "model": "other"}})
    put_layer(b, "mine", lambda one, _: [one.id], whole=True)
    ended = command("merge", a, b, "-o", tmp_path / "merged", "--json")
    assert ended.code == 0, ended.err
    told = " ".join(ended.err.split())
    assert "The layer teacher_moves is not carried on: the annotator default" in told
    assert [path.name for path in (tmp_path / "merged" / "layers").iterdir()] == ["mine"]
    assert [unit.labels for unit in read_layer(tmp_path / "merged/layers/mine/labels.jsonl")] == [
        (f"t-{number:06}-r0",) for number in (3, 4)
    ]


def test_where_two_say_something_else_the_first_counts(command: Command, tmp_path: Path) -> None:
    a, b = (piece(command, tmp_path / part[0], part) for part in ("0:3", "2:5"))
    put_layer(a, "mine", lambda *_: ["a"], whole=True)
    put_layer(b, "mine", lambda *_: ["b"], whole=True)
    assert command("merge", a, b, "-o", tmp_path / "merged").code == 0
    said = [unit.labels for unit in read_layer(tmp_path / "merged/layers/mine/labels.jsonl")]
    assert said == [("a",)] * 3 + [("b",)] * 2
    dropped = [json.loads(line) for line in (tmp_path / "merged/merged/duplicates.jsonl").open()]
    assert [(one["id"], one["labels"]) for one in dropped if one["kind"] == "labels"] == [
        ("t-000002-r0", ["b"]),
    ]


def test_labels_that_a_job_puts_on_its_conversations_come_along(command: Command, tmp_path: Path) -> None:
    labels = {"labels": {"quality": {"unit": "conversation"}}}
    whole, *pieces = (
        piece(command, tmp_path / f"p{number}", part, **labels)
        for number, part in enumerate([None, "0:3", "2:5"])
    )
    assert command("merge", *pieces, "-o", tmp_path / "merged").code == 0
    for name in ("labels.jsonl", "layer.json"):
        file = Path("layers", "quality", name)
        assert (tmp_path / "merged" / file).read_bytes() == (whole / file).read_bytes()
    edgen.open(tmp_path / "merged").export("csv", tmp_path / "csv")
    assert "labels.quality" in (tmp_path / "csv" / "train.csv").read_text().splitlines()[0]
