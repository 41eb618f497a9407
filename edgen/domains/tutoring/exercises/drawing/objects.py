"""Sketches of the objects. The foot's middle is at (0, 0), and up is negative.

`{m}` is the object's colour, `{d}` a darker and `{l}` a lighter tint of it, `{o}` its outline. The sketches
are edgen's own.
"""

from __future__ import annotations

from typing import NamedTuple


class Sketch(NamedTuple):
    """A sketch of an object. Lengths are in units of the drawing, relative to the middle of the object's
    foot."""

    wide: float  # width
    high: float  # height
    body: str  # SVG
    top: tuple[float, float]  # point on which another thing stands
    hole: tuple[float, float, float] = (0, -40, 26)  # x, y and radius of the visible part inside
    front: str | None = None  # SVG drawn over something inside; None: a hole is cut
    clear: float = 0  # height of the room under it; 0: it is lifted for a thing under it
    side_offset: float = 44  # distance from the middle at which a thing at the back shows
    stands: bool = True  # whether it stands on a floor


_DARK = "#2b2f36"
_LINE = 'stroke="{o}" stroke-width="3" stroke-linejoin="round" stroke-linecap="round"'
_WOOD = '#b98a5e" stroke="#6d4c30" stroke-width="3" stroke-linejoin="round'
_EYES = (
    f'<ellipse cx="-13" cy="-84" rx="4.4" ry="5.6" fill="{_DARK}"/><ellipse cx="13" cy="-84" rx="4.4" '
    f'ry="5.6" fill="{_DARK}"/>'
    '<circle cx="-11.4" cy="-86" r="1.5" fill="#fff"/><circle cx="14.6" cy="-86" r="1.5" fill="#fff"/>'
)
# A sitting animal from the front, without its head.
_SITTING = (
    f'<path d="M-30 0C-42-34-26-64 0-64C26-64 42-34 30 0Z" fill="{{m}}" {_LINE}/>'
    '<path d="M-17-8C-21-32-13-46 0-46C13-46 21-32 17-8Z" fill="{l}"/>'
    f'<ellipse cx="-16" cy="-5" rx="14" ry="8" fill="{{m}}" {_LINE}/><ellipse cx="16" cy="-5" rx="14" '
    f'ry="8" fill="{{m}}" {_LINE}/><path d="M-20-4V-1M-13-3V0M20-4V-1M13-3V0" fill="none" {_LINE}/>'
)
_CAT = (
    '<path d="M26-8C66-2 68-44 52-60" fill="none" stroke="{o}" stroke-width="16" stroke-linecap="round"/>'
    '<path d="M26-8C66-2 68-44 52-60" fill="none" stroke="{m}" stroke-width="10" stroke-linecap="round"/>'
    + _SITTING
    + f'<path d="M-33-84L-35-119L-9-106ZM33-84L35-119L9-106Z" fill="{{m}}" {_LINE}/>'
    '<path d="M-29-95L-30-110L-18-104ZM29-95L30-110L18-104Z" fill="{l}"/>'
    f'<ellipse cx="0" cy="-82" rx="37" ry="29" fill="{{m}}" {_LINE}/>'
    '<path d="M-6-110V-101M0-111V-99M6-110V-101" stroke="{d}" stroke-width="3.4" stroke-linecap="round"/>'
    + _EYES
    + f'<path d="M-4.5-76H4.5L0-71Z" fill="#e98a96" stroke="{_DARK}" stroke-width="1.6" '
    'stroke-linejoin="round"/>'
    f'<path d="M0-71V-68M0-68C-2-63-9-63-11-67M0-68C2-63 9-63 11-67" fill="none" stroke="{_DARK}" '
    'stroke-width="2.2" stroke-linecap="round"/>'
    f'<path d="M-21-74L-47-79M-21-70L-47-69M21-74L47-79M21-70L47-69" stroke="{_DARK}" stroke-width="1.7" '
    'stroke-linecap="round"/>'
)
_DOG = (
    '<path d="M28-14C44-18 52-32 50-48" fill="none" stroke="{o}" stroke-width="15" stroke-linecap="round"/>'
    '<path d="M28-14C44-18 52-32 50-48" fill="none" stroke="{m}" stroke-width="9" stroke-linecap="round"/>'
    + _SITTING
    + f'<path d="M-24-62C-12-54 12-54 24-62L22-54C12-47-12-47-22-54Z" fill="#fff6df" {_LINE}/>'
    '<circle cx="0" cy="-48" r="5.5" fill="#f2c230" stroke="#7a5a10" stroke-width="2"/>'
    '<path d="M-32-96C-34-112-20-117 0-117C20-117 34-112 32-96C34-72 22-58 0-58C-22-58-34-72-32-96Z" '
    f'fill="{{m}}" {_LINE}/><ellipse cx="14" cy="-87" rx="13" ry="14" fill="{{l}}"/>'
    f'<path d="M-27-110C-46-112-56-92-50-70C-48-62-38-62-36-72C-34-84-30-92-24-98Z" fill="{{d}}" {_LINE}/>'
    f'<path d="M27-110C46-112 56-92 50-70C48-62 38-62 36-72C34-84 30-92 24-98Z" fill="{{d}}" {_LINE}/>'
    + f'<path d="M-6-62C-6-50 6-50 6-62Z" fill="#e5687a" stroke="{_DARK}" stroke-width="2"/>'
    '<ellipse cx="0" cy="-70" rx="18" ry="11.5" fill="#fffaf0"/>'
    f'<ellipse cx="0" cy="-76" rx="8.5" ry="6" fill="{_DARK}"/><ellipse cx="-2.6" cy="-78" rx="2.4" '
    'ry="1.4" fill="#fff" opacity=".7"/>'
    f'<path d="M0-70V-66M0-66C-3-61-11-61-14-66M0-66C3-61 11-61 14-66" fill="none" stroke="{_DARK}" '
    'stroke-width="2.2" stroke-linecap="round"/>' + _EYES.replace("-84", "-90").replace("-86", "-92")
)
_BUNNY = (
    f'<circle cx="34" cy="-16" r="12" fill="{{l}}" {_LINE}/>'
    + _SITTING
    + '<path d="M-6-100C-14-104-34-136-27-150C-20-162-2-132-3-101ZM6-100C14-104 34-136 27-150C20-162 '
    f'2-132 3-101Z" fill="{{m}}" {_LINE}/>'
    '<path d="M-9-108C-15-114-26-136-23-143C-19-148-8-126-8-109ZM9-108C15-114 26-136 23-143C19-148 8-126 '
    f'8-109Z" fill="{{l}}"/><ellipse cx="0" cy="-82" rx="32" ry="28" fill="{{m}}" {_LINE}/>'
    '<ellipse cx="-9" cy="-70" rx="11" ry="9" fill="{l}"/><ellipse cx="9" cy="-70" rx="11" ry="9" '
    'fill="{l}"/>'
    + _EYES
    + f'<path d="M-4.6-64H4.6V-55.5H-4.6Z" fill="#fff" stroke="{_DARK}" stroke-width="1.6" '
    f'stroke-linejoin="round"/><path d="M0-64V-55.5" stroke="{_DARK}" stroke-width="1.4"/>'
    f'<path d="M-5-76H5L0-70.500Z" fill="#e98a96" stroke="{_DARK}" stroke-width="1.6" '
    'stroke-linejoin="round"/>'
    f'<path d="M0-70C-2-64-9-64-12-67M0-70C2-64 9-64 12-67" fill="none" stroke="{_DARK}" stroke-width="2.2" '
    'stroke-linecap="round"/>'
    f'<path d="M-20-70L-42-74M-20-66L-42-64M20-70L42-74M20-66L42-64" stroke="{_DARK}" stroke-width="1.5" '
    'stroke-linecap="round"/>'
)
_LEAF = "M0-46C-22-56-30-88-10-116C6-98 12-70 0-46Z"
_PLANT = (
    "".join(
        f'<g transform="rotate({turn} 0 -46)"><path d="{_LEAF}" fill="{{{shade}}}" {_LINE}/>'
        '<path d="M-1-52C-8-72-9-92-9-106" fill="none" stroke="{o}" stroke-width="1.8" '
        'stroke-linecap="round"/></g>'
        for turn, shade in ((-62, "d"), (74, "d"), (-26, "m"), (42, "m"), (9, "l"))
    )
    + '<path d="M-28-42H28L21-2C20 0-20 0-21-2Z" fill="#cf8a5b" stroke="#7c4a2a" stroke-width="3" '
    'stroke-linejoin="round"/>'
    '<path d="M-33-50H33V-37H-33Z" fill="#dc9a6b" stroke="#7c4a2a" stroke-width="3" stroke-linejoin="round"/>'
)
_TREE = (
    f'<path d="M-11 0C-6-16-8-36-9-58H9C8-36 6-16 11 0C4-3-4-3-11 0Z" fill="{_WOOD}"/>'
    f'<path d="M-2-62L-20-76M2-66L18-82" stroke="#6d4c30" stroke-width="4" stroke-linecap="round"/>'
    '<path d="M-30-58C-58-56-66-88-46-100C-52-128-20-146 0-132C20-148 54-128 47-101C66-88 58-56 '
    f'30-58C18-48-18-48-30-58Z" fill="{{m}}" {_LINE}/>'
    '<path d="M-34-98C-36-116-20-126-8-122M12-124C24-126 34-116 33-106" fill="none" stroke="{l}" '
    'stroke-width="5" stroke-linecap="round"/>'
    '<path d="M-36-68C-28-62-20-62-14-66M10-64C20-58 32-62 38-70" fill="none" stroke="{d}" stroke-width="4" '
    'stroke-linecap="round"/>'
)
_BALL = (
    f'<circle cx="0" cy="-46" r="45" fill="#fffdf6" {_LINE}/>'
    '<path d="M0-91C-30-84-42-62-44-52C-30-36-18-34-5-42C-12-58-10-78 0-91Z" fill="{m}"/>'
    '<path d="M0-91C24-90 42-70 45-46C38-36 26-32 8-38C14-58 12-78 0-91Z" fill="{d}"/>'
    '<path d="M-5-40C-18-30-34-34-44-44C-43-20-24-2-2-1C6-14 4-30-2-40Z" fill="{l}"/>'
    '<path d="M3-39C8-28 10-14 1-1C24-2 42-20 45-42C34-32 20-32 6-38Z" fill="{m}"/>'
    '<path d="M0-91C-10-78-13-58-4-41M0-91C12-78 15-58 5-39M-44-52C-32-34-16-34-4-41M45-48C36-32 20-32 '
    f'5-39M-2-1C6-14 8-28 1-40" fill="none" {_LINE}/>'
    '<circle cx="0" cy="-40" r="6.5" fill="#fffdf6" stroke="{o}" stroke-width="2.5"/>'
    f'<circle cx="0" cy="-46" r="45" fill="none" {_LINE}/>'
    '<path d="M-31-62C-27-71-22-76-15-80" fill="none" stroke="#fff" stroke-width="5" stroke-linecap="round" '
    'opacity=".75"/>'
)
_TABLE = (
    f'<path d="M-46-70H-38V-12H-46ZM38-70H46V-12H38Z" fill="{{d}}" {_LINE}/>'
    f'<path d="M-64-68H-53V0H-62ZM53-68H64L62 0H53Z" fill="{{m}}" {_LINE}/>'
    f'<path d="M-58-92H58L72-76H-72Z" fill="{{l}}" {_LINE}/>'
    f'<path d="M-72-76H72V-66H-72Z" fill="{{m}}" {_LINE}/>'
)
_BOX_BACK = (
    f'<path d="M-52-66L-36-84H52L36-66Z" fill="{{o}}" {_LINE}/>'
    f'<path d="M-36-84L-30-108H58L52-84Z" fill="{{l}}" {_LINE}/>'
)
_BOX_FRONT = (
    f'<path d="M36-66L52-84V-20L36 0Z" fill="{{d}}" {_LINE}/>'
    f'<path d="M-52-66H36V0H-52Z" fill="{{m}}" {_LINE}/>'
    f'<path d="M36-66L52-84L72-72L54-55Z" fill="{{l}}" {_LINE}/>'
    f'<path d="M-52-66H36L29-44H-59Z" fill="{{l}}" {_LINE}/>'
    '<path d="M-18-12H4" stroke="{d}" stroke-width="5" stroke-linecap="round"/>'
)
_BAG_BACK = (
    '<path d="M-22-78C-22-118 22-118 22-78" fill="none" stroke="{o}" stroke-width="12"/>'
    '<path d="M-22-78C-22-118 22-118 22-78" fill="none" stroke="{d}" stroke-width="6.5"/>'
    f'<path d="M-42-80C-30-90 30-90 42-80L40-68H-40Z" fill="{{o}}" {_LINE}/>'
)
_BAG_FRONT = (
    '<path d="M-42-80C-30-71 30-71 42-80C48-52 54-26 52-8C52-2 49 0 44 0H-44C-49 '
    f'0-52-2-52-8C-54-26-48-52-42-80Z" fill="{{m}}" {_LINE}/>'
    '<path d="M-26-76C-26-40 26-40 26-76" fill="none" stroke="{o}" stroke-width="11" stroke-linecap="round"/>'
    '<path d="M-26-76C-26-40 26-40 26-76" fill="none" stroke="{l}" stroke-width="5.500" '
    'stroke-linecap="round"/>'
    '<path d="M-46-14H46" stroke="{d}" stroke-width="3.500" stroke-dasharray="7 6" stroke-linecap="round"/>'
)
_BED = (
    f'<path d="M-84 0V-84C-84-92-70-92-70-84V0ZM72 0V-50C72-57 84-57 84-50V0Z" fill="{_WOOD}"/>'
    f'<path d="M-70-34H72V-20H-70Z" fill="{_WOOD}"/>'
    '<path d="M-70-54H72V-34H-70Z" fill="#fffdf6" stroke="#8b8f96" stroke-width="3" stroke-linejoin="round"/>'
    '<path d="M-66-54C-70-72-62-76-48-74C-36-76-28-72-30-54Z" fill="#fffdf6" stroke="#8b8f96" '
    'stroke-width="3" stroke-linejoin="round"/>'
    '<path d="M-26-54C-20-66 20-62 72-60V-26C68-21 64-21 60-26C55-20 50-20 45-26C40-20 35-20 30-26C25-20 '
    '20-20 15-26C10-20 5-20 0-26C-5-20-10-20-15-26C-20-21-24-21-28-26C-30-36-30-46-26-54Z" fill="{m}" '
    f"{_LINE}/>"
    '<path d="M-27-44C-20-52 20-50 72-48" fill="none" stroke="{l}" stroke-width="7"/>'
)

OBJECTS: dict[str, Sketch] = {
    "cat": Sketch(112, 119, _CAT, (0, -108), (0, -30, 23)),
    "dog": Sketch(108, 117, _DOG, (0, -115), (0, -30, 23)),
    "bunny": Sketch(96, 152, _BUNNY, (0, -112), (0, -30, 23)),
    "plant": Sketch(120, 118, _PLANT, (0, -114), (0, -22, 17), side_offset=26),
    "tree": Sketch(120, 138, _TREE, (0, -132), (0, -94, 28), side_offset=15),
    "ball": Sketch(92, 92, _BALL, (0, -90), (0, -46, 29)),
    "table": Sketch(146, 92, _TABLE, (0, -82), (0, -71, 20), clear=66, side_offset=66),
    "box": Sketch(132, 108, _BOX_BACK, (12, -104), (-2, -68, 26), _BOX_FRONT, side_offset=56),
    "bag": Sketch(106, 110, _BAG_BACK, (0, -104), (0, -84, 22), _BAG_FRONT, side_offset=50),
    "bed": Sketch(172, 92, _BED, (18, -58), (24, -40, 22), clear=20, side_offset=82),
}  # fmt: skip
# Stands for an unknown thing.
SOMETHING = Sketch(
    52, 52,
    f'<circle cx="0" cy="-26" r="24.5" fill="#fff3c9" stroke="{_DARK}" stroke-width="3"/>'
    '<path d="M-8.500-32C-8.500-43.500 9-43.500 9-32.500C9-25.500 0-26 0-18.500" fill="none" '
    f'stroke="{_DARK}" stroke-width="5" stroke-linecap="round"/>'
    f'<circle cx="0" cy="-10.500" r="3.200" fill="{_DARK}"/>',
    (0, -51), (0, -26, 16),
)  # fmt: skip
