"""`edgen annotate`: annotators keep their own labels, the majority is as planted, and no call repeats."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.config.label_set import find_label_set, find_majority
from edgen.protocols.labelling_simulated import find_true_labels
from edgen.store.run_reader import RunReader
from tests.cli.command import Command

MOVES, INTENTS = find_label_set("teacher_moves"), find_label_set("msdialog_intents")
JOB = {
    "name": "t", "seed": 3, "conversations": 6, "replicates": 2, "space": "education_dialogue",
    "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgen.generate(JOB, output=tmp_path_factory.mktemp("made") / "run", progress=False).folder


def labels_of(run: Path, layer: str = "teacher_moves") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "layers" / layer / "labels.jsonl").read_text().splitlines()]


def planted(share: float) -> dict[str, Any]:
    return {"type": "simulator", "confusion": {"*": {"*": share}}}


class TestLayer:
    def test_a_line_a_turn_of_the_roles_that_the_set_asks_for(self, run: Path) -> None:
        layer = edgen.annotate(run, "teacher_moves", annotators=3, progress=False)
        with RunReader(run) as reader:
            turns = [
                (one.candidate.id, place, turn.text)
                for one in reader.conversations()
                for place, turn in enumerate(one.candidate.turns)
                if turn.role == "Teacher"
            ]
        units = [*layer]
        assert [(unit.id, unit.turn) for unit in units] == [(name, place) for name, place, _ in turns]
        for unit, (_, _, text) in zip(units, turns, strict=True):
            true = find_true_labels("Teacher", text, MOVES.names, several=False)
            assert unit.annotators == {"default": true, "default-2": true, "default-3": true}
            assert (unit.labels, unit.tie, unit.agreement) == (true, False, 1.0)
        first = (run / "layers" / "teacher_moves" / "labels.jsonl").read_bytes()
        again = edgen.annotate(run, "teacher_moves", annotators=3, progress=False)
        assert again.made is not None
        assert [one.calls.made for one in again.made.annotators] == [len(turns)] * 3
        assert again.file.read_bytes() == first
        assert [row["by.default-2"] for row in layer._list_rows()] == [
            unit.annotators["default-2"] for unit in units
        ]

    def test_whole_conversations_and_all_turns_at_once(self, run: Path) -> None:
        whole = [*edgen.annotate(run, "quality", unit="conversation", progress=False)]
        assert len(whole) == 12
        assert {(unit.turn, unit.role, unit.agreement) for unit in whole} == {(None, None, None)}
        one_by_one = edgen.annotate(run, "teacher_moves", progress=False)
        together = edgen.annotate(run, "teacher_moves", by="once=default", together=True, progress=False)
        assert one_by_one.made
        assert together.made
        assert together.made.annotators[0].calls.made == 12 < one_by_one.made.annotators[0].calls.made
        assert {tuple(unit.annotators) for unit in together} == {("default", "once")}
        assert {unit.agreement for unit in together} == {1.0}

    def test_a_larger_sample_holds_the_smaller_and_asks_for_the_rest(self, run: Path) -> None:
        small = edgen.annotate(run, "teacher_moves", sample=4, progress=False)
        few = {unit.id for unit in small}
        large = edgen.annotate(run, "teacher_moves", sample=8, progress=False)
        assert len(few) == 4
        assert few < {unit.id for unit in large}
        assert len({unit.id for unit in large}) == 8
        before = large.file.read_bytes()
        assert edgen.annotate(run, "teacher_moves", sample=4, progress=False).file.read_bytes() == before

    def test_labels_of_other_texts_count_for_nothing(self, run: Path, tmp_path: Path) -> None:
        edgen.annotate(run, "teacher_moves", by=["a=default", "b=default"], progress=False)
        other = edgen.generate(JOB, output=tmp_path / "other", seed=4, progress=False).folder
        shutil.copytree(run / "layers", other / "layers")
        layer = edgen.annotate(other, "teacher_moves", by="a=default", progress=False)
        assert all("a" in unit.annotators for unit in layer)
        assert {unit.turn for unit in layer if "b" in unit.annotators} <= {0}, "a first turn may be the same"
        assert layer.made is not None
        status = layer.made.annotators[0]
        assert (status.labelled, status.pending) == (status.planned, 0)


@pytest.mark.parametrize(
    ("given", "labels", "expected"),
    [
        ([("Focus",), ("Focus",), ("Telling",)], MOVES, (("Focus",), False)),
        ([("Focus",), ("Telling",)], MOVES, ((), True)),
        ([("Telling",)], MOVES, (("Telling",), False)),
        ([("Focus",), ("Focus",), ("Telling",), ("Generic",)], MOVES, (("Focus",), False)),
        ([("Junk", "Original Question"), ("Junk",), ("Junk",)], INTENTS, (("Junk",), False)),
        ([("Junk", "Original Question"), ("Junk",)], INTENTS, ((), True)),
        ([("Junk",), ("Original Question",), ("Further Details",)], INTENTS, ((), True)),
    ],
)
def test_what_most_say(given: Any, labels: Any, expected: Any) -> None:
    assert find_majority(given, labels) == expected


@pytest.mark.only_long
@pytest.mark.integration
def test_the_majority_is_right_as_often_as_planted_mistakes_leave_it(tmp_path: Path) -> None:
    """The majority of three annotators is right as often as predicted.

    Each errs with chance e among four labels, so two or more are right with chance (1-e)^3 + 3e(1-e)^2.
    """
    e, right, units = 0.3, Counter[str](), 0
    for seed in range(2):
        run = edgen.generate(
            JOB, output=tmp_path / str(seed), seed=seed, conversations=15, progress=False
        ).folder
        layer = edgen.annotate(
            run, "teacher_moves", by=["a", "b", "c"], progress=False,
            backends={"default": {"type": "simulator"}, **{name: planted(e) for name in "abc"}},
        )  # fmt: skip
        assert layer.made is not None
        found = layer.made.agreement
        assert found is not None
        assert found.alpha is not None
        # Two err alike with chance e^2 / 3; truths are about even among four labels.
        assert abs(found.alpha - (((1 - e) ** 2 + e**2 / 3) - 0.25) / 0.75) < 0.12
        with RunReader(run) as reader:
            texts = {one.candidate.id: one.candidate.turns for one in reader.conversations()}
        for unit in layer:
            assert unit.turn is not None
            true = find_true_labels("Teacher", texts[unit.id][unit.turn].text, MOVES.names, several=False)
            units += 1
            right.update(name for name, said in unit.annotators.items() if said == true)
            right["most"] += unit.labels == true
            right["all"] += {*unit.annotators.values()} == {true}
    expected = {
        **dict.fromkeys("abc", 1 - e),
        "most": (1 - e) ** 3 + 3 * e * (1 - e) ** 2,
        "all": (1 - e) ** 3,
    }
    for name, p in expected.items():
        assert abs(right[name] / units - p) < 3.5 * math.sqrt(p * (1 - p) / units), name


class TestMistakes:
    def test_what_cannot_be_meant_is_a_sentence(self, command: Command, run: Path, tmp_path: Path) -> None:
        def refused(*arguments: str, code: int = 2) -> str:
            ended = command("annotate", run, *arguments)
            assert ended.code == code, ended.err
            return " ".join(ended.err.split())

        assert "--labels is missing" in refused()
        assert "there is no such label set" in refused("--labels", "teacher_move")
        assert "--together goes with --unit turn" in refused(
            "--labels", "quality", "--together", "--unit", "conversation"
        )
        assert "no backend 'x' is in the job" in refused("--labels", "teacher_moves", "--by", "x")
        assert "or is taken" in refused("--labels", "teacher_moves", "--by", "default", "--by", "default")
        assert "a layer's name has letters" in refused("--labels", "teacher_moves", "--layer", "../x")
        assert "conversations=3: this key does not apply" in refused(
            "--labels", "teacher_moves", "--set", "conversations=3"
        )
        own = tmp_path / "own.yaml"
        own.write_text(
            "name: own\nroles: [Wizard]\nlabels:\n- {name: A, definition: a}\n- {name: B, definition: b}\n"
        )
        assert "this run has the roles Teacher, Student" in refused("--labels", str(own))
        own.write_text("name: own\nlabels:\n- {name: A, definition: a}\n")
        assert "there is one label" in refused("--labels", str(own))
        assert not (run / "layers").exists()

    def test_none_takes_anothers_place(self, command: Command, run: Path) -> None:
        said = ("annotate", run, "--labels", "teacher_moves", "--sample", "2")
        assert command(*said).code == 0
        kept = {path: path.read_bytes() for path in (run / "layers").rglob("labels.jsonl")}
        other = ("--set", 'backends.default={"type": "simulator", "model": "other"}')
        ended = command(*said, *other)
        assert (ended.code, "the annotator 'default'" in " ".join(ended.err.split())) == (2, True)
        assert "has other labels or units" in command(*said, "--unit", "conversation").err
        assert {path: path.read_bytes() for path in kept} == kept
        assert command(*said, *other, "--by", "second=default").code == 0
        assert {tuple(line["annotators"]) for line in labels_of(run)} == {("default", "second")}
        assert "layer      teacher_moves, second:" in command("status", run).out

    def test_replies_without_labels_are_counted_and_the_rest_stands(
        self, command: Command, run: Path
    ) -> None:
        odd = ("--set", 'backends.odd={"type": "simulator", "faults": "garbage=0.6"}', "--set", "asks=1")
        ended = command("annotate", run, "--labels", "teacher_moves", "--by", "odd", *odd, "--json")
        assert ended.code == 0, ended.err
        (one,) = json.loads(ended.out)["annotators"]
        assert one["rejected"]["no_labels"] > 0
        assert one["planned"] == one["labelled"] + sum(one["rejected"].values()) + sum(one["failed"].values())
        assert len(labels_of(run)) == one["labelled"]
