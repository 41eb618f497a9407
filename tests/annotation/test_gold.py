"""People as annotators, sheets for them, and layers against gold: each given label counts once."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.api.annotating import AnnotatedRun
from edgen.evaluation.gold_agreement import GoldFigures, describe_gold
from edgen.store.layers import UnitLabels
from tests.cli.command import Command

JOB = {
    "name": "t", "seed": 3, "conversations": 8, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip
MOVES = ("Focus", "Probing", "Telling", "Generic")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = edgen.generate(JOB, output=tmp_path_factory.mktemp("made") / "run", progress=False)
    edgen.annotate(run, "teacher_moves", by=["model=default"], progress=False)
    return run.folder


def units(run: Path) -> list[UnitLabels]:
    return [*edgen.annotate(run, layer="teacher_moves", progress=False)]


def line(unit: UnitLabels, label: str, **more: Any) -> str:
    return json.dumps({"id": unit.id, "turn": unit.turn, "labels": [label], **more}) + "\n"


def other(label: str) -> str:
    return MOVES[(MOVES.index(label) + 1) % 4]


def made_of(layer: Any) -> AnnotatedRun:
    assert layer.made is not None
    found: AnnotatedRun = layer.made
    return found


class TestGold:
    def test_file_table_and_layer_say_the_same(self, run: Path, tmp_path: Path) -> None:
        """Gold exists for all units except two; in every fourth it is the next label."""
        here = units(run)
        gold = {(unit.id, unit.turn): other(unit.labels[0]) if place % 4 == 0 else unit.labels[0] for place, unit in enumerate(here[2:])}  # fmt: skip
        lines, table = tmp_path / "gold.jsonl", tmp_path / "gold.csv"
        lines.write_text("".join(line(unit, gold[unit.id, unit.turn]) for unit in here[2:]))
        rows = [f"{name};{turn};{label.lower()}" for (name, turn), label in gold.items()]
        table.write_text("\ufeff" + "\r\n".join(["id;turn;labels", *rows, f"{here[0].id};{here[0].turn};"]))
        edgen.annotate(run, "teacher_moves", layer="experts", people=table, progress=False)
        found = [
            made_of(edgen.annotate(run, layer="teacher_moves", gold=named, progress=False)).gold
            for named in (lines, table, "experts")
        ]
        assert found[0] is not None
        assert all(one is not None and one.units == len(gold) for one in found)
        assert all(one is not None and one.majority == found[0].majority for one in found)
        self.check(found[0], here[2:], [*gold.values()])
        assert max(map(len, describe_gold(found[0]))) <= 80

    def check(self, found: GoldFigures, here: list[UnitLabels], gold: list[str]) -> None:
        given = [unit.labels[0] for unit in here]
        assert (found.ties, found.unlabelled, [*found.annotators]) == (0, 0, ["model"])
        right = sum(one == theirs for one, theirs in zip(given, gold, strict=True))
        assert found.majority.exact is not None
        assert found.majority.exact.value == pytest.approx(right / len(gold), abs=1e-6)
        for label, one in found.majority.labels.items():
            assert one.bias is not None
            assert one.bias.low is not None
            both = sum(label in pair and pair[0] == pair[1] for pair in zip(given, gold, strict=True))
            assert one.bias.value == pytest.approx(
                (given.count(label) - gold.count(label)) / len(gold), abs=1e-6
            )
            assert one.recall is None or one.recall.value == pytest.approx(both / gold.count(label), abs=1e-5)

    def test_what_gold_alone_has_is_counted_and_a_tie_is_no_answer(self, run: Path, tmp_path: Path) -> None:
        here = units(run)
        dissenting, gold = tmp_path / "kim.jsonl", tmp_path / "gold.jsonl"
        dissenting.write_text(line(here[0], other(here[0].labels[0])))
        gold.write_text("".join(line(unit, unit.labels[0]) for unit in here))
        edgen.annotate(run, "teacher_moves", by="model=default", people=dissenting, sample=8, progress=False)
        found = made_of(edgen.annotate(run, layer="teacher_moves", gold=gold, progress=False)).gold
        assert found is not None
        assert (found.units, found.ties, found.unlabelled) == (len(here), 1, 0)
        assert found.majority.exact is not None
        assert found.majority.exact.value == pytest.approx(1 - 1 / len(here), abs=1e-5)
        edgen.annotate(run, "teacher_moves", layer="few", people=dissenting, progress=False)
        few = made_of(edgen.annotate(run, layer="few", gold="teacher_moves", progress=False)).gold
        assert few is not None
        assert (few.units, few.unlabelled) == (0, len(here) - 1), "the unit that is a tie in gold has none"

    def test_to_look_asks_nobody_and_writes_nothing(self, command: Command, run: Path) -> None:
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        ended = command("annotate", run, "--layer", "teacher_moves", "--json")
        assert ended.code == 0, ended.err
        told = json.loads(ended.out)
        assert told["annotators"] == []
        assert told["units"] == len(units(run)) == told["figures"]["units"]
        after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        assert {path for path in after if after[path] != before.get(path)} <= {
            path for path in after if path.name.endswith((".db-shm", ".db-wal", ".lock"))
        }

    def test_what_cannot_be_gold_is_a_sentence_with_its_line(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        unit, kept = units(run)[0], (run / "layers" / "teacher_moves" / "labels.jsonl").read_bytes()
        good = {"id": unit.id, "turn": unit.turn, "labels": ["Focus"]}
        bad = [
            good, good, {**good, "id": "t-000999-r0"}, {**good, "turn": 99}, {**good, "turn": 1}, {**good, "turn": True},
            {**good, "labels": ["Hint"]}, {**good, "labels": ["Focus", "Telling"]}, {**good, "labels": 7}, {**good, "lables": 1},
            {**good, "text_sha256": "0"}, [1], {"id": unit.id},
        ]  # fmt: skip
        file = tmp_path / "gold.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in bad) + "{\n")
        ended = command("annotate", run, "--layer", "teacher_moves", "--gold", file)
        assert ended.code == 2
        said = " ".join(ended.err.split())
        for clause in (
            "13 problems in this file of labels",
            "line 2: this unit is already in line 1",
            "line 3: id: this run has no accepted conversation with the id 't-000999-r0'",
            "line 4: turn: there is no turn 99; this conversation has 0 to",
            "line 5: turn: 1 is Student's, and the labels are for turns of Teacher, Tutor",
            "line 6: turn: expected its number, from 0 on, got True",
            "line 7: labels: it names the label hint, which there is not (there are Focus,",
            "line 8: labels: it names 2 labels, and one is asked for",
            "line 9: labels: it names no label",
            "line 10: unknown key 'lables' (did you mean 'labels'?)",
            "line 11: the run's text differs now",
            "line 12: expected an object with the keys id, labels and turn",
            "line 13: the key labels is missing",
            "line 14: this is not valid JSON: {",
        ):
            assert clause in said, said
        for text, clause in {
            "": "it holds no labels",
            "id,turn\nx,1\n": "names no column labels",
            'id,turn,labels\nx,"1': "line 2: this is not valid CSV",
            "id,turn,labels\nx,1\n": "line 2: there are 2 cells, and the heading has 3",
            f"id,turn,labels\n{unit.id},0,\n": "1 units in it have none yet",
        }.items():
            file.write_text(text)
            assert clause in " ".join(
                command("annotate", run, "--layer", "teacher_moves", "--gold", file).err.split()
            )
        refused = command("annotate", run, "--layer", "teacher_moves", "--gold", "teacher_moves")
        assert "this is the layer itself" in refused.err
        assert "no such layer of this run" in command("annotate", run, "--layer", "teacher_moves", "--gold", "x").err  # fmt: skip
        edgen.annotate(run, "student_states", progress=False)
        assert "this layer has labels that the other one lacks" in " ".join(
            command("annotate", run, "--layer", "teacher_moves", "--gold", "student_states").err.split()
        )
        assert "there is no layer x" in command("annotate", run, "--layer", "x").err
        assert (run / "layers" / "teacher_moves" / "labels.jsonl").read_bytes() == kept


class TestPeople:
    def test_a_person_is_an_annotator_and_nothing_said_is_lost(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        here = units(run)
        file = tmp_path / "votes.jsonl"
        said = [line(unit, unit.labels[0], annotator="kim") for unit in here[:5]]
        file.write_text("".join([*said, line(here[0], "Telling", annotator="lee")]))
        options = ("annotate", run, "--labels", "teacher_moves", "--people", file, "--json")
        first = json.loads(command(*options).out)
        assert [(one["annotator"], one["new"], one["changed"]) for one in first["people"]] == [
            ("kim", 5, 0),
            ("lee", 1, 0),
        ]
        assert first["annotators"] == [], "no model is asked"
        after = units(run)
        assert [[*unit.annotators] for unit in after[:2]] == [["model", "kim", "lee"], ["model", "kim"]]
        assert len(after) == len(here)
        files = {path: path.read_bytes() for path in (run / "layers" / "teacher_moves").rglob("*.jsonl")}
        again = json.loads(command(*options).out)
        assert [(one["new"], one["changed"], one["labelled"]) for one in again["people"]] == [
            (0, 0, 5),
            (0, 0, 1),
        ]
        assert {path: path.read_bytes() for path in files} == files
        file.write_text(line(here[0], "Generic", annotator="lee"))
        changed = json.loads(command(*options).out)
        assert [(one["annotator"], one["new"], one["changed"]) for one in changed["people"]] == [
            ("lee", 0, 1)
        ]
        assert units(run)[0].annotators["lee"] == ("Generic",)
        kept = run / "layers" / "teacher_moves" / "annotators" / "lee.jsonl"
        assert [json.loads(one)["labels"] for one in kept.read_text().splitlines()] == [["Telling"], ["Generic"]]  # fmt: skip

    def test_none_takes_a_models_name_nor_a_model_a_persons(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        here = units(run)
        for name, clause in {
            "model": "'model' is a model in the layer",
            "a b": "a b.jsonl: its lines name no annotator, and its own name, 'a b', is not a valid name",
        }.items():
            file = tmp_path / f"{name}.jsonl"
            file.write_text(line(here[0], "Focus") + line(here[1], "Focus"))
            ended = command("annotate", run, "--labels", "teacher_moves", "--people", file)
            assert (ended.code, clause in " ".join(ended.err.split())) == (2, True), ended.err
        assert [*(run / "layers" / "teacher_moves" / "annotators").glob("*.jsonl")] == []
        kim = tmp_path / "kim.jsonl"
        kim.write_text(line(here[0], "Focus"))
        assert command("annotate", run, "--labels", "teacher_moves", "--people", kim).code == 0
        ended = command("annotate", run, "--labels", "teacher_moves", "--by", "kim=default")
        assert "'kim' is a person in the layer" in " ".join(ended.err.split())

    def test_labels_hold_for_the_words_alone_and_go_along_with_chosen_conversations(
        self, run: Path, tmp_path: Path
    ) -> None:
        here = units(run)
        kim = tmp_path / "kim.jsonl"
        kim.write_text("".join(line(unit, "Focus") for unit in here))
        edgen.annotate(run, "teacher_moves", people=kim, progress=False)
        chosen = edgen.select(run, tmp_path / "chosen", where="turns > 0", draw=4).folder
        lee = tmp_path / "lee.jsonl"
        lee.write_text(line(units(chosen)[0], "Focus"))
        edgen.annotate(chosen, "teacher_moves", people=lee, progress=False)
        assert {"kim" in unit.annotators for unit in units(chosen)} == {True}
        other_run = edgen.generate(JOB, output=tmp_path / "other", seed=4, progress=False).folder
        shutil.copytree(run / "layers", other_run / "layers")
        lee.write_text(json.dumps({"id": "t-000000-r0", "turn": 2, "labels": "focus"}))
        edgen.annotate(other_run, "teacher_moves", people=lee, progress=False)
        assert {unit.turn for unit in units(other_run) if "kim" in unit.annotators} <= {0}

    def test_a_sheet_filled_in_is_what_its_person_said(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        sheet = tmp_path / "kim.csv"
        said = ("annotate", run, "--labels", "teacher_moves", "--sheet", sheet, "--sample", "3", "--json")
        told = json.loads(command(*said).out)
        assert (told["conversations"], told["labels"]) == (3, [*MOVES])
        with sheet.open(encoding="utf-8-sig", newline="") as file:
            rows = [*csv.DictReader(file)]
        assert told["units"] == len(rows)
        texts = {(unit.id, str(unit.turn)): unit.text_sha256 for unit in units(run)}
        assert all(texts[row["id"], row["turn"]] == row["text_sha256"] for row in rows)
        assert any(row["before"].startswith("Student: ") for row in rows)
        refused = command(*said)
        assert (refused.code, "this file already exists" in refused.err) == (2, True)
        for row in rows[1:]:
            row["labels"], row["comment"] = "telling", "I am sure"
        with sheet.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter=";")
            writer.writeheader()
            writer.writerows(rows)
        edgen.annotate(run, "teacher_moves", people=[sheet], progress=False)
        labelled = [unit for unit in units(run) if unit.annotators.get("kim") == ("Telling",)]
        assert [(unit.id, str(unit.turn)) for unit in labelled] == [(row["id"], row["turn"]) for row in rows[1:]]  # fmt: skip
        whole = ("annotate", run, "--labels", "quality", "--unit", "conversation", "--sheet")
        assert command(*whole, tmp_path / "q.jsonl").code == 0
        lines = [json.loads(one) for one in (tmp_path / "q.jsonl").read_text().splitlines()]
        assert [(one["turn"], one["labels"]) for one in lines] == [(None, [])] * 8
        own = tmp_path / "own.yaml"
        own.write_text("name: own\nroles: [Wizard]\nlabels:\n- {name: A, definition: a}\n- {name: B, definition: b}\n")  # fmt: skip
        none = command("annotate", run, "--labels", own, "--sheet", tmp_path / "none.csv")
        assert (none.code, "no unit of this run can carry" in none.err) == (2, True)
        assert not (tmp_path / "none.csv").exists()
