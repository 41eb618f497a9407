"""The body of a short answer, without thinking and fences, and its value as JSON. Nothing raises."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from edgen.core.text import compile_later
from edgen.reading.text.surroundings import FENCE
from edgen.reading.text.thinking import drop_thinking

MAX_READ = 100_000  # characters of a reply
_FENCED = compile_later(r"\A\s*```[a-zA-Z]{0,10}\s*\n?(.*?)\n?\s*```\s*\Z", re.DOTALL)
_BREAK = compile_later(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


def body_of(text: str) -> str:
    """Return the part of a reply that is read: the first MAX_READ characters, without thinking."""
    body = text[:MAX_READ]
    return drop_thinking(body, []) if "<" in body or "[/" in body else body


def strip_fence(body: str) -> str:
    """Return the contents of a fence around a whole text, or the text if it has none; stripped."""
    return (fenced[1] if (fenced := _FENCED.match(body)) else body).strip()


def extract_fenced(body: str) -> str:
    """Return the contents of the first code fence; all of the text if there is none."""
    fences = [found for _, found in zip(range(2), FENCE.finditer(body), strict=False)]
    return body[fences[0].end() : fences[1].start()] if len(fences) == 2 else body


def with_line_feeds(text: str) -> str:
    """Return the text with a line feed for every kind of line end."""
    return _BREAK.sub("\n", text)


def decode_json(text: str) -> Any:
    """Return the value of a JSON text; None if it is invalid."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def object_in(body: str) -> dict[str, Any] | None:
    """Return the JSON object from the first brace of a text to the last; None where there is none."""
    start, end = body.find("{"), body.rfind("}")
    value = decode_json(body[start : end + 1]) if 0 <= start < end else None
    return value if isinstance(value, dict) else None


def fold_key(key: Any) -> str:
    """Return a key in the form in which keys are compared: case-folded, with one blank between its words."""
    return re.sub(r"[\s_-]+", " ", str(key)).strip().casefold()
