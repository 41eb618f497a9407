"""The simulated judge of adherence: a sheet of five questions in, five answers out.

It answers by the keywords of `edgen.domains.education.keywords`, and reverses one answer in ten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from edgen.domains.education.family import make_five_list_scenario
from edgen.domains.education.keywords import MEASURES, judge_by_keywords
from edgen.plugin import Message, Scenario, Simulation, Turn
from edgen.plugin.families import Role
from edgen.plugin.texts import join_words, words
from edgen.simulator.judge import find_fenced

_WRONG = 0.1
_DESCRIBED = re.compile(r"^(Student|Teacher)'s (preference|reaction): (.*)$", re.MULTILINE)
_OPENS, _CLOSES = "\nLesson:\n", "\nEnd of the lesson.\n"
_LINE = re.compile(r"^(Teacher|Student): ", re.MULTILINE)


class SheetContent(NamedTuple):
    """The content of a sheet."""

    scenario: Scenario
    turns: tuple[Turn, ...]


def read(messages: Sequence[Message]) -> SheetContent | None:
    """Read the sheet in the messages; None if there is none."""
    if not messages or messages[-1].role != "user":
        return None
    text = messages[-1].content
    if not text.endswith("\nteacher_leaves:"):
        return None
    lesson, opens = find_fenced(text), text.find(_OPENS)
    if lesson is None:
        closes = text.rfind(_CLOSES)
        lesson = text[opens + len(_OPENS) - 1 : closes] if 0 <= opens < closes else None
    else:
        opens, lesson = text.find(lesson), "\n" + lesson.replace("\n  | ", "\n    ")
    if lesson is None:
        return None
    described = {f"{who}_{what}".lower(): said for who, what, said in _DESCRIBED.findall(text[:opens])}
    if len(described) != 4:
        return None
    return SheetContent(make_five_list_scenario(0, {"topic": "", **described}), _read_turns(lesson))


def _read_turns(lesson: str) -> tuple[Turn, ...]:
    roles: dict[str, Role] = {"Teacher": "Teacher", "Student": "Student"}
    _, *parts = _LINE.split(lesson)
    return tuple(Turn(roles[role], said.strip()) for role, said in zip(parts[::2], parts[1::2], strict=True))


def answer(request: Simulation) -> str | None:
    """Return the judge's answers; None if the messages contain no sheet. Every error is drawn from the
    request's seed."""
    sheet = read(request.messages)
    return sheet and request.as_json("answer", _say(sheet, request))


def _say(sheet: SheetContent, request: Simulation) -> str:
    if request.fault in ("judge_prose", "garbage"):
        return request.say("judge.prose", noun="lesson")
    if request.fault == "judge_both":
        return "It depends on how one sees it."
    lines = []
    said = judge_by_keywords(
        sheet.scenario, sheet.turns, [join_words(words(turn.text)) for turn in sheet.turns]
    )
    for name, yes in zip(MEASURES, said, strict=True):
        wrong = request.random() < _WRONG
        lines.append(f"{name}: {'cannot tell' if yes is None else 'yes' if yes != wrong else 'no'}")
    return "\n".join(lines)
