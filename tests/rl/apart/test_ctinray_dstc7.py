"""A reader of Advising's files finds the courses of every profile, its program unchanged from its repository.

CTinRay/DSTC7 is no package: `git clone https://github.com/CTinRay/DSTC7`, `pip install tqdm`, then
`PYTHONPATH=DSTC7/scripts python -m pytest tests/rl/apart/test_ctinray_dstc7.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import edgen

_FOUND = importlib.util.find_spec("prepreprocess_advising")
PROGRAM = str(_FOUND.origin) if _FOUND is not None else ""


@pytest.mark.parametrize("subtask", [1, 4, 5])
def test_it_takes_every_example_and_names_courses_as_the_profile_does(subtask: int, tmp_path: Path) -> None:
    run = edgen.generate(
        "jobs/course_advising.yaml", conversations=100, output=tmp_path / "run", progress=False
    )
    run.export("dstc7", tmp_path / "set", subtask=subtask, prefix="w", speakers="roles", cuts="all")
    files = [tmp_path / "set" / f"w_{side}_subtask_{subtask}.json" for side in ("train", "dev")]
    made = [tmp_path / name for name in ("train.json", "dev.json")]
    subprocess.run([sys.executable, PROGRAM, *map(str, [*files, *made])], env=dict(os.environ), check=True)
    for path, new in zip(files, made, strict=True):
        examples, found = (json.loads(one.read_text(encoding="utf-8")) for one in (path, new))
        assert [one["example-id"] for one in found] == [one["example-id"] for one in examples]
        assert [one["profile"] for one in found] == [one["profile"] for one in examples]
        assert all(one["profile"]["Courses"]["Suggested"] for one in found)
