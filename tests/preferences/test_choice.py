"""The choice of a scenario's pairs to judge."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from edgen.config.job_parts import PairSettings
from edgen.core.errors import UsageError
from edgen.preferences.choice import MOST_PAIRS, PairChoice


def test_more_pairs_than_can_be_held_are_refused_before_any_is_made() -> None:
    reader: Any = SimpleNamespace(rundir=SimpleNamespace(path="runs/t"))
    choice = PairChoice(reader, PairSettings(), every=True)
    assert len(choice.list_names(0, [str(i) for i in range(100)])) == 4950
    with pytest.raises(
        UsageError, match=r"runs/t: scenario 3 has 13,000 conversations, which make 84,493,500 pairs"
    ):
        choice.list_names(3, [str(i) for i in range(13_000)])
    assert MOST_PAIRS < 84_493_500
