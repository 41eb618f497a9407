"""The layout of a picture: each group is one thing and the things placed around it; groups stand next to each
other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from edgen.domains.tutoring.exercises.drawing.objects import Sketch
from edgen.plugin.texts import columns, escape_invisible

_SMALL = 54.0  # height of a thing placed around another one
_GAP = 26.0
_LABEL = 26.0  # height of a label under a thing
_DEPTH = 15.0  # shift of a thing in front (down) or at the back (up)


class Placed(NamedTuple):
    """A thing with its tints, its position, and the words under it."""

    sketch: Sketch
    tints: Mapping[str, str]
    position: str
    label: str
    name: str

    def draw_body(self) -> str:
        """Return the sketch in its colours."""
        return self.sketch.body.format_map(self.tints)

    def draw_front(self) -> str:
        """Return the part of the sketch that is drawn over things inside it; empty if there is none."""
        return (self.sketch.front or "").format_map(self.tints)


class _Layer(NamedTuple):
    """A drawn part: its place, its scale and its SVG. Layers with a lower `order` are drawn first."""

    order: int
    x: float
    y: float
    scale: float
    svg: str


@dataclass
class DrawnGroup:
    """A thing and the things around it. Coordinates are relative to its foot."""

    layers: list[_Layer] = field(default_factory=list)  # drawn parts
    left: float = 0.0  # edge of the group
    right: float = 0.0  # edge of the group
    top: float = 0.0  # edge of the group
    foot: float = 0.0  # edge of the group
    row: bool = True  # stands next to other groups; False: above the next
    stands: bool = False  # stands on a floor
    x: float = 0.0  # x of the group's foot in the drawing
    y: float = 0.0  # y of the group's foot in the drawing

    @classmethod
    def of(cls, placed: Sequence[Placed]) -> DrawnGroup:
        """Return the group of a thing, the first one, and the things around it."""
        base, *others = placed
        group = cls(row=base.name != "bar", stands=bool(others) or base.sketch.stands)
        lift = max([_compute_lift(base.sketch, one) for one in others], default=0.0)
        group._add(2, base, 0.0, -lift, 1.0, hollow=True)
        group.layers.append(_Layer(4, 0.0, -lift, 1.0, base.draw_front()))
        if group.stands:
            group._draw_shadow(0.0, 0.0, base.sketch.wide * 0.46, faint=lift > 0)
        seen: dict[str, int] = {}
        for one in others:
            number = seen[one.position] = seen.get(one.position, -1) + 1
            group._put(base.sketch, one, number, lift)
        if base.label:
            words = _draw_words(base.label)
            group.layers.append(_Layer(9, 0.0, _LABEL - 4, 1.0, words))
            group.foot = max(group.foot, _LABEL)
            half = 5.8 * columns(base.label)
            group.left, group.right = min(group.left, -half), max(group.right, half)
        return group

    def _add(
        self, order: int, one: Placed, x: float, y: float, scale: float, *, hollow: bool = False
    ) -> None:
        """Draw a thing. With `hollow`, leave out the part that is drawn over things inside it."""
        self.layers.append(
            _Layer(order, x, y, scale, one.draw_body() if hollow else one.draw_body() + one.draw_front())
        )
        half = one.sketch.wide * scale / 2
        self.left, self.right = min(self.left, x - half), max(self.right, x + half)
        self.top, self.foot = min(self.top, y - one.sketch.high * scale), max(self.foot, y)

    def _draw_shadow(self, x: float, y: float, half: float, *, faint: bool = False) -> None:
        opacity = ".08" if faint else ".16"
        svg = (
            f'<ellipse rx="{half:.1f}" ry="{max(4.0, half * 0.11):.1f}" fill="#3b2f1e" opacity="{opacity}"/>'
        )
        self.layers.append(_Layer(0, x, y, 1.0, svg))

    def _put(self, base: Sketch, one: Placed, number: int, lift: float) -> None:
        """Place a thing around the base. The next thing with the same position stands to the right of the
        last."""
        high = min(_SMALL, one.sketch.high)
        scale, step = high / one.sketch.high, number * high * 1.1
        half = one.sketch.wide * scale / 2
        if one.position == "on top of":
            self._add(5, one, base.top[0] + step, base.top[1] - lift + 3, scale)
        elif one.position == "inside of":
            self._put_inside(base, one, number, lift)
        elif one.position == "behind":
            x, y = base.side_offset + step, -_DEPTH
            self._add(1, one, x, y, scale)
            self._draw_shadow(x, y, half * 0.8)
        elif one.position == "in front of":
            x, y = step - base.wide * 0.16, _DEPTH
            self._draw_shadow(x, y, half * 0.8)
            self._add(6, one, x, y, scale)
        elif one.position == "under":
            self._put_under(base, one, step, scale)
        else:
            x = base.wide / 2 + _GAP + half + step
            self._draw_shadow(x, 0.0, half * 0.8)
            self._add(3, one, x, 0.0, scale)

    def _put_under(self, base: Sketch, one: Placed, step: float, scale: float) -> None:
        if base.clear:
            scale = min(scale, (base.clear + _compute_lift(base, one) - 6) / one.sketch.high)
        self._draw_shadow(step, 0.0, one.sketch.wide * scale * 0.4)
        self._add(1, one, step, 0.0, scale)

    def _put_inside(self, base: Sketch, one: Placed, number: int, lift: float) -> None:
        """Place a thing in the open front of the base, or in a hole cut into it."""
        x, y, radius = base.hole
        x, y = x + number * radius, y - lift
        scale = 2 * radius / max(one.sketch.high, one.sketch.wide)
        if base.front is not None:
            self._add(3, one, x, y + radius, scale)
            return
        hole = (
            f'<circle r="{radius:.1f}" fill="#fffdf8" stroke="#2b2f36" stroke-width="2.5" '
            'stroke-dasharray="6 4"/>'
        )
        self.layers.append(_Layer(3, x, y, 1.0, hole))
        scale *= 0.72
        self._add(4, one, x, y + one.sketch.high * scale / 2, scale)

    def render_svg(self, x: float, y: float) -> str:
        """Return the SVG of the group, with the corner of the drawing at (x, y)."""
        layers = sorted(self.layers, key=lambda layer: layer.order)
        return "".join(
            f'<g transform="translate({x + self.x + one.x:.1f} {y + self.y + one.y:.1f})'
            + ("" if one.scale == 1 else f" scale({one.scale:.3f})")
            + f'">{one.svg}</g>'
            for one in layers
            if one.svg
        )


def _compute_lift(base: Sketch, one: Placed) -> float:
    """Return the height by which the base is lifted for a thing under it; 0 for other positions."""
    if one.position != "under":
        return 0.0
    return max(0.0, _SMALL + 8 - base.clear)


def _draw_words(label: str) -> str:
    return (
        '<text text-anchor="middle" font-family="sans-serif" font-size="20" font-weight="600" fill="#2b2f36">'
        f"{escape_words(label)}</text>"
    )


def escape_words(words: str) -> str:
    """Return words for a sketch: escaped for XML and for format strings, with invisible characters written
    out."""
    return escape(escape_invisible(words)).replace("{", "&#123;").replace("}", "&#125;")


def arrange(groups: Sequence[DrawnGroup]) -> tuple[float, float]:
    """Set the place of each group; return the width and height of all. Groups in a row share a floor."""
    rows: list[list[DrawnGroup]] = []
    for group in groups:
        if rows and group.row and rows[-1][-1].row:
            rows[-1].append(group)
        else:
            rows.append([group])
    widths = [sum(one.right - one.left for one in row) + _GAP * (len(row) - 1) for row in rows]
    wide, y = max(widths), 0.0
    for row, width in zip(rows, widths, strict=True):
        x, high = (wide - width) / 2, max(-one.top for one in row)
        for one in row:
            one.x, one.y = x - one.left, y + high
            x += one.right - one.left + _GAP
        y += high + max(one.foot for one in row) + _GAP
    return wide, y - _GAP
