"""An estimate takes no longer for more conversations, up to the most that a job can name."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.api.estimating import estimate_job
from edgen.config import load_job
from tests import ROOT

MOST = (2**40, 2**20)  # scenarios and replicates


def jobs_of_each_protocol() -> list[str]:
    """Return up to two shipped jobs without arms for each protocol."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "jobs").glob("*.yaml")):
        if not (job := load_job(path)).arms:
            found.setdefault(job.protocol, []).append(path.stem)
    assert {"oneshot", "selfplay"} <= {*found}
    return [name for names in found.values() for name in names[:2]]


@pytest.mark.parametrize("name", jobs_of_each_protocol())
def test_as_many_as_a_job_can_name(name: str, tmp_path: Path) -> None:
    conversations, replicates = MOST
    overrides = (f"conversations={conversations}", f"replicates={replicates}")
    few = estimate_job(
        ROOT / f"jobs/{name}.yaml", overrides=("conversations=2", "replicates=2"), runs=tmp_path
    )
    many = estimate_job(ROOT / f"jobs/{name}.yaml", overrides=overrides, runs=tmp_path)
    assert many.conversations == conversations * replicates
    times = many.conversations / few.conversations
    assert many.calls.expected == pytest.approx(few.calls.expected * times, rel=0.5)
