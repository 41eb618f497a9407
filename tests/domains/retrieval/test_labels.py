"""Scores of predicted labels of turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import edgen
from edgen.core.errors import DataError
from edgen.domains.retrieval.score import LabelScore

TRUTH = "OQ_PA\thello\tUser\nPA\tyes\tAgent\n\n\nIR\tmore\tUser\nFD\tso\tAgent\n"


def scored(folder: Path, truth: str, predicted: str) -> LabelScore:
    (folder / "truth").write_text(truth)
    (folder / "predicted").write_text(predicted)
    found = edgen.score(folder / "truth", folder / "predicted")
    assert isinstance(found, LabelScore)
    return found


def test_figures_by_hand_from_either_layout(tmp_path: Path) -> None:
    table = "OQ\thello\tUser\nPA\tyes\tAgent\n\nIR_OQ\tmore\tUser\nIR\tso\tAgent\n"
    lines = [("1", 1, ["OQ"]), ("1", 2, ["PA"]), (2, 1, ["IR", "OQ"]), (2, "2", ["IR"])]
    objects = "\n".join(
        json.dumps({"id": one, "turn": turn, "labels": labels}) for one, turn, labels in lines
    )
    for predicted in (table, objects):
        found = scored(tmp_path, TRUTH, predicted)
        assert (found.sound, found.dialogs, found.turns, found.predicted) == (True, 2, 4, 4)
        figures = found.figures
        assert figures.exact is not None
        assert figures.by_unit is not None
        assert (figures.exact.value, figures.by_unit.value) == (0.25, (1 / 2 + 1 + 1 / 2 + 0) / 4)
        micro = figures.micro
        assert [one.value for one in (micro.precision, micro.recall, micro.f1) if one] == [0.6, 0.6, 0.6]
        assert figures.macro.f1 is not None
        # by label: OQ 2/3, PA 2/3, IR 2/3, FD 0
        assert figures.macro.f1.value == pytest.approx(0.5)


def test_what_is_wrong_is_said_by_turn(tmp_path: Path) -> None:
    predicted = "OQ\thello\tUser\nno\nPA\tother\tAgent\n\nIR\tLESS\tUser\n"
    found = scored(tmp_path, TRUTH, predicted)
    assert [(one.kind, one.where) for one in found.findings] == [
        ("not_a_turn", "line 2"),
        ("other_turn", "dialog 1, turn 3"),
        ("missing_turn", "dialog 1, turn 2"),
        ("other_utterance", "dialog 2, turn 1"),
        ("missing_turn", "dialog 2, turn 2"),
    ]
    assert (found.sound, found.predicted) == (False, 2)
    doubled = '{"id": 1, "turn": 1, "labels": []}\n{"id": 1, "turn": 1, "labels": ["OQ", "PA"]}\n{"id": 1}\n{"id": 1, "turn": 2, "labels": "PA"}'
    found = scored(tmp_path, TRUTH, doubled)
    assert [one.kind for one in found.findings[:3]] == ["doubled_turn", "not_a_turn", "not_a_turn"]
    assert found.figures.labels["OQ"].given == 1


@pytest.mark.parametrize(
    ("truth", "predicted", "words"),
    [
        ("OQ\n", TRUTH, "truth: it holds no labelled turn (line 1: expected"),
        (TRUTH + "PA\tx\n", TRUTH, "line 7: expected 'labels TAB utterance"),
        (TRUTH, '{"id": "z", "turn": 1, "labels": []}', "none of its turns is one of"),
        (TRUTH, '{"labels": 1}', "it holds no labelled turn (entry 1: it has no 'id')"),
    ],
)
def test_files_of_which_nothing_can_be_used(tmp_path: Path, truth: str, predicted: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        scored(tmp_path, truth, predicted)
    assert words in str(caught.value)
