"""The pairs of one scenario: found by binary search, the same as by reading all."""

from __future__ import annotations

from pathlib import Path

import pytest

import edgen
from edgen.store.pairs_file import read_pairs, read_pairs_of_scenario
from edgen.store.run_folder import RunFolder
from tests import ROOT
from tests.cli.command import call


@pytest.mark.parametrize("digests", [True, False])
def test_the_pairs_of_each_scenario_are_those_of_the_file(tmp_path: Path, digests: bool) -> None:
    folder = tmp_path / "run"
    edgen.generate(
        ROOT / "jobs" / "quickstart.yaml", conversations=17, replicates=3, output=folder, progress=False
    )
    assert call("pairs", folder, "--signal", "probability") == 0
    run = RunFolder(folder)
    if not digests:
        (folder / "digests.json").unlink()
        lines = run.pairs.read_bytes().splitlines(keepends=True)
        run.pairs.write_bytes(b"".join(reversed(lines)))
    every = [*read_pairs(run)]
    assert len(every) >= 17
    for scenario in range(-1, 19):
        assert read_pairs_of_scenario(run, scenario) == [one for one in every if one.scenario == scenario]
