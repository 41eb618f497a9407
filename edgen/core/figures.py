"""Numbers and counts as a line has room for them."""

from __future__ import annotations

from collections.abc import Mapping


def format_short(number: int) -> str:
    """A number in three or four characters."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def format_money(usd: float) -> str:
    """US dollars, to the cent, and below one to a hundredth of it."""
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"


def describe_counts(counts: Mapping[str, int]) -> str:
    """A count, and what it is made of."""
    total = sum(counts.values())
    if not total:
        return "0"
    return f"{total} ({', '.join(f'{reason} {count}' for reason, count in counts.items())})"
