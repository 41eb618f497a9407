"""The body of a short answer: without thinking and without a fence around it, and what it holds as JSON. Nothing raises."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from edgen.reading.text.surroundings import FENCE
from edgen.reading.text.thinking import drop_thinking

MAX_READ = 100_000  # characters of a reply
_FENCED = re.compile(r"\A\s*```[a-zA-Z]{0,10}\s*\n?(.*?)\n?\s*```\s*\Z", re.DOTALL)
_BREAK = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


def body_of(text: str) -> str:
    """What of a reply is read: all but its thinking, up to MAX_READ characters."""
    return drop_thinking(text[:MAX_READ], [])


def unfenced(body: str) -> str:
    """What stands in a fence that is all of a text; the text where there is none. Neither begins or ends with a blank."""
    return (fenced[1] if (fenced := _FENCED.match(body)) else body).strip()


def inside_fence(body: str) -> str:
    """What stands in the first code fence, all of the text where there is none."""
    fences = [found for _, found in zip(range(2), FENCE.finditer(body), strict=False)]
    return body[fences[0].end() : fences[1].start()] if len(fences) == 2 else body


def with_line_feeds(text: str) -> str:
    """Return the text with a line feed for whatever ends a line."""
    return _BREAK.sub("\n", text)


def decoded(text: str) -> Any:
    """Return the value that a text is as JSON; None where it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def object_in(body: str) -> dict[str, Any] | None:
    """Return the JSON object from the first brace of a text to the last; None where there is none."""
    start, end = body.find("{"), body.rfind("}")
    value = decoded(body[start : end + 1]) if 0 <= start < end else None
    return value if isinstance(value, dict) else None


def fold_key(key: Any) -> str:
    """Return a key as it is compared: without case, whatever stands between its words."""
    return re.sub(r"[\s_-]+", " ", str(key)).strip().casefold()
