"""The best and the worst of several, by their letters: `{"best": "A", "worst": "C"}`, or a line for each.

Letters that are not there, the same one twice, and all else is no such answer. Never raises; linear.
"""

from __future__ import annotations

import re

import msgspec

from edgen.core.values import Rejection, RejectionReason
from edgen.reading.text.characters import excerpt
from edgen.reading.text.thinking import drop_thinking

MAX_READ = 100_000  # characters of a reply
_SAID = re.compile(
    r"(?i)\b(best|worst)\b[ \t*_\"'”]{0,4}(?:is|[:：=])[ \t*_\"'“(\[]{0,4}(?:response )?([a-z])\b"
)


def read_best_worst(
    text: str, letters: str, *, finish_reason: str = "stop", refusal: str | None = None
) -> tuple[int, int] | Rejection:
    """The places of the best and of the worst among `letters`; or why there are none."""
    if refusal is not None:
        return Rejection(RejectionReason.REFUSED, excerpt(refusal))
    body = drop_thinking(text[:MAX_READ], [])
    named = _json(body) or {found[1].lower(): found[2] for found in _SAID.finditer(body)}
    best, worst = (_place(named.get(key), letters) for key in ("best", "worst"))
    if best is not None and worst is not None and best != worst:
        return best, worst
    reason = RejectionReason.TRUNCATED if finish_reason == "length" else RejectionReason.UNREAD
    return Rejection(reason, excerpt(text))


def _place(named: object, letters: str) -> int | None:
    """Where a letter stands among the letters; None for what is none of them."""
    letter = named.strip().upper() if isinstance(named, str) else ""
    return letters.index(letter) if len(letter) == 1 and letter in letters else None


def _json(text: str) -> dict[str, object] | None:
    """The JSON object that stands in a reply, where it names a best one."""
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    try:
        value = msgspec.json.decode(text[start : end + 1], strict=False)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return value if isinstance(value, dict) and "best" in value else None
