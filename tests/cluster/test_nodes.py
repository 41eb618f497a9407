"""A cluster of three nodes: whole nodes are killed and frozen, new ones join, and the command is killed."""

from __future__ import annotations

import pytest

from bench.cluster_kills import kill_nodes

pytestmark = pytest.mark.integration


def test_nodes_and_heads_die(capsys: pytest.CaptureFixture[str]) -> None:
    """A small campaign of `python -m bench cluster --kills` passes.

    It checks the bytes, the repeated calls, the cap as the server counts it, and the equation at every look.
    """
    kill_nodes(workers=2, heads=2, count=240, selfplay=40, seed=3)
    told = capsys.readouterr().out
    assert told.count("same bytes in") == 2
    assert told.count("freeze") == 2
    print(told)
