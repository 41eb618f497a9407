"""Rejection of answers that were read well and say nothing of their own, for all protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from edgen.core.values import Conversation, Rejection, RejectionReason, Request
from edgen.reading.hollow import find_hollow, find_hollow_turn

T = TypeVar("T")


def refuse_hollow(result: T | Rejection, request: Request) -> T | Rejection:
    """Return what was read of the answer to a request; a rejection if it is a placeholder or an echo. Of
    several texts, those remain that are neither."""
    read: Any = result
    if isinstance(read, Conversation):
        return find_hollow_turn([turn.text for turn in read.turns], request.messages) or result
    if isinstance(read, list) and read and all(isinstance(text, str) for text in read):
        found = [find_hollow(text, request.messages) for text in read]
        kept: Any = [text for text, why in zip(read, found, strict=True) if why is None]
        return kept or found[0] or result
    if not hasattr(read, "repairs"):  # no text of a speaker
        return result
    why = find_hollow(read.text, request.messages, opening=request.address.step == 0)
    flagged = why is not None and why.reason is RejectionReason.LOOP and why.reason in _flags(read)
    return result if why is None or flagged else why


def _flags(read: Any) -> Sequence[str]:
    flags: Sequence[str] = getattr(read, "flags", ())
    return flags
