"""The wheel contains all files that edgen needs: it runs outside a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_args

import pytest

from edgen.core.resources import Folder
from tests import ROOT

pytestmark = pytest.mark.integration


def test_the_wheel_runs_where_there_is_no_checkout(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    wheel = next(iter(WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "dist"), versions=["standard"])))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    names = {
        str(path.relative_to(tmp_path / "site" / "edgen"))
        for path in (tmp_path / "site" / "edgen").rglob("*")
    }
    assert {
        "_data/prompts/education_dialogue.j2",
        "_data/preference_space/broad.yaml",
        "_data/label_sets/quality.yaml",
        "_data/validators/conversation.schema.json",
        "_data/jobs/quickstart.yaml",
        "preferences/judge_directed.txt",
        "simulator/phrases/phrases.txt",
        "py.typed",
    } <= names
    folders = get_args(Folder)
    files = {path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert {f"_data/{path.relative_to(ROOT)}" for path in files} <= names
    script = f"""
import sys, edgen
assert edgen.__file__.startswith({str(tmp_path)!r}), edgen.__file__
from edgen.__main__ import main
for arguments in (["init", "mine"], ["generate", "mine/job.yaml", "-n", "3"], ["validate", "outputs/mine"]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        assert end.code == 0, (arguments, end.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
