"""Text that a terminal may be given: what it would obey or hide is written out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from edgen.core.text import escape_character

# Everything but what needs no second look: quick, as most of most texts is ASCII.
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]+")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"


def safe(text: str) -> str:
    """`text` with what a terminal would obey or hide written out: `\\x1b`, `\\u202e`.

    That is: control characters (escape sequences, C1), marks and overrides of direction, characters without a width but
    for the two joiners that scripts and emoji need, separators of lines, halves of characters. Line feeds and tabs
    stay.
    """
    return _UNUSUAL.sub(lambda found: _escaped(found.group(), escape_character), text)


def safe_json(text: str) -> str:
    """JSON text whose value is the same and which `safe` would not change: what is hidden is escaped as JSON does it."""
    return _UNUSUAL.sub(lambda found: _escaped(found.group(), _units), text)


def _escaped(run: str, escape: Callable[[str], str]) -> str:
    if run.isprintable():
        return run
    return "".join(escape(c) if unicodedata.category(c) in _HIDDEN and c not in _JOINERS else c for c in run)


def _units(char: str) -> str:
    """A character as JSON escapes it, in one or two units of UTF-16."""
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
