"""A measure: how many turns ask something."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgen.evaluation.measure import Measure, Shared
from edgen.evaluation.sample import Sample, Words


class Questions(msgspec.Struct, frozen=True):
    """`turns` that hold a question mark, of `of`."""

    turns: int
    of: int


class QuestionsMeasure(Measure[Questions]):
    name = "questions"
    definition = "Turns that hold a question mark. This package's own."

    def start(self, shared: Shared) -> QuestionsCount:
        return QuestionsCount()

    def lines(self, value: Questions) -> Iterator[str]:
        yield f"  {value.turns} of {value.of} turns ask something"


class QuestionsCount:
    """What was seen so far."""

    def __init__(self) -> None:
        self._asked = self._turns = 0

    def see(self, sample: Sample, words: Words) -> None:
        self._turns += len(sample.turns)
        self._asked += sum("?" in turn.text for turn in sample.turns)

    def result(self) -> Questions:
        return Questions(self._asked, self._turns)


MEASURE = QuestionsMeasure()
