"""Compact numbers and counts for one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def format_short(number: int) -> str:
    """Format a number in three or four characters."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def round_usd(usd: float | None) -> float | None:
    """Round US dollars for JSON: to a millionth, and below a cent to six significant digits; None stays
    None."""
    if usd is None or abs(usd) >= 0.01:
        return None if usd is None else round(usd, 6)
    return float(f"{usd:.6g}")


def describe_counts(counts: Mapping[str, int]) -> str:
    """Describe a count and its parts."""
    total = sum(counts.values())
    if not total:
        return "0"
    return f"{total:,} ({', '.join(f'{reason} {count:,}' for reason, count in counts.items())})"


def describe_reasons(reasons: Counter[str], most: int = 4) -> str:
    """Format counts with their reasons, the most frequent first, such as `14 no_turns, 3 too_short`."""
    shown = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common(most))
    return shown + (f" and {len(reasons) - most} more kinds" if len(reasons) > most else "")
