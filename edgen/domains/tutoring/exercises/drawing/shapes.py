"""Shapes and parts of a whole, in the units of `objects`: the foot's middle is at (0, 0), and up is
negative."""

from __future__ import annotations

import math

from edgen.domains.tutoring.exercises.drawing.objects import Sketch

_LINE = 'stroke="{o}" stroke-width="3.5" stroke-linejoin="round"'
BAR_WIDE, BAR_HIGH, PIE = 300, 46, 56  # the last value is the radius


def _compute_star() -> str:
    """Return the points of a star with five tips around (0, -56)."""
    tips = [
        (radius * math.sin(math.pi * turn / 5), -54 - radius * math.cos(math.pi * turn / 5))
        for turn in range(10)
        for radius in [58 if turn % 2 == 0 else 25]
    ]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in tips) + "Z"


SHAPES: dict[str, Sketch] = {
    "square": Sketch(100, 100, f'<path d="M-49-98H49V-1H-49Z" fill="{{m}}" {_LINE}/>', (0, -98), (0, -50, 30), stands=False),
    "triangle": Sketch(116, 102, f'<path d="M0-101L57-1H-57Z" fill="{{m}}" {_LINE}/>', (0, -99), (0, -36, 24), stands=False),
    "circle": Sketch(104, 104, f'<circle cx="0" cy="-52" r="50" fill="{{m}}" {_LINE}/>', (0, -102), (0, -52, 31), stands=False),
    "star": Sketch(114, 112, f'<path d="{_compute_star()}" fill="{{m}}" {_LINE}/>', (0, -110), (0, -54, 21), stands=False),
    "heart": Sketch(
        112, 100,
        '<path d="M0-2C-18-22-55-40-55-68C-55-100-13-107 0-77C13-107 55-100 55-68C55-40 18-22 0-2Z" '
        f'fill="{{m}}" {_LINE}/>',
        (0, -84), (0, -56, 26), stands=False,
    ),
}  # fmt: skip


def draw_bar(parts: int, of: int) -> Sketch:
    """Return a bar of `of` equal parts, the first of them filled."""
    wide = BAR_WIDE / of
    cells = "".join(
        f'<path d="M{number * wide - BAR_WIDE / 2:.1f} {-BAR_HIGH}h{wide:.1f}v{BAR_HIGH}h{-wide:.1f}z" '
        f'fill="{"{m}" if number < parts else "#fffdf8"}" stroke="{{o}}" stroke-width="2" '
        'stroke-linejoin="round"/>'
        for number in range(of)
    )
    frame = (
        f'<path d="M{-BAR_WIDE / 2:.1f} {-BAR_HIGH}h{BAR_WIDE}v{BAR_HIGH}h{-BAR_WIDE}z" fill="none" {_LINE}/>'
    )
    return Sketch(BAR_WIDE, BAR_HIGH, cells + frame, (0, -BAR_HIGH), (0, -BAR_HIGH / 2, 14), stands=False)


def draw_pie(parts: int, of: int) -> Sketch:
    """Return a pie of `of` equal parts, filled clockwise from the top."""
    cells = "".join(
        f'<path d="{_draw_slice(number, of)}" fill="{"{m}" if number < parts else "#fffdf8"}" stroke="{{o}}" '
        'stroke-width="2" stroke-linejoin="round"/>'
        for number in range(of)
    )
    frame = f'<circle cx="0" cy="{-PIE}" r="{PIE}" fill="none" {_LINE}/>'
    return Sketch(2 * PIE, 2 * PIE, cells + frame, (0, -2 * PIE), (0, -PIE, 24), stands=False)


def _draw_slice(number: int, of: int) -> str:
    if of == 1:
        return f"M{-PIE} {-PIE}a{PIE} {PIE} 0 1 1 {2 * PIE} 0a{PIE} {PIE} 0 1 1 {-2 * PIE} 0Z"
    (x, y), (to_x, to_y) = (
        (PIE * math.sin(turn), -PIE - PIE * math.cos(turn))
        for turn in (2 * math.pi * number / of, 2 * math.pi * (number + 1) / of)
    )
    return f"M0 {-PIE}L{x:.1f} {y:.1f}A{PIE} {PIE} 0 0 1 {to_x:.1f} {to_y:.1f}Z"
