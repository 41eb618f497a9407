"""Sessions of exercises in the layout of CIMA's released data, and read back from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.api.validating import validate
from edgen.core.errors import UsageError
from edgen.families.tutoring import cima


def run_of(folder: Path, space: str, **changes: Any) -> edgen.Run:
    job = {
        "name": "t",
        "seed": 7,
        "conversations": 8,
        "space": space,
        "protocol": "tutoring",
        "backends": {"default": {"type": "simulator"}},
        **changes,
    }
    return edgen.generate(job, output=folder / space, progress=False)


@pytest.fixture(scope="module", params=["italian_prepositions", "italian_shapes"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    return run_of(tmp_path_factory.mktemp("cima"), request.param)


def test_what_is_written_is_read_back_with_equal_values(run: edgen.Run, tmp_path: Path) -> None:
    exported = run.export("cima", tmp_path / "out")
    entries = [
        entry
        for path in sorted((tmp_path / "out").glob("t*.json"))
        for half in json.loads(path.read_bytes()).values()
        for entry in half.values()
    ]
    read = [cima.read(entry).speech.turns for entry in entries]
    made = {
        (turn.text, turn.labels, tuple((one.text, one.labels) for one in turn.alternatives))
        for conversation in run.conversations()
        for turn in conversation.turns
        if turn.alternatives
    }
    found = {
        (turns[-1].text, turns[-1].labels, tuple((one.text, one.labels) for one in turns[-1].alternatives))
        for turns in read
    }
    assert found <= made
    assert len(read) == sum(count for table in exported.rows.values() for count in table.values())
    assert all(turns[0].role == "Tutor" and turns[-2].role == "Student" for turns in read)
    assert all(len(turns) <= 11 for turns in read)
    report = validate([tmp_path / "out" / "train.json"])
    assert report.sound
    assert report.records == report.valid > 0


def test_the_layouts_are_those_of_the_release(run: edgen.Run, tmp_path: Path, shared_data: Path) -> None:
    run.export("cima", tmp_path / "out")
    written = json.loads((tmp_path / "out" / "train.json").read_bytes())
    assert [*written] == ["prepDataset", "shapeDataset"]
    prep = bool(written["prepDataset"])
    file = "cima_prep_head.json" if prep else "cima_shape_81abde4.json"
    released = json.loads((shared_data / file).read_bytes())
    known = released["prepDataset"] if prep else released.get("shapeDataset", released)
    ours, theirs = written["prepDataset" if prep else "shapeDataset"]["0"], known["0"]
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        assert type(ours[key]) is type(value), key
        if isinstance(value, list) and value and key != "tutorKeys":
            assert type(ours[key][0]) is type(value[0]), key
    assert type(ours["tutorActions"][0][0]) is type(theirs["tutorActions"][0][0])


def test_what_it_cannot_express_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cima holds exercises of preposition, object and colour"):
        run_of(tmp_path, "fractions").export("cima", tmp_path / "out")
    tutor = dict.fromkeys(("Hint", "Correction", "Confirmation"), "does it")
    own = {"actions": {"student": {"Affirm": "nods", "Question": "asks", "Guess": "guesses"}, "tutor": tutor}}
    run = run_of(tmp_path, "italian_shapes", tutoring=own)
    left_out = run.export("cima", tmp_path / "own").left_out
    assert left_out["actions"] > 0
    quick = edgen.generate("jobs/quickstart.yaml", conversations=3, output=tmp_path / "ed", progress=False)
    with pytest.raises(UsageError, match="conversations of the family tutoring"):
        quick.export("cima", tmp_path / "none")
