"""How long whoever answers took, where the answer says so: `{"text": "…", "seconds": 12.5}`. Never raises; linear."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

LONGEST = 86_400  # seconds, a day


class _Timed(msgspec.Struct):
    seconds: Annotated[float, Meta(ge=0, le=LONGEST)]


def read_seconds(text: str) -> float | None:
    """Seconds in [0, LONGEST]; None where the text is no JSON object that tells such a number."""
    try:
        return msgspec.json.decode(text, type=_Timed).seconds
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
