"""The shards of three shipped jobs, to the byte: a change of anything that shapes an answer is seen here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.command import Command

pytestmark = pytest.mark.integration

# sha256 over the shards' own, in the order of their paths. They hold since edgen 0.1.
SHARDS = {
    "quickstart": "390de85023de3dbbfd25b1bc330515692e2bf3b68fbc5f06e5169ff4e49f391a",
    "selfplay": "3d44eb81ee1194b8b3292f608eb5aa15460a5df99287bf2e5ee2c721977febbb",
    "experiment": "18b46cbaef74bd5dd9666ccfe013f24bdb3058ff7c64dbff113aa97cda867482",
}


@pytest.mark.parametrize("job", SHARDS)
def test_a_shipped_job_makes_the_shards_it_always_made(
    job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = Command(capsys)("generate", ROOT / "jobs" / f"{job}.yaml", "-o", tmp_path)
    assert ended.code == (3 if job == "experiment" else 0), ended.err  # its faults leave it short
    shards = sorted(tmp_path.glob("**/shards/conversations*.json"))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in shards]
    assert hashlib.sha256("\n".join(digests).encode()).hexdigest() == SHARDS[job]
