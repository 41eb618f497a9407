"""Shapes and texts of an SVG picture: safe for XML, in installed fonts, with estimated widths of texts."""

from __future__ import annotations

from html import escape

SANS = "font-family=\"system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif\""
MONO = "font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\""
SANS_EM, MONO_EM = 0.56, 0.605  # width of a character, as a part of the font size
INK, SOFT, FAINT = "#1d2530", "#5d6874", "#9aa3ad"


def draw_bend(x: float, y: float, end_x: float, end_y: float) -> str:
    middle = (x + end_x) / 2
    return f"C{middle:g} {y:g} {middle:g} {end_y:g} {end_x:g} {end_y:g}"


def mark(x: float, y: float, colour: str) -> str:
    return f'<rect x="{x - 3.5:g}" y="{y - 3.5:g}" width="7" height="7" rx="2" fill="{colour}"/>'


def draw_arrow(x: float, y: float, colour: str) -> str:
    """Return an arrow that turns back."""
    path = f"M{x - 3:g} {y + 4:g}h7a4 4 0 0 0 0 -8h-8"
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3"/><path d="M{x - 6:g} '
        f'{y - 4:g}l5 -3v6z" fill="{colour}"/>'
    )


def draw_text(
    x: float, y: float, words: str, size: float, colour: str = INK, *,
    weight: int = 400, anchor: str = "start", style: str = "normal", font: str = "",
) -> str:  # fmt: skip
    more = "" if weight == 400 else f' font-weight="{weight}"'
    more += "" if anchor == "start" else f' text-anchor="{anchor}"'
    more += "" if style == "normal" else f' font-style="{style}"'
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}"{more} '
        f"{font}>{escape_xml(words)}</text>"
    )


def escape_xml(words: str) -> str:
    """Return a text escaped for XML, with U+FFFD for control characters and lone surrogates."""
    return escape("".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in words))


def fit_text(words: str, size: float, room: float, em: float) -> str:
    """Return the text, shortened if it is wider than `room`."""
    most = max(1, int(room / (size * em)))
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def wrap_words(words: str, size: float, room: float) -> list[str]:
    lines: list[str] = []
    for word in words.split():
        if lines and (len(lines[-1]) + len(word) + 1) * size * SANS_EM <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
