"""Text that is safe for a terminal: control and hidden characters are written out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from edgen.core.text import escape_character

# All characters that need a check: fast, as most texts are mostly ASCII.
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]+")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"
_SURROGATES = re.compile("[\ud800-\udfff]")


def replace_surrogates(value: Any) -> Any:
    """Return text, or lists and dicts with texts, with U+FFFD for every lone surrogate: no encoding takes
    one."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [replace_surrogates(child) for child in value]
    return value


def safe(text: str) -> str:
    """Return `text` with control and hidden characters written out: `\\x1b`, `\\u202e`.

    These are control characters (escape sequences, C1), marks and overrides of direction, zero-width
    characters except the two joiners that scripts and emoji need, separators of lines, lone surrogates. Line
    feeds and tabs stay.
    """
    return _UNUSUAL.sub(lambda found: _escaped(found.group(), escape_character), text)


def safe_json(text: str) -> str:
    """Return JSON text of the same value that `safe` would not change: hidden characters become JSON
    escapes."""
    return _UNUSUAL.sub(lambda found: _escaped(found.group(), _units), text)


def _escaped(run: str, escape: Callable[[str], str]) -> str:
    if run.isprintable():
        return run
    return "".join(escape(c) if unicodedata.category(c) in _HIDDEN and c not in _JOINERS else c for c in run)


def _units(char: str) -> str:
    """Return a character as JSON escapes it, in one or two units of UTF-16; a lone surrogate is one unit."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
