"""The shards of three shipped jobs, byte for byte: any change of an answer is detected here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.command import Command
from tests.dose import dose

pytestmark = pytest.mark.integration

# sha256 over the shards' own, in the order of their paths, for version 10 of the simulator.
BALANCED = {
    "quickstart": "a9f892384d53b6cd6fc9ee98b625d362c14f1feb325f3d5d72a2cad85d54a975",
    "selfplay": "11f19cabdc5aaea17217b1b05ae76ccb6ce8df2d348c51c0a44d38225e48b5c2",
    "experiment": "633e3eefb9f92c9da74559539c5ef12cd1d8018a0062d81dbd3af633ed713881",
}


# Of the first 24 scenarios, and of all of them.
EVEN = dose(
    {
        "quickstart": "bdedca9c32c3fb71b569fc1312900af9759856550ba4d5ef05fb6d53aefe7114",
        "selfplay": "fdbd5a2ef2ff86c222e764f74b78e78a13f783442222c86e79e19ec597e9f171",
        "experiment": "962cf2d7fbef77fcb6923644eb78851baa8e9573dc8dcd272231a247959616b5",
    },
    {
        "quickstart": "ef0285d9b0c8352533e4100b2292a375600ececea108b043b690cb846d73cae3",
        "selfplay": "39cfb8b03e6bc783238846a08da95f7f072d3af001fa0e5c3003569058c557c2",
        "experiment": "b507c5df3181a700867307369a20f9acd2818af3902a21074447cf3966acdb7d",
    },
)


@pytest.mark.parametrize("job", BALANCED)
@pytest.mark.parametrize("design", ["balanced", pytest.param("even", marks=pytest.mark.long)])
def test_a_shipped_job_makes_the_shards_it_always_made(
    job: str, design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = dose(("-n", "24"), ()) if design == "even" else ()
    ended = Command(capsys)(
        "generate", ROOT / "jobs" / f"{job}.yaml", "-o", tmp_path, "--set", f"design={design}", *few
    )
    assert ended.code == (3 if job == "experiment" else 0), ended.err  # its faults leave it incomplete
    shards = sorted(tmp_path.glob("**/shards/conversations*.json"))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in shards]
    assert (
        hashlib.sha256("\n".join(digests).encode()).hexdigest()
        == {"balanced": BALANCED, "even": EVEN}[design][job]
    )
