"""Width of text in a picture, measured in DejaVu Sans.

The page uses the reader's own font. DejaVu Sans ships with matplotlib and is wider than most system fonts, so
text that fits in DejaVu Sans fits on the page.
"""

from __future__ import annotations

import functools
import unicodedata
from pathlib import Path

from edgen.core.text import escape_invisible

SIZE = 12  # size of text, in units of a picture
_WIDE = 1.0  # width of an East Asian letter, in sizes of the text
_UNKNOWN = 0.8  # width of a letter missing in the font, for which the reader's font may show a box
_READ = 1_000  # most letters of a text that are measured


def measure_width(words: str, size: float = SIZE) -> float:
    """Return the width of one line of text, in units."""
    return size * sum(map(_advance, words))


def truncate(words: str, room: float, size: float = SIZE) -> str:
    """Return the text on one line, truncated with an ellipsis if wider than `room` units."""
    flat = " ".join(escape_invisible(words[:_READ]).split())
    used = 0.0
    limit = room - measure_width("…", size)
    kept = 0
    for place, char in enumerate(flat):
        used += size * _advance(char)
        if used <= limit:
            kept = place + 1
        elif used > room:
            return flat[:kept].rstrip() + "…"
    return flat


def truncate_ends(words: str, room: float) -> str:
    """Return the text on one line, truncated in the middle: names of arms often differ only at their ends."""
    flat = truncate(words, float("inf"))
    if measure_width(flat) <= room:
        return flat
    dots = measure_width("…")
    start = truncate(flat, (room - dots) / 2 + dots).removesuffix("…")
    end = truncate(flat[::-1], room - measure_width(start + "…") + dots)
    return f"{start}…{end.removesuffix('…')[::-1]}"


@functools.lru_cache(maxsize=4096)
def _advance(char: str) -> float:
    """Return the width of a letter in sizes of the text."""
    if unicodedata.east_asian_width(char) in "WF":
        return _WIDE
    font = _load_font()
    if not font.get_char_index(ord(char)):
        return _UNKNOWN
    if unicodedata.combining(char):
        return 0.0
    return float(font.load_char(ord(char)).linearHoriAdvance) / 65536 / SIZE


@functools.cache
def _load_font():  # type: ignore[no-untyped-def]
    import matplotlib
    from matplotlib.ft2font import FT2Font

    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"))
    font.set_size(SIZE, 72)
    return font
