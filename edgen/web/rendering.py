"""Templates of the pages, and escaped text."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from edgen.core.page_parts import PAGE_PARTS, STYLE
from edgen.core.text import escape_for_terminal

_HERE = Path(__file__).parent
_WRAPPED = re.compile(r"^(.{60,}?)[ \t]?\n(?=[^\s*•#>|-])(?!\d+[.)])", re.MULTILINE)
_TYPES = {".css": "text/css", ".js": "text/javascript"}
STATIC: dict[str, tuple[str, tuple[Path, ...]]] = {
    path.name: (_TYPES[path.suffix], (path,)) for path in sorted((_HERE / "static").glob("*.*s"))
}
"""The files that pages load, by name: the type, and the files that make it up. There are no others."""
STATIC["style.css"] = (_TYPES[".css"], (STYLE, *STATIC["style.css"][1]))


def _render_value(value: Any) -> Any:
    """Return a value as a page shows it: control and hidden characters are written out, markup is escaped."""
    if isinstance(value, Markup):
        return value
    return escape(escape_for_terminal(value)) if isinstance(value, str) else value


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"${value:,.4f}"


def _link(run: Any, named: object, root: str) -> str:
    """Return the address of a conversation's page; `root` is "/", or the root of a static site."""
    if root == "/":
        return f"/run/{run.slug}/{quote(str(named), safe='')}"
    return f"{root}{make_page_name(str(named))}"


def _list_link(run: Any, root: str) -> str:
    return f"/run/{run.slug}" if root == "/" else f"{root}index.html"


def _flow(text: str) -> str:
    """Return a text with flowing paragraphs: a line break after a long line becomes a space."""
    return _WRAPPED.sub(r"\1 ", text)


def make_page_name(identifier: str) -> str:
    """Return the file name of a conversation in a static site: letters and digits of the id, and a digest if
    other characters were left out."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", identifier)[:100].lstrip(".")
    if plain == identifier:
        return f"{plain}.html"
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{plain}-{digest}.html"


_environment = Environment(
    autoescape=True,
    loader=FileSystemLoader((_HERE / "templates", PAGE_PARTS)),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_render_value,
)
_environment.filters |= {
    "count": _count,
    "dollars": _dollars,
    "flow": _flow,
    "link": _link,
    "list_link": _list_link,
}


def read_static_file(name: str) -> tuple[str, bytes] | None:
    """Return a file that pages load, with its type; None for an unknown name."""
    if (known := STATIC.get(name)) is None:
        return None
    return known[0], b"\n".join(path.read_bytes() for path in known[1])


def render(template: str, **values: Any) -> str:
    """Render a page."""
    return _environment.get_template(template).render(**values)
