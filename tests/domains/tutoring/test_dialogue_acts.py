"""Actions of tutors and students as an export of dialogue acts."""

from __future__ import annotations

import json
from pathlib import Path

import edgen


def test_the_acts_of_tutors_and_students_are_rows_too(tmp_path: Path) -> None:
    job = {
        "name": "t", "seed": 7, "conversations": 3, "space": "italian_shapes", "protocol": "tutoring",
        "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    made = edgen.generate(job, output=tmp_path / "run", progress=False)
    rows = made.export("dialogue-acts", tmp_path / "out").rows["default"]
    assert sum(rows.values()) == sum(len(one.turns) for one in made.conversations())
    acts = {
        act
        for path in (tmp_path / "out").glob("*.jsonl")
        for line in path.read_text().splitlines()
        for act in json.loads(line)["acts"]
    }
    assert {"Hint", "Question"} <= acts
