"""Layers next to conversations: each unit once, at its own text, by arm; damage is reported in a sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.errors import DataError, RunError
from edgen.evaluation.data_sets import open_data_sets
from edgen.store.layers import LabelsByLayer, describe_layers, list_layer_names
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from tests.layers import put_layer

JOB = {
    "name": "t", "seed": 3, "conversations": 6, "replicates": 2, "space": "education_dialogue",
    "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layers")
    edgen.generate(JOB, output=folder / "plain", progress=False)
    edgen.generate(
        {**JOB, "arms": {"x": {}, "a": {"prompt": "education_dialogue_json"}}},
        output=folder / "arms",
        progress=False,
    )
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "plain", tmp_path / "plain"))


@pytest.fixture
def arms(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "arms", tmp_path / "arms"))


def of_samples(path: Path) -> dict[str, LabelsByLayer]:
    return {sample.id: sample.labels for data in open_data_sets([path]) for sample in data.samples()}


def of_run(path: Path) -> dict[str, LabelsByLayer]:
    with RunReader(path) as reader:
        return {one.candidate.id: one.labels for one in reader.conversations()}


def said(labels: LabelsByLayer, layer: str) -> dict[int | None, tuple[str, ...]]:
    return {unit.turn: unit.labels for unit in labels.get(layer, ())}


def test_without_layers_there_is_nothing(run: Path) -> None:
    assert {tuple(labels) for labels in (of_run(run) | of_samples(run)).values()} == {()}


def test_each_conversation_has_its_own_units(run: Path) -> None:
    put_layer(run, "who", lambda one, turn: (f"{one.id}/{turn}",))
    put_layer(run, "few", lambda one, _: ("yes",) if one.scenario in (1, 4) else None, whole=True)
    found = of_run(run)
    assert found == of_samples(run)
    with RunReader(run) as reader:
        for one in reader.conversations():
            turns = range(len(one.candidate.turns))
            assert said(found[one.candidate.id], "who") == {
                turn: (f"{one.candidate.id}/{turn}",) for turn in turns
            }
            sampled = one.candidate.scenario in (1, 4)
            assert said(found[one.candidate.id], "few") == ({None: ("yes",)} if sampled else {})
    assert list_layer_names(RunFolder(run)) == ["few", "who"]


def test_an_arm_has_the_layers_of_its_run_and_its_own(arms: Path) -> None:
    put_layer(arms, "who", lambda one, _: (one.id,), whole=True)
    put_layer(arms / "arms" / "a", "own", lambda one, _: (one.arm or "none",), whole=True)
    found = of_run(arms)
    assert len(found) == 24
    assert all(
        said(labels, "who") == {None: (name,)} and "own" not in labels for name, labels in found.items()
    )
    one = of_run(arms / "arms" / "a")
    assert len(one) == 12
    assert all((*labels,) == ("own", "who") for labels in one.values())
    assert all(said(labels, "who") == {None: (name,)} for name, labels in one.items())
    by_arm = open_data_sets([arms])
    assert [len(of_samples(data_set_path)) for data_set_path in (arms, arms / "arms" / "a")] == [24, 12]
    for data in by_arm:
        assert all(said(sample.labels, "who") == {None: (sample.id,)} for sample in data.samples())
        assert not data.stale_labels


def test_what_is_not_there_any_more_is_left_out_and_counted(run: Path) -> None:
    file = put_layer(run, "who", lambda one, turn: (f"{one.id}/{turn}",))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    at = [number for number, line in enumerate(lines) if line["turn"] == 1]
    lines[at[0]]["text_sha256"] = "0" * 64
    lines[at[1]]["turn"] = 999
    gone = lines[at[2]]["id"]
    changed = [
        {**line, "id": line["id"].replace("-r0", "-r9")} if line["id"] == gone else line for line in lines
    ]
    changed.insert(0, {**lines[0], "id": "a stranger's"})
    # A file with repeated or unordered turns is refused, so the odd turn goes to the end of its conversation.
    changed.sort(key=lambda line: (line["id"] == "a stranger's", line["id"], line["turn"]))
    file.write_text("".join(json.dumps(line) + "\n" for line in changed))
    (data,) = open_data_sets([run])
    for _ in range(2):
        found = {sample.id: sample.labels for sample in data.samples()}
        assert found[gone] == {}
        assert sum(len(labels.get("who", ())) for labels in found.values()) == (
            len(lines) - 2 - sum(line["id"] == gone for line in lines)
        )
        assert data.stale_labels == {
            "who: the text is another one now": 2,
            "who: the conversation is not in the run": 1 + sum(line["id"] == gone for line in lines),
        }


def swap(lines: list[bytes]) -> list[bytes]:
    return [*lines[20:], *lines[:20]]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (swap, "its scenario is earlier than that of the line before it; each unit occurs once"),
        (lambda lines: [lines[0], *lines], "line 2: this unit occurs twice"),
        (lambda lines: [*lines, b'{"id": "t-000005-r1"}'], "this is not a line of labels"),
        (lambda lines: [lines[0][:40], *lines[1:]], "line 1: this is not a line of labels"),
        (lambda lines: [b"\xff" * 9, *lines], "line 1: this is not a line of labels"),
        (lambda lines: [b"[" * 100_000, *lines], "line 1: this is not a line of labels"),
        (lambda lines: [b'"' + b"x" * (1 << 24) + b'"', *lines], "it is longer than 16 MB"),
    ],
)
def test_a_damaged_layer_is_a_sentence(
    run: Path, damage: Callable[[list[bytes]], list[bytes]], told: str
) -> None:
    file = put_layer(run, "who", lambda _, turn: (str(turn),))
    file.write_bytes(b"\n".join(damage(file.read_bytes().splitlines())) + b"\n")
    with pytest.raises(DataError) as problem:
        of_samples(run)
    assert told in str(problem.value)
    assert str(file) in str(problem.value)


def test_names_and_kinds_that_no_column_can_have(run: Path) -> None:
    put_layer(run, "odd\nname", lambda *_: ["x"])
    put_layer(run, "my moves", lambda *_: ["x"])
    assert list_layer_names(RunFolder(run)) == ["my moves"]
    file = put_layer(run, "who", lambda *_: ["x"], annotators=["a`|\n"])
    with pytest.raises(DataError, match="names that do not begin with"):
        describe_layers(RunFolder(run))
    put_layer(run, "who", lambda *_: ["x"], annotators=["job:annotator-2"])
    whole = put_layer(run, "whole", lambda *_: ["x"], whole=True)
    assert [(one.name, one.whole, one.annotators) for one in describe_layers(RunFolder(run))] == [
        ("my moves", False, ("a",)), ("who", False, ("job:annotator-2",)), ("whole", True, ("a",)),
    ]  # fmt: skip
    whole.write_bytes(whole.read_bytes() + file.read_bytes())
    with pytest.raises(DataError, match="it mixes lines for turns"):
        describe_layers(RunFolder(run))


def test_too_many_layers_and_what_is_no_file(run: Path, tmp_path: Path) -> None:
    many: Any = [run / "layers" / f"l{number}" for number in range(201)]
    for folder in many:
        folder.mkdir(parents=True)
        (folder / "labels.jsonl").touch()
    with pytest.raises(RunError, match="there are 201 layers; at most 200 are allowed"):
        of_run(run)
    for folder in many:
        shutil.rmtree(folder)
    (run / "layers" / "odd" / "labels.jsonl").mkdir(parents=True)
    with pytest.raises(DataError, match="cannot be read"):
        of_run(run)
