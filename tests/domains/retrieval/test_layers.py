"""Layers in exports: columns for runs with layers, unchanged bytes for runs without, and a layer in place of
turns' labels."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.errors import ShortError, UsageError
from edgen.core.pair import Candidate
from edgen.domains.retrieval.export.msdialog import CODES
from tests.cli.command import Command
from tests.layers import put_layer

JOB: dict[str, Any] = {
    "name": "t", "seed": 3, "conversations": 8, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip
INTENTS = [*CODES]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgen.generate(JOB, output=tmp_path_factory.mktemp("layers") / "run", progress=False).folder


def intents(one: Candidate, turn: int | None) -> list[str] | None:
    """Return labels for all conversations but scenario 3; no label has a majority in every fourth turn."""
    if one.scenario == 3 or turn is None:
        return None
    return [] if turn % 4 == 3 else [INTENTS[turn % 12], *(["Junk"] if turn % 12 == 2 else [])]


@pytest.fixture(scope="module")
def run(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(plain, tmp_path_factory.mktemp("labelled") / "run"))
    put_layer(folder, "intents", intents, annotators=["a", "b"])
    put_layer(folder, "quality", lambda one, _: [str(one.scenario % 5)] if one.scenario else None, whole=True)
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def conversations(run: Path) -> dict[str, edgen.Conversation]:
    return {one.id: one for one in edgen.open(run).conversations()}


def expected(one: edgen.Conversation) -> list[list[str] | None] | None:
    number = int(one.id.split("-")[1])
    if number == 3:
        return None
    return [
        [] if i % 4 == 3 else [INTENTS[i % 12], *(["Junk"] if i % 12 == 2 else [])]
        for i in range(len(one.turns))
    ]


def test_a_table_for_the_hub_has_a_column_a_layer_and_an_annotator(run: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    edgen.open(run).export("hf", tmp_path / "hf")
    loaded = datasets.load_dataset(str(tmp_path / "hf"), cache_dir=str(tmp_path / "cache"))
    said = conversations(run)
    rows = [row for split in loaded.values() for row in split]
    assert {row["id"] for row in rows} == {*said}
    for row in rows:
        number = int(row["id"].split("-")[1])
        for column in ("labels.intents", "labels.intents.by.a", "labels.intents.by.b"):
            assert row[column] == expected(said[row["id"]])
        assert row["labels.quality"] == ([str(number % 5)] if number else None)
    assert "labels.quality.by.a" not in rows[0]
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "- `labels.intents.by.b`: labels by the annotator b for each turn" in card
    assert "- `labels.quality`: labels by the annotator a for the conversation" in card
    fields = json.loads((tmp_path / "hf" / "croissant.json").read_text())["recordSet"][1]["field"]
    assert [one["name"] for one in fields if one.get("repeated")][1:] == [
        "labels.intents", "labels.intents.by.a", "labels.intents.by.b", "labels.quality",
    ]  # fmt: skip


def test_flat_turns_and_a_corpus_have_them_too(run: Path, tmp_path: Path) -> None:
    said = conversations(run)
    edgen.open(run).export("csv", tmp_path / "csv")
    edgen.open(run).export("convokit", tmp_path / "corpus")
    rows = [row for file in (tmp_path / "csv").glob("*.csv") for row in csv.DictReader(file.open(newline=""))]
    assert len(rows) == sum(len(one.turns) for one in said.values())
    for row in rows:
        labels = expected(said[row["id"]])
        assert row["labels.intents"] == ", ".join((labels and labels[int(row["turn"])]) or [])
    utterances = [json.loads(line) for line in (tmp_path / "corpus" / "utterances.jsonl").open()]
    for one in utterances:
        labels = expected(said[one["conversation_id"]])
        assert one["meta"]["labels.intents.by.b"] == (labels and labels[one["meta"]["turn"]])
    whole = json.loads((tmp_path / "corpus" / "conversations.json").read_text())
    assert whole["t-000004-r0"]["meta"]["labels.quality"] == ["4"]
    index = json.loads((tmp_path / "corpus" / "index.json").read_text())
    assert index["utterances-index"]["labels.intents"] == ["<class 'list'>"]
    assert {*index["conversations-index"]} == {*whole["t-000004-r0"]["meta"]}


@pytest.mark.parametrize("name", ["sft", "ed"])
def test_other_formats_are_as_they_are_without_layers(
    plain: Path, run: Path, tmp_path: Path, name: str
) -> None:
    made = [tmp_path / "plain", tmp_path / "labelled"]
    for folder, output in zip((plain, run), made, strict=True):
        edgen.open(folder).export(name, output)
    first, second = ({path.name: path.read_bytes() for path in output.iterdir()} for output in made)
    assert first == second


class TestInPlaceOfTheTurnsOwn:
    def test_intents_are_abbreviated_as_in_the_release(self, run: Path, tmp_path: Path) -> None:
        made = edgen.open(run).export("msdialog-intent", tmp_path / "m", layer="intents")
        assert made.left_out == {"no_labels": 1}
        dialogs: dict[str, Any] = {}
        for file in (tmp_path / "m").glob("*.json"):
            dialogs |= json.loads(file.read_text())
        for name, one in conversations(run).items():
            if (labels := expected(one)) is not None:
                tags = [utterance["tags"] for utterance in dialogs[name]["utterances"]]
                assert tags == [" ".join(CODES[label] for label in found or ()) for found in labels]
                ties = [utterance.get("tie", False) for utterance in dialogs[name]["utterances"]]
                assert ties == [not found for found in labels]
                assert any(ties)
        card = (tmp_path / "m" / "README.md").read_text()
        assert (
            "The labels are those of the layer `intents`: labels by the majority of the annotators (a, b)."
            in card
        )
        assert "edgen export AGAIN --to msdialog-intent --layer intents -o DIR" in card

    def test_a_dialog_of_ties_alone_is_left_out_as_such(self, plain: Path, tmp_path: Path) -> None:
        folder = Path(shutil.copytree(plain, tmp_path / "run"))
        put_layer(folder, "torn", lambda one, _: [] if one.scenario else ["Junk"], annotators=["a", "b"])
        made = edgen.open(folder).export("msdialog-intent", tmp_path / "m", layer="torn")
        assert made.left_out == {"ties": len(conversations(folder)) - 1}
        assert "annotators disagree" in (tmp_path / "m" / "README.md").read_text()

    def test_every_format_that_tells_labels_takes_a_layer(self, run: Path, tmp_path: Path) -> None:
        opened = edgen.open(run)
        made = opened.export("intent-prediction", tmp_path / "i", layer="intents")
        said = conversations(run)
        ties = sum(not found for one in said.values() for found in expected(one) or ())
        others = sum(len(one.turns) for one in said.values() if expected(one) is None)
        assert made.left_out == {"ties": ties, "no_labels": others}
        first = (tmp_path / "i" / "train.tsv").read_text().split("\t")[0]
        assert first == "OQ"
        opened.export("dialogue-acts", tmp_path / "d", layer="intents")
        rows = [json.loads(line) for line in (tmp_path / "d" / "train.jsonl").open()]
        for row in rows:
            assert row["acts"] == (expected(said[row["conversation"]]) or [])[row["turn"]]
        opened.export("sft", tmp_path / "s", layer="intents", actions="labels")
        (row, *_) = [json.loads(line) for line in (tmp_path / "s" / "train.jsonl").open()]
        assert row["actions"]
        assert row["prompt"][-1]["content"].endswith(row["actions"])

    def test_mistakes(self, command: Command, plain: Path, run: Path, tmp_path: Path) -> None:
        def refused(folder: Path, *words: str) -> str:
            ended = command("export", folder, "--to", *words, "-o", tmp_path / "out")
            assert ended.code == 2, ended.err
            assert not (tmp_path / "out").exists()
            return " ".join(ended.err.split())

        assert "has no layer of that name (did you mean 'intents'?)" in refused(
            run, "dialogue-acts", "--layer", "intent"
        )
        assert "it has none yet, and `edgen annotate` makes one" in refused(
            plain, "dialogue-acts", "--layer", "intents"
        )
        assert "this layer labels whole conversations" in refused(run, "dialogue-acts", "--layer", "quality")
        assert "hf has columns for every layer; leave --layer out." in refused(
            run, "hf", "--layer", "intents"
        )
        assert "trl-dpo does not take --layer; cima, dialogue-acts" in refused(
            run, "trl-dpo", "--layer", "intents"
        )
        with pytest.raises(ShortError, match="no turn has a label"):
            edgen.open(plain).export("dialogue-acts", tmp_path / "out")
        with pytest.raises(UsageError, match="--layer 3: expected one or several texts"):
            edgen.open(run).export("dialogue-acts", tmp_path / "out", layer=3)

    def test_what_is_left_out_of_a_layer_is_told(self, run: Path, tmp_path: Path) -> None:
        folder = Path(shutil.copytree(run, tmp_path / "run"))
        file = folder / "layers" / "intents" / "labels.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines[0]["text_sha256"] = lines[1]["text_sha256"]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        edgen.open(folder).export("hf", tmp_path / "hf", files="jsonl")
        card = (tmp_path / "hf" / "README.md").read_text()
        assert "1 unit left out of the layer intents: the text is another one now." in card


def test_conversations_and_tables_in_python(run: Path) -> None:
    opened = edgen.open(run)
    said = conversations(run)
    for one in said.values():
        labels = expected(one)
        found = {unit.turn: [*unit.labels] for unit in one.labels.get("intents", ())}
        assert found == {place: said for place, said in enumerate(labels or []) if said is not None}
    for table in (opened.to_pandas().to_dict("records"), opened.to_polars().to_dicts(), opened.to_dataset()):
        for row in table:
            assert row["labels.intents"] == expected(said[row["id"]])
            number = row["scenario"]
            assert row["labels.quality"] == ([str(number % 5)] if number else None)
