"""Drawing: numbers to a vector picture that stands in a page.

matplotlib draws through its Figure and the SVG backend, without pyplot. A colour is a stand-in that becomes
a variable of the page's style, so a picture follows light and dark; text stays text; nothing depends on
the moment, and names within a picture begin with the picture's own. The palette is that of Okabe and Ito
(2008, Color Universal Design), which people with colour-blindness can tell apart.

Every picture is WIDTH units wide, a unit being a pixel where the page shows it at full size.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from edgen.core.text import shorten
from edgen.evaluation.figures import LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 400
SIZE = 12  # of text, in units
_COLUMNS = 58  # characters of text that fit beside each other

# Each is a variable of report.css; a line's place is its stand-in.
VARIABLES = (
    *("ink", "muted", "rule", "paper", "card"),
    *("blue", "orange", "green", "purple", "vermillion", "sky", "grey"),
    *(f"level-{step}" for step in range(LEVELS)),
)
_STAND_INS = {name: f"#0e1d{place:02x}" for place, name in enumerate(VARIABLES)}
_NAMES = {stand_in: f"var(--{name})" for name, stand_in in _STAND_INS.items()}


def colour(name: str) -> str:
    """The stand-in of a colour of the page."""
    return _STAND_INS[name]


class Canvas:
    """What one picture is drawn on, `height` units high. Use within `drawing()`."""

    def __init__(self, height: float) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.height = height
        self.figure: Figure = Figure(figsize=(WIDTH / 72, height / 72))
        FigureCanvasSVG(self.figure)
        self.figure.patch.set_visible(False)

    def axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Axes with these margins, in units from the picture's edges."""
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
        axes.spines["bottom"].set_color(colour("rule"))
        axes.tick_params(length=0, colors=colour("muted"), pad=5)
        return axes

    def text(self, x: float, y: float, words: str, **how: Any) -> None:
        """Words at units from the picture's left and top edge."""
        how = {"color": colour("ink"), "va": "baseline", **how}
        limit = how.pop("limit", _COLUMNS)
        self.figure.text(x / WIDTH, 1 - y / self.height, shorten(words, limit), **how)

    def svg(self, name: str, label: str) -> str:
        """The picture as an element of a page; `label` is its text alternative."""
        file = io.StringIO()
        with warnings.catch_warnings():
            # a letter that the measuring font lacks: the reader's own font has it
            warnings.simplefilter("ignore", UserWarning)
            self.figure.savefig(
                file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
            )
        return _embed(file.getvalue(), name, label)


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """matplotlib as the pictures need it, and as it was when they are done."""
    import matplotlib

    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "edgen",
            "font.family": "DejaVu Sans",  # comes with matplotlib; for measuring only
            "font.size": SIZE,
            "text.parse_math": False,
            "axes.unicode_minus": True,
            "path.simplify": True,
        }
    ):
        yield


def _embed(text: str, name: str, label: str) -> str:
    """matplotlib's file as an `<svg>` of a page: variables for colours, own names, the page's font."""
    old = ElementTree.fromstring(text)  # noqa: S314 - matplotlib's own
    names = {node.get("href", node.get(_HREF, "")).removeprefix("#") for node in old.iter()}
    names |= {_url(node.get("clip-path", "")) for node in old.iter()}
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
            made.set("clip-path", f"url(#{name}-{_url(value)})")
        elif key == "d":
            made.set("d", " ".join(value.split()))
        elif key == "style":
            made.set("style", _style(value))
        elif not (key == "transform" and value.startswith("rotate(-0 ")):
            made.set(key, value)
    made.text = node.text if tag == "text" else None
    for child in node:
        _copy(child, made, name, used)
    if tag in ("g", "defs") and not len(made):
        into.remove(made)


def _url(value: str) -> str:
    return value.removeprefix("url(#").removesuffix(")")


_PAGES = ("font-family", "text-anchor:start", f"font-size:{SIZE}px")  # what the page's own style says


def _style(value: str) -> str:
    parts = (part.strip().replace(": ", ":") for part in value.split(";"))
    joined = ";".join(part for part in parts if part and not part.startswith(_PAGES))
    for stand_in, variable in _NAMES.items():
        joined = joined.replace(stand_in, variable)
    return joined


def ticks(low: float, high: float, count: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers within [low, high]."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(nbins=count, integer=whole, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    slack = (high - low) * 1e-6
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def set_ticks(axes: Axes, places: Sequence[float], labels: Sequence[str]) -> None:
    """The ticks of the x axis, with rules of the grid behind what is drawn."""
    axes.set_xticks(list(places), list(labels))
    axes.grid(visible=True, axis="x", color=colour("rule"), linewidth=0.7)
    axes.set_axisbelow(True)
