"""The other half of the marks that stand before a role: `**` at the end of a bold line, `|` of a table, a closing tag."""

from __future__ import annotations

from edgen.reading.lines.line import RoleLine
from edgen.reading.roles import RoleWords

_HALVES = frozenset("*_|")


def has_half(prefix: str, text: str) -> bool:
    """Return whether a turn may hold the other half of the marks that stand before the role."""
    return text[-1:] in _HALVES or text[:1] == ">" or "<" in prefix or "[" in prefix or "(" in prefix


def unadorned(line: RoleLine, text: str, roles: RoleWords) -> str:
    """What a line introduces without the other half of the marks that stand before the role."""
    prefix = line.prefix.rstrip()
    if prefix.endswith("|") and text.startswith(">"):
        text = text[1:]
    if prefix.endswith(("**", "__")) and text.endswith(prefix[-2:]) and text.count(prefix[-2:]) % 2:
        text = text[:-2]
    if line.kind == "tag" and "|" in prefix and text.endswith("|"):
        text = text[:-1]
    if (
        prefix.endswith(("(", "('", '("'))
        and text.rstrip(" ,;").endswith(")")
        and text.count(")") > text.count("(")
    ):
        text = text.rstrip(" ,;")[:-1]
    cut = max(text.rfind("</"), text.rfind("[/"))
    if (
        cut >= 0
        and ("<" in prefix or "[" in prefix)
        and text[cut + 2 :].lower().startswith((*roles.by_name, "turn"))
    ):
        text = text[:cut]
    return text
