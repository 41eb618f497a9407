"""Pictures of exercises as SVG, drawn from the things that a grammar states.

The same things give the same bytes. Texts are escaped; a picture loads nothing and runs nothing. Things
without a position stand in a row, with bars above each other. Things with a position are placed relative to
the last thing without one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from edgen.domains.tutoring.exercises.drawing.objects import OBJECTS, SOMETHING, Sketch
from edgen.domains.tutoring.exercises.drawing.scene import DrawnGroup, Placed, arrange, escape_words
from edgen.domains.tutoring.exercises.drawing.shapes import SHAPES, draw_bar, draw_pie
from edgen.domains.tutoring.exercises.model import Exercise, Thing
from edgen.plugin.files import shorten_word, suggest_name
from edgen.plugin.texts import columns, shorten, without_pictures

POSITIONS = ("on top of", "under", "inside of", "next to", "behind", "in front of")
THINGS = (*SHAPES, *OBJECTS, "something", "card", "bar", "pie")
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
MAX_PARTS = 48
MAX_LABEL = 40  # characters
_MARGIN = 22
_TITLE = 200  # characters
_NAME = 100  # characters of a file's name
_CARD = 24  # characters of a card's words


def find_thing_problem(thing: Thing) -> tuple[str, str] | None:
    """Return the reason why a thing cannot be drawn, as a key and a clause; None if it can."""
    for key, named, known in (
        ("thing", thing.thing, THINGS), ("colour", thing.colour, COLOURS),
        ("position", thing.position, ("", *POSITIONS))
    ):  # fmt: skip
        if named not in known:
            near = suggest_name(named, known) or f" (known: {', '.join(filter(None, known))})"
            return key, f"there is no {key} {shorten_word(repr(named))}{near}"
    if len(thing.label) > MAX_LABEL:
        return "label", f"it is longer than {MAX_LABEL} characters"
    if thing.label and thing.position and thing.thing != "card":
        return "label", "only things without a position have words under them"
    if thing.thing in ("bar", "pie"):
        return _find_parts_problem(thing)
    return None


def _find_parts_problem(thing: Thing) -> tuple[str, str] | None:
    for key, text in (("parts", thing.parts), ("of", thing.of)):
        if not (text.isascii() and text.isdigit() and len(text) < 4):
            return key, f"expected a whole number, got {shorten_word(repr(text))}"
    if not 1 <= int(thing.of) <= MAX_PARTS:
        return "of", f"expected 1 to {MAX_PARTS} parts, got {int(thing.of)}"
    if int(thing.parts) > int(thing.of):
        return "parts", f"{int(thing.parts)} parts of {int(thing.of)} are more than there are"
    return None


def draw_exercise(exercise: Exercise) -> str | None:
    """Return the picture of an exercise; None if its grammar has no drawing."""
    if not exercise.drawing:
        return None
    return draw(exercise.drawing, without_pictures(exercise.picture or exercise.question))


def make_picture_name(exercise: Exercise) -> str:
    """Return a file name for the picture of an exercise, unique in its space: `phrases_under_cat_red.svg`."""
    said = "_".join((exercise.tier, *exercise.concepts.values())).lower()
    plain = re.sub(r"[^a-z0-9]+", "_", said).strip("_")[:_NAME]
    exact = plain == said.replace(" ", "_") and "_" not in "".join(exercise.concepts.values())
    digest = hashlib.blake2b("\0".join(exercise.concepts.values()).encode(), digest_size=4).hexdigest()
    return f"{plain}.svg" if exact else f"{plain}_{digest}.svg"


def make_drawing_name(exercise: Exercise) -> str:
    """Return the name of the same picture as sent to models."""
    return make_picture_name(exercise).removesuffix(".svg") + ".png"


def draw(things: Sequence[Thing], title: str = "") -> str:
    """Return a picture of things without a `find_thing_problem`. `title` is its text alternative."""
    groups = [DrawnGroup.of(placed) for placed in _group_things(things)]
    wide, high = arrange(groups)
    wide, high = wide + 2 * _MARGIN, high + 2 * _MARGIN
    inner = "".join(group.render_svg(_MARGIN, _MARGIN) for group in groups)
    floor = ""
    if any(group.stands for group in groups):
        edge = high - _MARGIN - 34
        floor = (
            f'<path d="M0 {edge:.1f}H{wide:.1f}V{high - 14:.1f}a14 14 0 0 1-14 14H14a14 14 0 0 1-14-14Z" '
            'fill="#efe6d6"/>'
        )
    named = f"<title>{escape_words(shorten(title, _TITLE))}</title>" if title else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.1f} {high:.1f}" width="{wide:.0f}" '
        f'height="{high:.0f}" role="img">{named}<rect width="{wide:.1f}" height="{high:.1f}" rx="14" '
        f'fill="#fdfbf5"/>{floor}{inner}</svg>\n'
    )


def _group_things(things: Sequence[Thing]) -> list[list[Placed]]:
    """Group each thing without a position with the things that are placed around it."""
    groups: list[list[Placed]] = []
    for thing in things:
        placed = Placed(
            _draw_sketch(thing),
            _compute_tints(thing.colour),
            thing.position,
            "" if thing.thing == "card" else thing.label,
            thing.thing,
        )
        if thing.position and groups:
            groups[-1].append(placed)
        else:
            groups.append([placed])
    return groups


def _draw_sketch(thing: Thing) -> Sketch:
    name = thing.thing
    if name in ("bar", "pie"):
        return (draw_bar if name == "bar" else draw_pie)(int(thing.parts), int(thing.of))
    if name == "something":
        return SOMETHING
    return _draw_card(thing.label) if name == "card" else SHAPES.get(name) or OBJECTS[name]


def _draw_card(words: str) -> Sketch:
    """Return a card with words on it."""
    words = shorten(words, _CARD)
    wide = max(90, 24 + 11.5 * columns(words))
    body = (
        f'<rect x="{-wide / 2:.1f}" y="-62" width="{wide:.1f}" height="60" rx="10" fill="{{l}}" '
        'stroke="{o}" stroke-width="3"/>'
        '<text x="0" y="-25" text-anchor="middle" font-family="sans-serif" font-size="20" '
        f'fill="#2b2f36">{escape_words(words)}</text>'
    )
    return Sketch(wide, 64, body, (0, -62), (0, -32, 20), stands=False)


def _compute_tints(name: str) -> dict[str, str]:
    """Return the tints of a colour: the colour itself (m), a darker (d), a lighter (l) and the outline
    (o)."""
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
