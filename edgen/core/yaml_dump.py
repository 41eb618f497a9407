"""Plain values as YAML on one line: every text quoted, unprintable characters escaped, so it is safe to
print."""

from __future__ import annotations

import json
from typing import Any

# Values that YAML 1.1 reads as a truth value or null, in any case.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def flow(value: Any) -> str:
    """Return a plain value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_key(key)}: {flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _as_float(value)
    return as_text(value) if isinstance(value, str) else str(value)


def as_key(key: str) -> str:
    return key if key.isascii() and key.isidentifier() and key.lower() not in _WORDS else as_text(key)


def as_number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else _as_float(value)


def _as_float(value: float) -> str:
    text = repr(value)
    # YAML 1.1 reads 1e-07 as a text; it requires the point.
    return text if "." in text else text.replace("e", ".0e")


def as_text(text: str) -> str:
    """Return a YAML double-quoted scalar on one line. JSON's escapes are YAML's except for those beyond 16
    bits."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)
