"""The examples of docs/python.md run as written, in order, also after `make demo`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import edgen
from tests import ROOT

pytestmark = pytest.mark.integration

TALK = "\n".join(
    f"{('Teacher', 'Student')[turn % 2]}: Is {turn} more than {turn - 1}?" for turn in range(1, 9)
)


async def my_model(_: object) -> str:
    return f"{TALK}\nTeacher: Yes. [end of conversation]\nProbability: 0.5"


def test_the_page_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").symlink_to(ROOT / "jobs")
    monkeypatch.chdir(tmp_path)
    edgen.generate("jobs/quickstart.yaml", conversations=30, progress=False)  # as `make demo`, smaller
    names: dict[str, object] = {"my_model": my_model}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    assert {path.name for path in Path("outputs").iterdir()} == {"quickstart", "mine", "answered"}
    assert edgen.open("curious").status.state == "complete"
