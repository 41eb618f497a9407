"""A campaign of damaged files: `python -m bench flips`."""

from __future__ import annotations

from bench.flips.campaign import flips, main
from bench.flips.runs import SELFPLAY

__all__ = ["SELFPLAY", "flips", "main"]
