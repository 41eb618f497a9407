"""An estimate takes no longer for more conversations, up to the most that a job can name."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UnsetType

from edgen.api.estimating import estimate_job
from edgen.config import load_job
from edgen.cost.options import EstimateOptions
from tests import ROOT
from tests.dose import dose

MOST = (2**40, 2**20)  # scenarios and replicates


def jobs_of_each_protocol() -> list[str]:
    """Return up to two (in a small dose, one) shipped jobs without arms for each protocol."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "jobs").glob("*.yaml")):
        if not (job := load_job(path)).arms:
            found.setdefault(job.protocol, []).append(path.stem)
    assert {"oneshot", "selfplay"} <= {*found}
    return [name for names in found.values() for name in names[: dose(1, 2)]]


@pytest.mark.long
@pytest.mark.parametrize("name", jobs_of_each_protocol())
def test_as_many_as_a_job_can_name(name: str, tmp_path: Path) -> None:
    conversations, replicates = MOST
    overrides = (f"conversations={conversations}", f"replicates={replicates}")
    few = estimate_job(
        ROOT / f"jobs/{name}.yaml",
        EstimateOptions(overrides=("conversations=2", "replicates=2"), runs=tmp_path),
    )
    many = estimate_job(ROOT / f"jobs/{name}.yaml", EstimateOptions(overrides=overrides, runs=tmp_path))
    assert many.conversations == conversations * replicates
    times = many.conversations / few.conversations
    assert many.calls.expected == pytest.approx(few.calls.expected * times, rel=0.5)


def test_the_limit_of_retries_is_part_of_the_high_figure(tmp_path: Path) -> None:
    job = ROOT / "jobs/quickstart.yaml"

    def estimated(*more: str) -> tuple[float, float, float]:
        overrides = ("backends.default.max_tokens=2000", *more)
        found = estimate_job(job, EstimateOptions(overrides=overrides, runs=tmp_path))
        tokens = found.tokens.completion
        assert not isinstance(tokens.at_most, UnsetType)
        return tokens.expected, tokens.high, tokens.at_most

    plain, larger = estimated(), estimated("backends.default.retry_max_tokens=9000")
    assert larger[0] == plain[0]
    assert larger[1] > plain[1]
    conversations = load_job(job).conversations
    assert plain[2] == conversations * 3 * 2000, "max_tokens are the most, at a retry, too"
    assert larger[2] == conversations * (2000 + 2 * 9000)


def test_the_low_figure_has_a_call_for_each_conversation(tmp_path: Path) -> None:
    overrides = ("gates={short: turns < 14}", "conversations=200")
    found = estimate_job(ROOT / "jobs/quickstart.yaml", EstimateOptions(overrides=overrides, runs=tmp_path))
    assert found.calls.low == 200 < found.calls.expected
