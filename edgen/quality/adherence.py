"""Adherence: whether conversations keep to what their scenarios state, by keywords.

Five shares, each over the conversations that it can be told of: does the student ask for the way it
prefers, do both sides' stated reactions show, does the teacher keep to its preferred way or leave it for
the student's. How each is decided is defined in `cues`. On nineteen released records of Education
Dialogue one reading by hand agrees in 69 of 74 answers; the words were chosen by that reader, who knew
these records, so elsewhere expect less.

Shares and intervals are those of `pairing.intervals`, clustered by scenario: they tell of the draw of
scenarios, not of the keywords' errors. Memory: 13 bytes a conversation.
"""

from __future__ import annotations

from array import array

import numpy as np

from edgen.pairing.intervals import Estimate, share
from edgen.quality import results
from edgen.quality.cues import MEASURES, Verdicts, verdicts
from edgen.quality.model import Sample, Words

KEYWORDS = "keywords"
NOTE = (
    "Keywords are a baseline: they know no irony, no negation and no context, and only English. On simulated "
    "conversations they flatter, since the simulator sorts preferences into families by the same table."
)
UNTOLD = -1


class ByKeywords:
    """The shares by keywords, of a stream of conversations."""

    def __init__(self) -> None:
        self._tally = Tally()

    def add(self, sample: Sample, words: Words) -> None:
        """Count one conversation."""
        self._tally.add(sample.scenario.index, verdicts(sample.scenario, sample.turns, words))

    def result(self) -> results.Adherence:
        """What was counted."""
        return self._tally.result(KEYWORDS, note=NOTE)


class Tally:
    """Verdicts on conversations, whoever gave them, counted to shares."""

    def __init__(self) -> None:
        self._scenarios = array("q")
        self._told = {name: array("b") for name in MEASURES}

    def add(self, scenario: int, said: Verdicts) -> None:
        """Count the verdicts on one conversation of a scenario."""
        self._scenarios.append(scenario)
        for name, yes in zip(MEASURES, said, strict=True):
            self._told[name].append(UNTOLD if yes is None else yes)

    def result(
        self, by: str, *, agreement: dict[str, float | None] | None = None, note: str | None = None
    ) -> results.Adherence:
        """The shares, with their intervals."""
        shares = {name: self._share(told) for name, told in self._told.items()}
        return results.Adherence(
            by=by,
            n=len(self._scenarios),
            **shares,
            untold={name: told.count(UNTOLD) for name, told in self._told.items()},
            agreement=agreement or {},
            note=note,
        )

    def _share(self, told: array[int]) -> Estimate | None:
        said = np.array(told)
        known = said != UNTOLD
        return share(said[known], np.array(self._scenarios)[known])
