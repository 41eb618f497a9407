"""The simulated judge of adherence: a sheet of five questions in, five answers out.

It goes by the keywords of `edgen.families.education.cues`, and one answer in ten is the wrong way round.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from edgen.core.values import Message, Role, Scenario, Turn
from edgen.families.education.cues import MEASURES, verdicts
from edgen.reading.detect import spoken, words
from edgen.simulator.phrases import Phrases
from edgen.space.education import education_scenario

_WRONG = 0.1
_DESCRIBED = re.compile(r"^(Student|Teacher)'s (preference|reaction): (.*)$", re.MULTILINE)
_OPENS, _CLOSES = "\nLesson:\n", "\nEnd of the lesson.\n"
_LINE = re.compile(r"^(Teacher|Student): ", re.MULTILINE)


class Sheet(NamedTuple):
    """What a sheet is about."""

    scenario: Scenario
    turns: tuple[Turn, ...]


def read(messages: Sequence[Message]) -> Sheet | None:
    """The sheet that the messages ask for, None if they ask for none."""
    if not messages or messages[-1].role != "user":
        return None
    text = messages[-1].content
    if not text.endswith("\nteacher_leaves:"):
        return None
    opens, closes = text.find(_OPENS), text.rfind(_CLOSES)
    if not 0 <= opens < closes:
        return None
    described = {f"{who}_{what}".lower(): said for who, what, said in _DESCRIBED.findall(text[:opens])}
    if len(described) != 4:
        return None
    return Sheet(
        education_scenario(0, {"topic": "", **described}), _turns(text[opens + len(_OPENS) - 1 : closes])
    )


def _turns(lesson: str) -> tuple[Turn, ...]:
    roles: dict[str, Role] = {"Teacher": "Teacher", "Student": "Student"}
    _, *parts = _LINE.split(lesson)
    return tuple(Turn(roles[role], said.strip()) for role, said in zip(parts[::2], parts[1::2], strict=True))


def answer(sheet: Sheet, fault: str | None, rng: Random) -> str:
    """What the judge says; every error is drawn from `rng`."""
    if fault in ("judge_prose", "garbage"):
        return Phrases(rng, {"noun": "lesson"}).say("judge.prose")
    if fault == "judge_both":
        return "It depends on how one sees it."
    lines = []
    said = verdicts(sheet.scenario, sheet.turns, [spoken(words(turn.text)) for turn in sheet.turns])
    for name, yes in zip(MEASURES, said, strict=True):
        wrong = rng.random() < _WRONG
        lines.append(f"{name}: {'cannot tell' if yes is None else 'yes' if yes != wrong else 'no'}")
    return "\n".join(lines)
