"""Labels of layers over arms and over runs: shares of each label, by role, with what was planted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.pair import Candidate
from tests.layers import put_layer

JOB: dict[str, Any] = {
    "name": "t", "seed": 3, "conversations": 12, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    job = {**JOB, "arms": {"plain": {}, "json": {"prompt": "education_dialogue_json"}}}
    return edgen.generate(job, output=tmp_path_factory.mktemp("compared") / "run", progress=False).folder


def moves(one: Candidate, turn: int | None) -> list[str]:
    """Return the moves of a turn.

    In the arm json every turn is "Telling". In the other arm the first two turns are, the third is a tie,
    and later turns are "Focus".
    """
    assert turn is not None
    return ["Telling"] if turn < 2 or one.arm == "json" else [] if turn == 2 else ["Focus"]


def test_shares_of_labels_by_arm(made: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run"))
    put_layer(run, "moves", moves)
    put_layer(run, "quality", lambda one, _: [str(5 if one.arm == "json" else one.scenario % 5)], whole=True)
    found = edgen.compare(run, output=tmp_path / "kept.json").metrics
    share = found["labels.moves.Teacher.Telling"]
    assert share.arms["json"].value == 1
    told = labelled = 0
    for one in edgen.open(run / "arms" / "plain").conversations():
        places = [place for place, turn in enumerate(one.turns) if turn.role == "Teacher" and place != 2]
        told, labelled = told + sum(place < 2 for place in places), labelled + len(places)
    assert share.arms["plain"].value == pytest.approx(told / labelled)
    (difference,) = share.differences
    assert difference.value == pytest.approx(1 - told / labelled)
    assert difference.low is not None
    assert difference.low > 0
    assert found["labels.quality.mean"].arms["json"].value == 5
    assert found["labels.quality.mean"].arms["plain"].value == pytest.approx(
        sum(i % 5 for i in range(12)) / 12
    )
    assert found["labels.quality.0"].over == "labelled conversations"
    assert "labels.moves.Teacher.mean" not in found


def test_over_runs_each_has_layers_of_its_own(made: Path, tmp_path: Path) -> None:
    one, other = (
        Path(shutil.copytree(made / "arms" / name, tmp_path / name / "run")) for name in ("plain", "json")
    )
    put_layer(one, "moves", lambda _, turn: ["a"] if turn == 0 else None)
    file = put_layer(other, "moves", lambda _, turn: ["b" if turn == 0 else "a"])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["text_sha256"] = "0" * 64
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = edgen.compare(one, other, output=tmp_path / "kept.json")
    (first,) = {
        turn.role for turn in (conversation.turns[0] for conversation in edgen.open(one).conversations())
    }
    assert next(iter(found.metrics[f"labels.moves.{first}.a"].arms.values())).value == 1
    assert next(iter(found.metrics[f"labels.moves.{first}.b"].arms.values())).value == 0
    (words,) = [caveat for caveat in found.result.caveats if "layer moves" in caveat]
    assert "1 unit left out of the layer moves: the text is another one now." in words
    assert (
        "1 unit left out of the layer moves: the text is another one now."
        in edgen.open(other).stats(["labels"]).arms[""].notes
    )
