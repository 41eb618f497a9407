"""The best and the worst of several, by their letters: `{"best": "A", "worst": "C"}`, or a line for each.

Unknown letters, the same letter twice and any other text are rejected. Never raises; linear time.
"""

from __future__ import annotations

import re

from edgen.plugin import Rejection
from edgen.plugin.answers import body_of, object_in
from edgen.plugin.protocols import RejectionReason
from edgen.plugin.texts import excerpt

_SAID = re.compile(
    r"(?i)\b(best|worst)\b[ \t*_\"'”]{0,4}(?:is|[:：=])[ \t*_\"'“(\[]{0,4}(?:response )?([a-z])\b"
)


def read_best_worst(
    text: str, letters: str, *, finish_reason: str = "stop", refusal: str | None = None
) -> tuple[int, int] | Rejection:
    """Return the places of the best and of the worst among `letters`; or why there are none."""
    if refusal is not None:
        return Rejection(RejectionReason.REFUSED, excerpt(refusal))
    body = body_of(text)
    named = object_in(body) or {}
    if "best" not in named:
        named = {found[1].lower(): found[2] for found in _SAID.finditer(body)}
    best, worst = (_place(named.get(key), letters) for key in ("best", "worst"))
    if best is not None and worst is not None and best != worst:
        return best, worst
    reason = RejectionReason.TRUNCATED if finish_reason == "length" else RejectionReason.UNREAD
    return Rejection(reason, excerpt(text))


def _place(named: object, letters: str) -> int | None:
    """Return the index of a letter in `letters`; None for any other value."""
    letter = named.strip().upper() if isinstance(named, str) else ""
    return letters.index(letter) if len(letter) == 1 and letter in letters else None
