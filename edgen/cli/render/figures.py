"""Numbers, money and counts as a line has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def format_cost(usd: float | None, *, calls: int = 1) -> str:
    """What calls cost, to a hundredth of a cent."""
    if usd is None:
        return "unknown (no price in the job)" if calls else "none yet"
    return f"${usd:.4f}"


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_of(names: Sequence[str], most: int, what: str = "") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more{what}" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def align_columns(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """The lines of a table: the first `left` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(cells)
        )
