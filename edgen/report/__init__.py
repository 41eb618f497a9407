"""A finished run as one self-contained page."""

from __future__ import annotations

from edgen.report.write import Written, write

__all__ = ["Written", "write"]
