"""A measure: the number of turns that contain a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.plugin import Measure, Sample, Share, Space, Total, Words, figure_kinds


class QuestionsMeasure(Measure[Any]):
    name = "questions"
    definition = "Turns that hold a question mark. This package's own."
    figures = figure_kinds("")  # `questions >= 2` in expressions
    aggregates = (
        Total("turns", "questions"),
        Total("of", "turns"),
        Share("share", "questions", "turns", label="turns that ask something"),
    )

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        return {"questions": sum("?" in turn.text for turn in sample.turns), "turns": len(sample.turns)}


MEASURE = QuestionsMeasure()
