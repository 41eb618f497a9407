"""A short form of `python -m bench kills`: commands are killed or interrupted, or their disk fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.kills.campaign import Options, campaign
from tests.dose import dose

pytestmark = pytest.mark.crash


@pytest.mark.long
async def test_what_is_killed_or_interrupted_at_any_step_ends_as_if_left_alone(tmp_path: Path) -> None:
    more = ("an arm more", "space expand", "init", "machine draw")
    only = ("oneshot", "pairs", "export csv", "select", *dose((), more))
    kills = 3 * len(only)
    tally = await campaign(Options(kills=kills, seed=5, only=only, each=9), tmp_path)
    assert not tally.wrong
    assert tally.total >= kills
    assert len({name for name, _ in tally.done}) == len(only)


@pytest.mark.long
async def test_a_disk_that_fails_at_any_step_is_told_in_a_sentence(tmp_path: Path) -> None:
    only = ("oneshot", "export csv", "stats", "merge", "machine draw")
    tally = await campaign(Options(kills=dose(5, 12), seed=6, only=only, each=8, faults=True), tmp_path)
    assert not tally.wrong
    assert tally.total >= dose(5, 12)


@pytest.mark.long
@pytest.mark.parametrize("only", dose(["pairs"], ["pairs", "arms with labels"]))
async def test_a_signal_while_a_ledger_is_made_says_nothing_false(tmp_path: Path, only: str) -> None:
    tally = await campaign(Options(kills=dose(2, 6), seed=7, only=(only,), each=3), tmp_path)
    assert not tally.wrong
