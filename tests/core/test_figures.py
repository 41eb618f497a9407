"""Costs in JSON."""

from __future__ import annotations

import pytest

from edgen.core.text import round_usd


@pytest.mark.parametrize(
    ("usd", "rounded"),
    [
        (0.1 + 0.2, 0.3),
        (12.3456789, 12.345679),
        (0.00012345678, 0.000123457),
        (1.5e-7, 1.5e-7),
        (0.0, 0.0),
        (None, None),
    ],
)
def test_costs_have_a_sensible_precision(usd: float | None, rounded: float | None) -> None:
    assert round_usd(usd) == rounded
