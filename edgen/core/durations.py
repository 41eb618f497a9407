"""Time spans, as people write them and as edgen prints them."""

from __future__ import annotations

import re

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def seconds(text: str) -> float:
    """Parse a span such as `6h`, `1h30m`, `45s` or `2.5d` as seconds. Raises ValueError for anything else, 0
    included."""
    compact = text.strip().lower().replace(" ", "")
    if not _SPAN.fullmatch(compact):
        raise ValueError(f"{text!r} is not a span of time; write it as in 45s, 30m, 6h or 1h30m")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(compact))
    if total <= 0:
        raise ValueError(f"{text!r} is not a span of time: it is empty")
    return total


def format_span(duration: float) -> str:
    """Format whole seconds, such as `45s`, `3m20s` or `6h05m`."""
    whole = round(duration)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"
