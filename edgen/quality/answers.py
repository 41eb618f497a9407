"""Answer-giving: how often a student that asks to be told the answer is told it.

A turn of the student asks if it holds one of the phrases below (`just tell me`, `what is the answer`). It
is given what it asked for if the next turn is the teacher's, tells something about the matter and asks
nothing back (`cues.tells`, `cues.asks`). `telling` is the share of the teacher's turns that hold no
question mark.

Telling rather than asking is what tutors are measured by in MathDial (Macina et al. 2023, arXiv
2305.14536, where people and models mark each turn); this is a baseline by words in the same spirit, not
their measure. Intervals are those of `pairing.intervals`, clustered by scenario. Memory: nine bytes a
turn of the teacher.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from edgen.model import Turn
from edgen.pairing.intervals import share
from edgen.quality import results
from edgen.quality.cues import Cues, asks, spoken, tells
from edgen.quality.model import Sample, Words

_REQUESTS = Cues(
    "just tell me|just tell us|just told me|just tell it|just explain|just teach|just give me|just give us|just say it"
    "|tell me the answer*|tell us the answer*|give me the answer*|give us the answer*|what is the answer"
    "|what's the answer|what is the solution|what's the solution|show me the solution|give me the solution"
    "|tell me what it is|simply tell me|can you tell me the|could you tell me the|tell me already|tell me about"
    "|want you to tell|want you to just|want you to explain|want you to give|rather you told|rather you just"
    "|you just explain|you just tell|you simply tell|you just teach|can't you explain|can you explain|could you explain"
    "|please explain|explain it to me|explain it to us|need you to explain|hear it from you|what do i need to know|what i need to know"
)


class AnswersMeasure:
    """Requests for the answer and what came of them, over a stream of conversations."""

    def __init__(self) -> None:
        self._given, self._asked_in = array("b"), array("q")
        self._telling, self._taught_in = array("b"), array("q")

    def add(self, sample: Sample, words: Words) -> None:
        """Count one conversation."""
        turns, index = sample.turns, sample.scenario.index
        for number, turn in enumerate(turns):
            if turn.role == "Teacher":
                self._telling.append("?" not in turn.text)
                self._taught_in.append(index)
            elif _REQUESTS.within(spoken(words[number])):
                self._given.append(_answered(turns, number + 1))
                self._asked_in.append(index)

    def result(self) -> results.Answers:
        """What was counted."""
        return results.Answers(
            asked=len(self._given),
            given=sum(self._given),
            rate=share(self._given, self._asked_in),
            telling=share(self._telling, self._taught_in),
        )


def _answered(turns: Sequence[Turn], number: int) -> bool:
    """Whether turn `number` is the teacher's, and tells without asking back."""
    if number >= len(turns) or turns[number].role != "Teacher":
        return False
    text = turns[number].text
    return tells(text) and not asks(text)
