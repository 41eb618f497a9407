"""The short form of `make proof`.

SmolLM2 makes data with edgen, TRL trains its weights, edgen tests them without a schema.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

EDGEN = ROOT / ".venv" / "bin" / "python"  # with xllamacpp and SmolLM2, as `make test-rl` sets it up


@pytest.mark.integration
def test_a_model_gives_more_usable_answers_after_learning_from_its_own_data(tmp_path: Path) -> None:
    script = ROOT / "examples" / "improve" / "improve.py"
    done = subprocess.run(
        [EDGEN, script, "--short", "--trainer", sys.executable, "-o", tmp_path / "improve"],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "improve" / "figures.json").read_text())
    before, after = figures["before"], figures["after sft"]
    assert figures["sft"]["rows"] == figures["made"]["right"] > 0
    # 8 scenarios: more than chance, less than measured with other seeds
    assert after["usable"]["value"] >= before["usable"]["value"] + 0.25, figures
