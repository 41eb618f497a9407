"""A measure: how many turns ask something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from edgen.evaluation.measure import Measure, Shared, figure_kinds
from edgen.evaluation.sample import Sample, Words
from edgen.expressions.language import Value
from edgen.space import Space


class Questions(msgspec.Struct, frozen=True):
    """`turns` that hold a question mark, of `of`."""

    turns: int
    of: int


class QuestionsMeasure(Measure[Questions]):
    name = "questions"
    definition = "Turns that hold a question mark. This package's own."
    figures = figure_kinds("")  # `questions >= 2` in expressions

    def start(self, shared: Shared) -> QuestionsCount:
        return QuestionsCount()

    def of_one(self, sample: Sample, words: Words, space: Space) -> Mapping[str, Value]:
        return {"": sum("?" in turn.text for turn in sample.turns)}

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
