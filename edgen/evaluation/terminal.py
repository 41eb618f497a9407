"""Lines for a terminal of 80 columns: labelled rows, wrapped text, small histograms, values with
intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from edgen.core.text import BRACKETS, format_interval
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate

WIDTH = 80
LABEL = 28
_BARS = " ▁▂▃▄▅▆▇█"


def row(label: str, text: str) -> str:
    """Return a label and its text as one line."""
    return f"{label:<{LABEL}}{text}"


def rows(label: str, text: str) -> Iterator[str]:
    """Yield a row that may have several lines."""
    lines = textwrap.wrap(text, WIDTH - LABEL - 2, break_on_hyphens=False) or [""]
    yield row(label, lines[0])
    yield from (row("", line) for line in lines[1:])


def wrap(text: str, width: int = WIDTH - 2, *, bullet: str = "") -> list[str]:
    """Return the lines of a paragraph; after a `bullet`, its lines are aligned."""
    rest = " " * len(bullet) if bullet else "  " if text.startswith(" ") else ""
    return textwrap.wrap(
        text, width, initial_indent=bullet, subsequent_indent=rest, break_long_words=not bullet
    )


def render_histogram(label: str, found: Distribution) -> Iterator[str]:
    """Yield the bars as a line, between the ends of the first and last bar."""
    if len(found.bins) > 1:
        low, high = found.bins[0].low, found.bins[-1].high
        ends = (f"{low:,.0f} ", f" {high - 1:,.0f}") if high > 1 else ("", "")
        yield f"{label:<16}{ends[0]}{render_sparkline(found)}{ends[1]}"


def render_sparkline(found: Distribution) -> str:
    """Return a character per bar, as high as its count. Counts above 0 are always visible."""
    most = max((bar.count for bar in found.bins), default=0)
    return "▕" + "".join(_BARS[-(-8 * bar.count // most)] if most else " " for bar in found.bins) + "▏"


def share_with_interval(found: Estimate | None) -> str:
    """Format a share, as in `12.3% [8.1%, 17.0%]`."""
    return "nothing tells" if found is None else with_interval(found, ".1%")


def with_interval(found: Estimate, form: str) -> str:
    """Format a value, as in `0.61 [0.58, 0.64]`. `form`: the format string of each number."""
    return format(found.value, form) + format_interval(
        found.low, found.high, lambda end: format(end, form), BRACKETS
    )


def join_counts(counts: Mapping[str, int]) -> str:
    """Format counts, as in `12 Teacher, 6 Student`, without zeros."""
    return ", ".join(f"{n:,} {key}" for key, n in counts.items() if n) or "none"


def join_shares(shares: Mapping[str, float]) -> str:
    """Format shares, as in `Hint 59.9%, Question 28.4%`."""
    return ", ".join(f"{name} {share:.1%}" for name, share in shares.items())


def shorten_line(text: str, width: int) -> str:
    """Return the text on one line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def shorten_middle(name: str) -> str:
    """Shorten a long name in the middle, since ids differ at their ends."""
    line = " ".join(name.split())
    return line if len(line) <= 22 else f"{line[:6]}…{line[-15:]}"


_WIDTHS = (7, 7, 5, 5, 7, 7, 9)  # characters of the cells of a summary


def align_columns(label: str, cells: Sequence[str]) -> str:
    """Return seven right-aligned cells after a label. A long label takes the space left of the first cell."""
    line, end = label, 22
    for cell, width in zip(cells, _WIDTHS, strict=True):
        end += 1 + width
        line = f"{line:<{end - len(cell) - 1}} {cell}"
    return line


def _fit_number(number: float | None, places: int, width: int) -> str:
    """Format a number in `width` characters; in thousands (k), millions (M), … if it is too long."""
    if number is None:
        return "–"
    text = f"{number:,.{places}f}"
    for unit in "kMGT":
        if len(text) <= width:
            return text
        number /= 1000
        text = f"{number:,.0f}{unit}"
    return text


def render_summary(label: str, found: Distribution) -> str:
    """Return a line of mean, deviation and quantiles of whole numbers, to go below `SUMMARY_HEAD`."""
    if found.mean is None:
        return row(label, "none")
    places = 1 if found.mean < 10_000 else 0
    numbers = (found.mean, found.sd, found.min, found.p5, found.median, found.p95, found.max)
    cells = [
        _fit_number(number, places if place < 2 else 0, width)
        for place, (number, width) in enumerate(zip(numbers, _WIDTHS, strict=True))
    ]
    return align_columns(label, cells)


SUMMARY_HEAD = align_columns("", ("mean", "sd", "min", "5%", "median", "95%", "max"))
