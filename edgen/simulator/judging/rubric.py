"""The simulated judge with a rubric: a fenced conversation and criteria in, a JSON object of scores out.

All criteria follow from the tone of the turns, each with its own error.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import msgspec

from edgen.core.values import Message
from edgen.reading.answers.scores import MOST_SCORE
from edgen.simulator.conversation.tone import measure_tone
from edgen.simulator.judging.judge import find_fenced, split_turns
from edgen.simulator.phrases.book import PhraseSpeaker

_ASKED = "JSON object with a number from 0 to 10 for each criterion"


class RubricSheet(NamedTuple):
    """The text to score, and the criteria's names."""

    turns: list[str]
    names: list[str]


def read(messages: Sequence[Message]) -> RubricSheet | None:
    """Read the requested scores, None if there are none."""
    text = messages[-1].content.rstrip() if messages else ""
    asked, _, form = text.rpartition("\n")
    if not form.startswith("{") or _ASKED not in asked[-200:] or (shown := find_fenced(text)) is None:
        return None
    try:
        names = list(msgspec.json.decode(form, type=dict[str, int]))
    except (msgspec.DecodeError, UnicodeError):
        return None
    return RubricSheet(split_turns(shown), names)


def answer(sheet: RubricSheet, fault: str | None, rng: Random) -> str:
    """Return the judge's scores; every error is drawn from `rng`."""
    if fault in ("judge_prose", "judge_both", "garbage"):
        return PhraseSpeaker(rng, {"noun": "conversation"}).say("judge.prose")
    course = sum(map(measure_tone, sheet.turns)) / max(1, len(sheet.turns))
    scores = {
        name: MOST_SCORE * (0.3 + 0.9 * course) + 2 * (rng.random() + rng.random() - 1)
        for name in sheet.names
    }
    return msgspec.json.encode(
        {name: min(MOST_SCORE, max(0, round(it))) for name, it in scores.items()}
    ).decode()
