"""What is asked of one agent: a judge's verdict or sheet, a closing question's number, or one side's turn.

It is a module of its own, so that a run whose prompts ask for whole conversations never loads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from edgen.backends.simulator import adherence, closing, judge, side, turns, values
from edgen.model import Message


def answer(messages: Sequence[Message], fault: str | None, rng: Random) -> tuple[str, str] | None:
    """What the answer is (`answer`, `probability` or `text`) and its words; None if no agent is asked,
    or if the fault is garbage, of which only a verdict has a form of its own."""
    sheet = adherence.read(messages)
    if sheet is not None:
        return "answer", adherence.answer(sheet, fault, rng)
    place = side.read(messages)
    # A turn may say anything, so what a side hears is never taken for a judge's prompt.
    comparison = judge.read(messages) if place is None or not place.said else None
    if comparison is not None:
        return "answer", judge.answer(comparison, fault, rng)
    if fault == "garbage":
        return None
    if place is None and (wish := values.read(messages)) is not None:
        return "text", values.answer(wish, rng)
    asked = closing.read(messages, place)
    if asked is not None:
        return "probability", closing.answer(asked, rng)
    return None if place is None else ("text", turns.speak(place, fault, rng))
