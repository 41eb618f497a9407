"""Codes of turns: characters as they are, with escapes, or with doubled quotation marks."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence

PLAIN, QUOTED, JSON, DOUBLED, SINGLES, ENTITIES = range(6)
HINTS = ("", "\\", "\\", '""', "''", "&")
"""A text without this holds nothing to decode."""
_WRITERS: tuple[Callable[[str], str], ...] = (
    str,
    lambda said: said.replace('"', '\\"'),
    lambda said: json.dumps(said)[1:-1],
    lambda said: said.replace('"', '""'),
    lambda said: said.replace("'", "''"),
    lambda said: html.escape(said).replace("&#x27;", "&#39;"),
)
_QUOTE = re.compile(r'\\"')
ESCAPES = (
    _QUOTE,
    _QUOTE,
    re.compile(r"\\(?:[\"\\]|u(?!00[0-7]|[dD][89a-fA-F])[0-9a-fA-F]{4})"),
    re.compile('""'),
    re.compile("''"),
    re.compile("&(?:quot|apos|#39);"),
)


def encode_turn(text: str, code: int) -> str:
    """Return a turn's text as a layout with this code writes it."""
    return text if code == PLAIN else _WRITERS[code](text)


def decode_turn(text: str, code: int) -> str:
    """Return the text that a layout with this code writes so."""
    return ESCAPES[code].sub(_decode_escape, text)


def _decode_escape(escape: re.Match[str]) -> str:
    """Return the character that some others stand for."""
    written = escape[0]
    if written[0] == "&":
        return html.unescape(written)
    return written[1] if len(written) == 2 else chr(int(written[2:], 16))


def list_codes(before: str) -> Sequence[int]:
    """Return the codes that a turn can have after the text before it (whole tags apart), likelier ones
    first."""
    if '"' in before:
        return PLAIN, QUOTED, JSON, DOUBLED
    return (PLAIN, SINGLES, ENTITIES) if before[-1:] == "'" else (PLAIN, ENTITIES)
