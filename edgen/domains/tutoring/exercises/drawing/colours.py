"""Colours by their names, and the tints that a sketch needs of each."""

from __future__ import annotations

COLOURS: dict[str, str] = {
    "red": "#d9473a",
    "orange": "#ee8b2d",
    "yellow": "#f4c62f",
    "green": "#4fa65a",
    "blue": "#3d7fd9",
    "purple": "#8759c6",
    "pink": "#f08cb8",
    "brown": "#9a6b42",
    "black": "#43474e",
    "white": "#fbfaf5",
    "grey": "#a3abb3",
}


def compute_tints(name: str) -> dict[str, str]:
    """Return the colour itself (m), a darker (d) and a lighter one (l), and that of its outline (o)."""
    main = COLOURS[name]
    ink = "#3a1a14" if int(main[1:3], 16) > int(main[5:7], 16) + 8 else "#161d36"  # warm or cold
    return {
        "m": main,
        "d": _mix(main, ink, 0.22),
        "l": _mix(main, "#ffffff", 0.45),
        "o": _mix(main, ink, 0.62),
    }


def _mix(one: str, other: str, share: float) -> str:
    pairs = ((int(one[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
