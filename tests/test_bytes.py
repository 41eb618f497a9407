"""The shards of three shipped jobs, to the byte: a change of anything that shapes an answer is seen here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.command import Command

pytestmark = pytest.mark.integration

# sha256 over the shards' own, in the order of their paths. The balanced ones hold since edgen 0.1, before
# the shipped jobs became even.
BALANCED = {
    "quickstart": "390de85023de3dbbfd25b1bc330515692e2bf3b68fbc5f06e5169ff4e49f391a",
    "selfplay": "3d44eb81ee1194b8b3292f608eb5aa15460a5df99287bf2e5ee2c721977febbb",
    "experiment": "18b46cbaef74bd5dd9666ccfe013f24bdb3058ff7c64dbff113aa97cda867482",
}


EVEN = {
    "quickstart": "697370188938be4c096d2f02bf38266dd334e117069dc11d190e6d505bc51d60",
    "selfplay": "392eafb8ff185822f3dea9359f526a51c2863428938e0863bdaa2404efecd996",
    "experiment": "ea9bb28e610cdde31d72b3eb870ab7634822c03d9c7aec8094ccc8ea55f0ed48",
}


@pytest.mark.parametrize("job", BALANCED)
@pytest.mark.parametrize("design", ["balanced", "even"])
def test_a_shipped_job_makes_the_shards_it_always_made(
    job: str, design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = Command(capsys)(
        "generate", ROOT / "jobs" / f"{job}.yaml", "-o", tmp_path, "--set", f"design={design}"
    )
    assert ended.code == (3 if job == "experiment" else 0), ended.err  # its faults leave it short
    shards = sorted(tmp_path.glob("**/shards/conversations*.json"))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in shards]
    assert (
        hashlib.sha256("\n".join(digests).encode()).hexdigest()
        == {"balanced": BALANCED, "even": EVEN}[design][job]
    )
