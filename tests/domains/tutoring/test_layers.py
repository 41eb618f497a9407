"""Layers in exports of sessions."""

from __future__ import annotations

import json
from pathlib import Path

import edgen
from tests import ROOT
from tests.layers import put_layer


def test_two_layers_of_two_roles_make_a_set_as_cima_is(tmp_path: Path) -> None:
    tutoring = edgen.generate(
        ROOT / "jobs" / "tutoring.yaml", output=tmp_path / "run", conversations=3, progress=False
    )
    put_layer(
        tutoring.folder,
        "tutor",
        lambda one, turn: ["Hint", "Other"] if one.turns[turn or 0].role == "Tutor" else None,
    )
    put_layer(
        tutoring.folder,
        "student",
        lambda one, turn: ["Guess"] if one.turns[turn or 0].role == "Student" else None,
    )
    tutoring.export("cima", tmp_path / "cima", layer=["tutor", "student"])
    entries = [
        entry
        for file in (tmp_path / "cima").glob("*.json")
        for entry in json.loads(file.read_text())["prepDataset"].values()
    ]
    assert entries
    for entry in entries:
        assert entry["tutorActions"] == [[False, True, False, False, True]]
        assert entry["studentActions"] == ["True", "False", "False", "False"]
