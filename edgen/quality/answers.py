"""Answer-giving: how often a student that asks to be told the answer is told it.

A turn of the student asks if it holds one of the phrases below (`just tell me`, `what is the answer`). It
is given what it asked for if the next turn is the teacher's, tells something about the matter and asks
nothing back (`cues.tells`, `cues.asks`). `telling` is the share of the teacher's turns that hold no
question mark.

Telling rather than asking is what tutors are measured by in MathDial (Macina et al. 2023, arXiv
2305.14536, where people and models mark each turn); this is a baseline by words in the same spirit, not
their measure. Intervals are those of `pairing.intervals`, clustered by scenario. Memory: 32 bytes a
conversation.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from edgen.model import Turn
from edgen.pairing.intervals import Estimate, share
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
        self._given, self._telling = _Share(), _Share()

    def add(self, sample: Sample, words: Words) -> None:
        """Count one conversation."""
        turns, index = sample.turns, sample.scenario.index
        asked = given = taught = telling = 0
        for number, turn in enumerate(turns):
            if turn.role == "Teacher":
                taught += 1
                telling += "?" not in turn.text
            elif _REQUESTS.within(spoken(words[number])):
                asked += 1
                given += _answered(turns, number + 1)
        self._given.add(index, given, asked)
        self._telling.add(index, telling, taught)

    def result(self) -> results.Answers:
        """What was counted."""
        return results.Answers(
            asked=self._given.of,
            given=self._given.hits,
            rate=self._given.result(),
            telling=self._telling.result(),
        )


class _Share:
    """Hits of turns, conversation by conversation."""

    def __init__(self) -> None:
        self._hits, self._of, self._scenarios = array("I"), array("I"), array("q")

    def add(self, scenario: int, hits: int, of: int) -> None:
        if of:
            self._hits.append(hits)
            self._of.append(of)
            self._scenarios.append(scenario)

    @property
    def hits(self) -> int:
        return sum(self._hits)

    @property
    def of(self) -> int:
        return sum(self._of)

    def result(self) -> Estimate | None:
        return share(np.array(self._hits), np.array(self._scenarios), np.array(self._of))


def _answered(turns: Sequence[Turn], number: int) -> bool:
    """Whether turn `number` is the teacher's, and tells without asking back."""
    if number >= len(turns) or turns[number].role != "Teacher":
        return False
    text = turns[number].text
    return tells(text) and not asks(text)
