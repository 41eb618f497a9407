"""The job of `make demo-real`: its conversations have the requested form at the first attempt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import ROOT
from tests.execution.service import edgen_alone as edgen
from tests.execution.service import files

pytestmark = pytest.mark.integration


async def test_the_shipped_job_makes_conversations_in_form(tmp_path: Path) -> None:
    job = ROOT / "jobs" / "real.yaml"
    ended = await edgen("generate", job, "-n", "2", "-o", tmp_path / "run", "--json", timeout=400)
    assert ended.code == 0, ended.err
    assert ended.facts["accepted"] == 2
    assert (ended.facts["calls"]["made"], ended.facts["calls"]["retried"]) == (2, 0)
    for records in map(json.loads, files(tmp_path / "run").values()):
        for record in records if isinstance(records, list) else ():
            assert [turn["role"] for turn in record["conversation"]] == ["Teacher", "Student"] * 3
            assert all(len(turn["text"]) > 15 for turn in record["conversation"])
