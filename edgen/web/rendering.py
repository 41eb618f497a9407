"""Templates of the pages, and text that is safe to show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from edgen.core.text import safe

_HERE = Path(__file__).parent
STATIC = {
    "style.css": ("text/css", _HERE / "static" / "style.css"),
    "play.js": ("text/javascript", _HERE / "static" / "play.js"),
    "live.js": ("text/javascript", _HERE / "static" / "live.js"),
}
"""The files that pages load, by name, with their types. Nothing else can be asked for."""


def _shown(value: Any) -> Any:
    """Return a value as a page shows it: control and hidden characters are written out, markup is text."""
    if isinstance(value, Markup):
        return value
    return escape(safe(value)) if isinstance(value, str) else value


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"${value:,.4f}"


_environment = Environment(
    autoescape=True,
    loader=FileSystemLoader(_HERE / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_shown,
)
_environment.filters |= {"count": _count, "dollars": _dollars}


def render(template: str, **values: Any) -> str:
    """Render a page."""
    return _environment.get_template(template).render(**values)
