"""Text in columns of a terminal: wrapped by what characters take there, several blocks beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len, chop_cells, set_cell_size

GAP = 3


def wrap_text(text: str, width: int, *, first: str = "", rest: str = "") -> Iterator[str]:
    """The lines of a text, each no wider than `width`, white space at its beginning kept. The first begins with
    `first`, all others with `rest`."""
    lead = first
    for line in text.split("\n"):
        for piece in _pieces(line.expandtabs(4), max(width - max(cell_len(first), cell_len(rest)), 8)):
            yield (lead + piece).rstrip()
            lead = rest


def _pieces(line: str, width: int) -> Iterator[str]:
    now: str | None = None
    for word in line.split(" "):
        longer = word if now is None else f"{now} {word}"
        if cell_len(longer) <= width:
            now = longer
            continue
        if now is not None:
            yield now
        *whole, now = chop_cells(word, width) or [""]
        yield from whole
    yield now or ""


def join_blocks(blocks: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """The lines of several blocks beside each other, each `width` wide."""
    for lines in zip_longest(*blocks, fillvalue=""):
        yield (" " * GAP).join(set_cell_size(line, width) for line in lines).rstrip()
