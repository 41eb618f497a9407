"""Seconds that an answer took: counted for a person, or as in `{"text": "…", "seconds": 12.5}`.

Never raises; linear.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from edgen.plugin import Reply

LONGEST = 86_400  # seconds, a day


class _Timed(msgspec.Struct):
    seconds: Annotated[float, Meta(ge=0, le=LONGEST)]


def read_seconds(reply: Reply) -> float | None:
    """Return the seconds, in [0, LONGEST]; None where nobody counted them and the text is no JSON object that
    names such a number."""
    if reply.given is not None and reply.given.seconds is not None:
        return min(max(reply.given.seconds, 0.0), LONGEST)
    try:
        return msgspec.json.decode(reply.text, type=_Timed).seconds
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
