"""Answer-giving: how often a student that asks to be told the answer is told it.

A turn of the student asks if it holds one of the phrases below. It is given what it asked for if the next turn is the
teacher's, tells something about the matter and asks nothing back (`cues.tells`, `cues.asks`). Intervals are those of
`stats.intervals`, clustered by scenario. Memory: 32 bytes a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from edgen.core.text import quantity
from edgen.core.values import Turn
from edgen.evaluation.figures import Block, intervals_picture
from edgen.evaluation.measure import ArmResult, Measure, figure_kinds, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import row, share_with_interval
from edgen.expressions.language import Value
from edgen.families.education.cues import Cues, asks, tells
from edgen.space import Space
from edgen.stats.intervals import Estimate, ShareCount

_REQUESTS = Cues(
    "just tell me|just tell us|just told me|just tell it|just explain|just teach|just give me|just give us|just say it"
    "|tell me the answer*|tell us the answer*|give me the answer*|give us the answer*|what is the answer"
    "|what's the answer|what is the solution|what's the solution|show me the solution|give me the solution"
    "|tell me what it is|simply tell me|can you tell me the|could you tell me the|tell me already|tell me about"
    "|want you to tell|want you to just|want you to explain|want you to give|rather you told|rather you just"
    "|you just explain|you just tell|you simply tell|you just teach|can't you explain|can you explain|could you explain"
    "|please explain|explain it to me|explain it to us|need you to explain|hear it from you|what do i need to know|what i need to know"
)


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """`asked`: the student's turns that ask to be told the answer; `given`: those whose next turn of the teacher
    tells without asking back. `telling`: share of the teacher's turns without a question."""

    asked: int
    given: int
    rate: Estimate | None
    telling: Estimate | None


class AnswersCount:
    """Requests for the answer and what came of them."""

    def __init__(self) -> None:
        self._given, self._telling = ShareCount(), ShareCount()

    def see(self, sample: Sample, words: Words) -> None:
        found, index = _count(sample.turns, words), sample.scenario.index
        self._given.add(index, found.given, found.asked)
        self._telling.add(index, found.telling, found.taught)

    def result(self) -> Answers:
        return Answers(
            asked=self._given.of,
            given=self._given.hits,
            rate=self._given.result(),
            telling=self._telling.result(),
        )


class AnswersMeasure(Measure[Answers]):
    name = "answers"
    definition = (
        "Student's turns that ask to be told the answer, and those whose next turn of the teacher tells "
        "without asking back; telling: the teacher's turns without a question. edgen's own, by keywords; "
        "related to the telling rate of MathDial (Macina et al. 2023, arXiv 2305.14536)."
    )
    order = 10
    counts = AnswersCount
    section = "behaviour"
    figures = figure_kinds("asked", "given", "telling")

    def of_one(self, sample: Sample, words: Words, space: Space) -> Mapping[str, Value]:  # noqa: ARG002
        """Turns that ask for the answer, those that get it, and the teacher's without a question."""
        found = _count(sample.turns, words)
        return {"asked": found.asked, "given": found.given, "telling": found.telling}

    def lines(self, value: Answers) -> Iterator[str]:
        yield row("student asks for it", quantity(value.asked, "turn"))
        yield row("teacher gives it", f"{value.given:,} = {share_with_interval(value.rate)}")
        yield row("teacher tells", f"{share_with_interval(value.telling)} without a question")

    def blocks(self, found: Sequence[ArmResult[Answers]]) -> Iterator[Block]:
        shares = (
            ("Gives the answer when asked", attrgetter("rate")),
            ("Teacher's turns, no question", attrgetter("telling")),
        )
        yield from intervals_picture(
            "answers", "Giving the answer", share_intervals(found, shares),
            "Look for a teacher that tells more often than it asks.",
        )  # fmt: skip


class _Counted(NamedTuple):
    """Turns of one conversation."""

    asked: int
    given: int
    taught: int
    telling: int


def _count(turns: Sequence[Turn], words: Words) -> _Counted:
    asked = given = taught = telling = 0
    for number, turn in enumerate(turns):
        if turn.role == "Teacher":
            taught += 1
            telling += "?" not in turn.text
        elif _REQUESTS.within(words.spoken[number]):
            asked += 1
            given += _is_answered(turns, number + 1)
    return _Counted(asked, given, taught, telling)


def _is_answered(turns: Sequence[Turn], number: int) -> bool:
    """Whether turn `number` is the teacher's, and tells without asking back."""
    if number >= len(turns) or turns[number].role != "Teacher":
        return False
    text = turns[number].text
    return tells(text) and not asks(text)


MEASURE = AnswersMeasure()
