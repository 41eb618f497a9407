"""Text that a terminal may be given: what it would obey or hide is written out."""

from __future__ import annotations

import re
import unicodedata


def safe(text: str) -> str:
    """`text` with what a terminal would obey or hide written out: `\\x1b`, `\\u202e`.

    That is: control characters (escape sequences, C1), marks and overrides of direction, characters without a width but
    for the two joiners that scripts and emoji need, separators of lines, halves of characters. Line feeds and tabs stay.
    """
    return _UNUSUAL.sub(lambda found: _written_out(found.group()), text)


def safe_json(text: str) -> str:
    """JSON text whose value is the same and which `safe` would not change: what is hidden is escaped as JSON does it."""
    return _UNUSUAL.sub(lambda found: _escaped_in_json(found.group()), text)


# Everything but what needs no second look: quick, as most of most texts is ASCII.
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]+")


def _written_out(run: str) -> str:
    return run if run.isprintable() else "".join(_escaped(c) if _hidden(c) else c for c in run)


def _escaped_in_json(run: str) -> str:
    return run if run.isprintable() else "".join(_units(c) if _hidden(c) else c for c in run)


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN and char not in "\u200c\u200d"


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _units(char: str) -> str:
    """A character as JSON escapes it, in one or two units of UTF-16."""
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
