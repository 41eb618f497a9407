"""Drawing of vector pictures for a page.

matplotlib draws through its Figure and the SVG backend, without pyplot. A colour is a placeholder for a
variable of the page's style, so pictures follow light and dark mode. Text stays text. Output does not depend
on time, and each picture has its own prefix of names. The palette is that of Okabe and Ito (2008, Color
Universal Design), which is distinguishable with colour-blindness.

Every picture is WIDTH units wide, a unit being a pixel at full size.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from edgen.evaluation.drawings import LEVELS, Axis
from edgen.report.text_width import SIZE, measure_width, truncate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 400
_FOOT, _TICKS = 40, 24  # units below an axis: for ticks and title, and for ticks alone
_BEYOND = 0.02  # share of the axis left free at both ends
_TICK = 52  # maximum units for the text of a tick

# Variables of report.css. A variable's position is its placeholder.
VARIABLES = (
    *("ink", "muted", "rule", "track", "paper", "card"),
    *("blue", "orange", "green", "purple", "vermillion", "sky", "grey"),
    *(f"level-{step}" for step in range(LEVELS)),
)
_STAND_INS = {name: f"#0e1d{place:02x}" for place, name in enumerate(VARIABLES)}
_NAMES = {stand_in: f"var(--{name})" for name, stand_in in _STAND_INS.items()}


def make_placeholder(name: str) -> str:
    """Return the placeholder of a colour of the page."""
    return _STAND_INS[name]


class Canvas:
    """A canvas for one picture, `height` units high. Use within `configure_drawing()`."""

    def __init__(self, height: float) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.height = height
        self.figure: Figure = Figure(figsize=(WIDTH / 72, height / 72))
        FigureCanvasSVG(self.figure)
        self.figure.patch.set_visible(False)

    def make_axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Return axes with these margins, in units from the picture's edges."""
        axes = self.figure.add_axes(
            (
                left / WIDTH,
                bottom / self.height,
                (WIDTH - left - right) / WIDTH,
                (self.height - top - bottom) / self.height,
            )
        )
        axes.patch.set_visible(False)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(make_placeholder("rule"))
        axes.tick_params(length=0, colors=make_placeholder("muted"), pad=5)
        return axes

    def write_text(self, x: float, y: float, words: str, room: float = WIDTH, **how: Any) -> None:
        """Write words at units from the picture's left and top edge, truncated to `room`."""
        how = {"color": make_placeholder("ink"), "va": "baseline", **how}
        words = truncate(words, room, how.get("size", SIZE))
        self.figure.text(x / WIDTH, 1 - y / self.height, words, **how)

    def draw_swatch(self, x: float, y: float, shade: str) -> None:
        """Draw a coloured square in front of a word whose baseline is at `y`."""
        from matplotlib.patches import Rectangle

        self.figure.add_artist(
            Rectangle(
                (x / WIDTH, 1 - y / self.height), 9 / WIDTH, 9 / self.height,
                facecolor=make_placeholder(shade), edgecolor="none", transform=self.figure.transFigure,
            )
        )  # fmt: skip

    def render_svg(self, name: str, label: str) -> str:
        """Return the picture as an element of a page; `label` is its text alternative."""
        file = io.StringIO()
        with warnings.catch_warnings():
            # the reader's own font may have a letter that the measuring font lacks
            warnings.simplefilter("ignore", UserWarning)
            self.figure.savefig(
                file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
            )
        return _embed(file.getvalue(), name, label)


def has_font_list() -> bool:
    """Return whether matplotlib has listed this machine's fonts, as it does when it is first imported."""
    import matplotlib

    return any(Path(matplotlib.get_cachedir()).glob("fontlist-*.json"))


@contextlib.contextmanager
def configure_drawing() -> Iterator[None]:
    """Configure matplotlib for the pictures, independent of the user's matplotlibrc; restore it at the
    end."""
    import matplotlib

    usual: dict[Any, Any] = {
        name: matplotlib.rcParamsDefault[name] for name in matplotlib.rcParams if name != "backend"
    }
    with matplotlib.rc_context(
        usual
        | {
            "svg.fonttype": "none",
            "svg.hashsalt": "edgen",
            "font.family": "DejaVu Sans",  # ships with matplotlib; only measures text
            "font.size": SIZE,
            "text.parse_math": False,
            "axes.unicode_minus": True,
            "path.simplify": True,
        }
    ):
        yield


def _embed(text: str, name: str, label: str) -> str:
    """Return matplotlib's file as the `<svg>` of a page, with variables for colours, prefixed names and the
    page's font."""
    old = ElementTree.fromstring(text)  # noqa: S314 - matplotlib's own output
    names = {node.get("href", node.get(_HREF, "")).removeprefix("#") for node in old.iter()}
    names |= {_rename_url(node.get("clip-path", "")) for node in old.iter()}
    new = ElementTree.Element(
        "svg",
        {"viewBox": old.get("viewBox", ""), "role": "img", "aria-label": label, "class": "picture"},
    )
    for child in old:
        _copy(child, new, name, names)
    return ElementTree.tostring(new, encoding="unicode", short_empty_elements=True)


_HREF = "{http://www.w3.org/1999/xlink}href"
_DROPPED = ("metadata", "style", "title", "desc")


def _copy(node: ElementTree.Element, into: ElementTree.Element, name: str, used: set[str]) -> None:
    tag = node.tag.rpartition("}")[2]
    if tag in _DROPPED:
        return
    made = ElementTree.SubElement(into, tag)
    for key, value in node.attrib.items():
        if key == "id":
            if value in used:
                made.set("id", f"{name}-{value}")
        elif key in (_HREF, "href"):
            made.set("href", f"#{name}-{value[1:]}")
        elif key == "clip-path":
            made.set("clip-path", f"url(#{name}-{_rename_url(value)})")
        elif key == "d":
            made.set("d", " ".join(value.split()))
        elif key == "style":
            made.set("style", _clean_style(value))
        elif not (key == "transform" and value.startswith("rotate(-0 ")):
            made.set(key, value)
    made.text = node.text if tag == "text" else None
    for child in node:
        _copy(child, made, name, used)
    if tag in ("g", "defs") and not len(made):
        into.remove(made)


def _rename_url(value: str) -> str:
    return value.removeprefix("url(#").removesuffix(")")


_PAGES = ("font-family", "text-anchor:start", f"font-size:{SIZE}px")  # the page's style sets it


def _clean_style(value: str) -> str:
    parts = (part.strip().replace(": ", ":") for part in value.split(";"))
    joined = ";".join(part for part in parts if part and not part.startswith(_PAGES))
    for stand_in, variable in _NAMES.items():
        joined = joined.replace(stand_in, variable)
    return joined


def choose_ticks(low: float, high: float, count: int = 5, *, whole: bool = False) -> list[float]:
    """Return round numbers within [low, high]."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(nbins=count, integer=whole, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    slack = (high - low) * 1e-6
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def set_ticks(axes: Axes, places: Sequence[float], labels: Sequence[str]) -> None:
    """Set the ticks of the x axis, with grid lines in the background."""
    axes.set_xticks(list(places), list(labels))
    axes.grid(visible=True, axis="x", color=make_placeholder("rule"), linewidth=0.7)
    axes.set_axisbelow(True)


def compute_foot(title: str) -> float:
    """Return the units below an axis for its ticks, and its title if it has one."""
    return _FOOT if title else _TICKS


def set_scale(axes: Axes, axis: Axis, values: Sequence[float]) -> None:
    """Set limits that contain all values, as many round ticks as fit, and the title."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = low if axis.low is None else min(low, axis.low)
    high = high if axis.high is None else max(high, axis.high)
    if high - low < 1e-9:
        low, high = (
            (low - 0.5, high + 0.5)
            if axis.whole
            else (low - abs(low) * 0.1 - 1e-3, high + abs(high) * 0.1 + 1e-3)
        )
    slack = (high - low) * _BEYOND
    axes.set_xlim(low - slack, high + slack)
    places = [float(p) for p in range(math.ceil(low), math.floor(high) + 1)] if axis.log else []
    count = max(1, min(5, int(axes.get_position().width * WIDTH / _TICK)))
    if len(places) > count + 1:
        places = places[:: math.ceil(len(places) / (count + 1))]
    if len(places) < 2:
        places = _choose_ticks_with_room(axes, axis, low, high, count)
    set_ticks(axes, places, [axis.tick(place) for place in places])
    axes.set_xlabel(axis.title, color=make_placeholder("muted"))


def _choose_ticks_with_room(axes: Axes, axis: Axis, low: float, high: float, count: int) -> list[float]:
    """Return round ticks, or only the first and the last if more would overlap."""
    places = choose_ticks(low, high, count, whole=axis.whole)
    room = axes.get_position().width * WIDTH
    if sum(measure_width(axis.tick(place)) + 8 for place in places) > room and len(places) > 2:
        return [places[0], places[-1]]
    return places
