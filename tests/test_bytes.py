"""The shards of three shipped jobs, to the byte: a change of anything that shapes an answer is seen here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.command import Command

pytestmark = pytest.mark.integration

# sha256 over the shards' own, in the order of their paths, for version 8 of the simulator: the first that names parts of
# the topic.
BALANCED = {
    "quickstart": "c42b17495dcb408514174d7e5c6ad6045229cabfe7b537b20c79e1f2e7f82dfd",
    "selfplay": "9dba37b630253dada40129d924a414e80eec936ab1a8e0ff70b9e494c252d3a0",
    "experiment": "2f114ac9c6dd6f5f639d077de06f6b958965bb9e06fcdd9f2670c567397a4694",
}


EVEN = {
    "quickstart": "d2b9b2845c57b96326790e37c1099618fb462aa607a1ca6593b951f6b19be57c",
    "selfplay": "41b978f5dae3b2a96d350818963f6664708e0dc11b3ff07ad8beff79399f1a1c",
    "experiment": "1624a26f96321f969754f00fef3beada5bd57116336479b6b7fc04db22c21631",
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
